# SPDX-License-Identifier: Apache-2.0
# Cross-building for 64-bit Windows with MinGW-w64. TOCSIN_MINGW_THREADS is the thread model of its C++ library: posix
# (with std::thread) or win32 (without). Programs are linked statically, so that they run without the compiler's
# libraries.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(TOCSIN_MINGW_THREADS "posix" CACHE STRING "posix or win32")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TOCSIN_MINGW_THREADS)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-${TOCSIN_MINGW_THREADS})
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-${TOCSIN_MINGW_THREADS})
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-static")
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)

# Elsewhere than on Windows, programs run under Wine.
if(NOT CMAKE_HOST_WIN32)
    include("${CMAKE_CURRENT_LIST_DIR}/wine.cmake")
    set(CMAKE_CROSSCOMPILING_EMULATOR ${TOCSIN_WINE})
endif()

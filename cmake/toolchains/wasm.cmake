# SPDX-License-Identifier: Apache-2.0
# WebAssembly with threads and JavaScript's exceptions, with Debian's Emscripten; programs run under Node. Emscripten
# 3.1.6 has the libc++ of LLVM 14, which lacks <stop_token>. TOCSIN_LIBCXX is the folder of a newer one: its headers are
# in include/, and ./libcxx builds lib/ from its sources.
set(TOCSIN_LIBCXX "${CMAKE_CURRENT_LIST_DIR}/../../build/libcxx" CACHE PATH "The C++ library for WebAssembly")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TOCSIN_LIBCXX)
include(/usr/share/emscripten/cmake/Modules/Platform/Emscripten.cmake)
set(config "SHELL:--em-config ${CMAKE_CURRENT_LIST_DIR}/emscripten.config")

# What a configured libc++ has in its header __config_site.
set(site _LIBCPP_ABI_NAMESPACE=__1 _LIBCPP_HARDENING_MODE_DEFAULT=2 _LIBCPP_HAS_MUSL_LIBC _LIBCPP_HAS_NO_STD_MODULES
    _LIBCPP_HAS_NO_TIME_ZONE_DATABASE _LIBCPP_HAS_NO_VENDOR_AVAILABILITY_ANNOTATIONS _LIBCPP_HAS_THREAD_API_PTHREAD
    _LIBCPP_PSTL_BACKEND_SERIAL)
list(TRANSFORM site PREPEND -D)
add_compile_options(${config} -pthread -fexceptions -fexperimental-library ${site} -nostdinc++
    "SHELL:-isystem ${TOCSIN_LIBCXX}/include")

# main() runs in a thread of its own: the one that Node starts must answer what the others ask of JavaScript.
add_link_options(${config} -pthread -fexceptions -Wl,--undefined=main -sPROXY_TO_PTHREAD -sEXIT_RUNTIME -sINITIAL_MEMORY=1GB
    -sNODERAWFS "SHELL:--pre-js ${CMAKE_CURRENT_LIST_DIR}/wasm_environment.js")
set(CMAKE_CXX_STANDARD_LIBRARIES "${TOCSIN_LIBCXX}/lib/libc++.a")
set(CMAKE_CROSSCOMPILING_EMULATOR node --no-experimental-fetch)

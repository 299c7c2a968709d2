# SPDX-License-Identifier: Apache-2.0
# Another C library or system, with zig (the Python package ziglang). zig is a clang that brings the headers of many
# systems, a C library or a substitute to link with, and the sources of libc++, which it builds once for each target.
set(TOCSIN_ZIG zig CACHE FILEPATH "zig's program")
set(TOCSIN_ZIG_TARGET x86_64-linux-musl CACHE STRING "processor-system or processor-system-library, as zig names them")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TOCSIN_ZIG TOCSIN_ZIG_TARGET TOCSIN_RUN_IN_ROOT)

string(REGEX MATCH "^([^-]+)-([^-]+)" matched "${TOCSIN_ZIG_TARGET}")
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
set(linux Linux)
set(macos Darwin)
set(freebsd FreeBSD)
set(openbsd OpenBSD)
set(CMAKE_SYSTEM_NAME ${${CMAKE_MATCH_2}})

# zig rebuilds its libraries for each set of link flags, and CMake links with flags of its own when it identifies the
# compiler. So every link has the same first and last flags: -Os and -s, with which these libraries build fastest.
#
# zig adds a sanitizer for undefined behaviour to code that is not optimised, and the runtime of that sanitizer would be
# one more library to build. The preset asan looks for undefined behaviour, so the sanitizer is off here.
foreach(pair IN ITEMS "C cc" "CXX c++")
    string(REGEX MATCH "^([^ ]+) (.*)" matched ${pair})
    set(CMAKE_${CMAKE_MATCH_1}_COMPILER "${TOCSIN_ZIG}" ${CMAKE_MATCH_2} -target ${TOCSIN_ZIG_TARGET} -Os -s
        -fno-sanitize=undefined)
    # The host's ar does not know every system's objects.
    set(CMAKE_${CMAKE_MATCH_1}_ARCHIVE_CREATE "\"${TOCSIN_ZIG}\" ar qc <TARGET> <OBJECTS>")
    set(CMAKE_${CMAKE_MATCH_1}_ARCHIVE_FINISH "\"${TOCSIN_ZIG}\" ranlib <TARGET>")
endforeach()
foreach(kind IN ITEMS EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Os")
endforeach()
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Darwin")  # there the linker refuses undefined symbols anyway
    string(APPEND CMAKE_SHARED_LINKER_FLAGS_INIT " -Wl,-z,defs")
endif()
if(TOCSIN_ZIG_TARGET MATCHES "-musl")
    # zig marks programs so that musl gives threads 8 MB of stack. Programs of other compilers have the default of musl,
    # 128 KB.
    string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,-z,stack-size=131072")
endif()

set(TOCSIN_RUN_IN_ROOT "" CACHE PATH "The root of a system whose C library programs shall use; empty: the host's")
if(TOCSIN_RUN_IN_ROOT)
    set(libraries "${TOCSIN_RUN_IN_ROOT}/lib/x86_64-linux-gnu")
    file(GLOB loader "${libraries}/ld-2.*.so")
    string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,--dynamic-linker=${loader} -Wl,-rpath,${libraries}")
endif()

# CMake requires these for Darwin; a build without installation does not use them.
set(CMAKE_INSTALL_NAME_TOOL true)
set(CMAKE_OSX_SYSROOT "")
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

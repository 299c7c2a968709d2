# Another C library or system, by zig (the Python package ziglang): a clang that brings the headers of many, a C library
# or what stands for it at a link, and the sources of libc++, which it builds for each target once.
set(TOCSIN_ZIG zig CACHE FILEPATH "zig's program")
set(TOCSIN_ZIG_TARGET x86_64-linux-musl CACHE STRING "processor-system or processor-system-library, as zig names them")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TOCSIN_ZIG TOCSIN_ZIG_TARGET)

string(REGEX MATCH "^([^-]+)-([^-]+)" matched "${TOCSIN_ZIG_TARGET}")
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
set(linux Linux)
set(macos Darwin)
set(freebsd FreeBSD)
set(openbsd OpenBSD)
set(CMAKE_SYSTEM_NAME ${${CMAKE_MATCH_2}})

# zig builds its libraries for each set of flags that a link may have anew, and CMake links with flags of its own to know
# the compiler. So every link begins and ends alike: -Os and -s, with which these libraries take the least time.
#
# Undefined behaviour is what the preset asan looks for. zig adds a sanitizer for it to what is not optimised, whose
# runtime is one more library to be built.
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
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Darwin")  # where it is so by itself
    string(APPEND CMAKE_SHARED_LINKER_FLAGS_INIT " -Wl,-z,defs")  # nothing undefined
endif()
if(TOCSIN_ZIG_TARGET MATCHES "-musl")
    # zig marks programs so that musl gives threads 8 MB of stack. Everybody else's have musl's own 128 KB.
    string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,-z,stack-size=131072")
endif()

# What CMake asks of a Darwin that it builds for, and a build without installation doesn't use.
set(CMAKE_INSTALL_NAME_TOOL true)
set(CMAKE_OSX_SYSROOT "")
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

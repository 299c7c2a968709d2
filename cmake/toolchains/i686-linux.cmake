# SPDX-License-Identifier: Apache-2.0
set(triplet i686-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR i686)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
# No emulator: the host's processor and kernel run these programs, with the C library that came with the compiler.
# Programs do not look in the folder that has the loader and the libraries of this C library. So each program names
# them, by DT_RPATH, which libraries obey, too.
foreach(kind IN ITEMS EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,--disable-new-dtags,-rpath,/usr/${triplet}/lib")
endforeach()
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,--dynamic-linker=/usr/${triplet}/lib/ld-linux.so.2")

# SPDX-License-Identifier: Apache-2.0
set(triplet riscv64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-riscv64-static -L /usr/${triplet})

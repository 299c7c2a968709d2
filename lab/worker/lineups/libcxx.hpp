// SPDX-License-Identifier: Apache-2.0
// LLVM's standard library, libc++; clang builds this worker.
#pragma once

#include "../contestants/libcxx.hpp"
#include "../registry.hpp"

namespace lab {

using lineup = contestants<libcxx_atomic, libcxx_binary_semaphore, libcxx_counting_semaphore, libcxx_latch>;

}  // namespace lab

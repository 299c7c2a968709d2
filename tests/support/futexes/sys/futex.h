// SPDX-License-Identifier: Apache-2.0
// What src/platform/futex/openbsd.cpp uses of futex(2), for its tests on Linux: futexes.cpp.
#pragma once

#include <cstdint>
#include <ctime>

#define FUTEX_WAIT_PRIVATE 0x81
#define FUTEX_WAKE_PRIVATE 0x82

int futex(volatile std::uint32_t* word, int operation, int value, const timespec* length,
          volatile std::uint32_t* other);

namespace support {
// Older kernels of OpenBSD return the error's number and do not set errno.
inline thread_local bool futex_returns_errors = false;
}  // namespace support

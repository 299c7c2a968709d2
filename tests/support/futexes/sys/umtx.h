// SPDX-License-Identifier: Apache-2.0
// What src/platform/futex/freebsd.cpp uses of _umtx_op(2), for its tests on Linux: futexes.cpp.
#pragma once

#include <cstdint>
#include <ctime>

struct _umtx_time {
    timespec _timeout;
    std::uint32_t _flags;
    std::uint32_t _clockid;
};

#define UMTX_ABSTIME 0x01
#define UMTX_OP_WAIT_UINT_PRIVATE 15
#define UMTX_OP_WAKE_PRIVATE 16

int _umtx_op(void* word, int operation, unsigned long value, void* size, void* time);

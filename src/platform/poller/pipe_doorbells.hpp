// SPDX-License-Identifier: Apache-2.0
// Doorbells that are pipes, for the mechanisms of posix.cpp and kqueue.cpp, which share one pool. A strike writes one
// byte into the pipe. The byte stays there until the sleeper has seen it.
#pragma once

#include "platform/poller/doorbells.hpp"

#include <poll.h>

namespace tocsin::platform {

struct pipe_doorbells {
    static doorbell_pool& doorbells() noexcept;
    static void*& shared_state() noexcept;
    static int make_doorbell(int (&ends)[2]) noexcept;
    static int make_flag(int (&ends)[2]) noexcept { return make_doorbell(ends); }
    static void strike(int descriptor, bool even) noexcept;

    // The condition for which a sleeper polls its doorbell.
    static short struck(const doorbell&) noexcept { return POLLIN; }
    // If the poll found the bell struck, empties the pipe, answers the bell and returns true. `found` is what the poll
    // reported for the bell.
    static bool was_rung(doorbell& bell, int found) noexcept;
};

}  // namespace tocsin::platform

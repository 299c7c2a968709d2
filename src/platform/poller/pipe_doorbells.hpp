// Doorbells that are pipes, for the mechanisms of posix.cpp and kqueue.cpp, which share one pool. A pipe holds one byte
// from its ring until its sleeper has seen it.
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

    // What a sleeper polls its doorbell for.
    static short struck(const doorbell&) noexcept { return POLLIN; }
    // Answers the bell if the poll found it struck.
    static bool was_rung(doorbell& bell, int found) noexcept;
};

}  // namespace tocsin::platform

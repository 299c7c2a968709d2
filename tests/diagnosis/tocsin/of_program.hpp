// SPDX-License-Identifier: Apache-2.0
// A header of a program, in a folder that is called like the library's.
#pragma once

#include <tocsin/semaphore.hpp>

#include <atomic>

extern std::atomic<int> returned;  // counts, so that no call is the last thing that its function does

inline tocsin::counting_semaphore<> never_released(0);
[[gnu::noinline]] inline void waits_in_a_header() {
    never_released.acquire();
    ++returned;
}

// SPDX-License-Identifier: Apache-2.0
// Checks whether an event works in every way. Tests use it before main and after it, in destructors, and in the child
// of a fork.
#pragma once

#include "facts.hpp"

#include <tocsin/address.hpp>
#include <tocsin/event.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace support {

// Sets, waits, resets, sleeps and, if it may start threads, wakes. Returns false if anything is not as it should be.
template <class Event>
bool everything_works_on(Event& event, bool with_threads = true) {
    event.reset();
    if (event.is_set() || event.try_wait()) return false;
    event.set();
    event.wait();
    event.reset();
    if (event.wait_for(std::chrono::microseconds(100)) != tocsin::wait_status::timed_out) return false;
    if (!with_threads) return true;
    std::atomic<bool> woke{false};
    std::thread waiter([&] {
        event.wait();
        woke.store(true);
    });
    until_parked(&event, 1);
    event.set();
    waiter.join();
    if (!woke.load()) return false;
    event.reset();
    std::atomic<std::uint16_t> word{0};
    std::thread sleeper([&] { (void)tocsin::wait_on_address(&word, std::uint16_t{0}); });
    until_parked(&word, 1);
    if (tocsin::wake_by_address_all(&word) != 1) return false;
    sleeper.join();
    return true;
}

}  // namespace support

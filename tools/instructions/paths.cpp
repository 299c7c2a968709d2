// SPDX-License-Identifier: Apache-2.0
// The paths on which nobody sleeps, in loops, for count.py: `paths PATH ROUNDS`. Compiled with the library in the same
// unit.
#define TOCSIN_IMPLEMENTATION
#include "tocsin.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constinit tocsin::auto_reset_event event;
constinit tocsin::manual_reset_event gate;
constinit tocsin::word_lock<> lock;
constinit std::atomic<std::uint32_t> word{0};

// Keeps the compiler from moving or joining the rounds.
void barrier() { __asm__ __volatile__("" ::: "memory"); }

template <class Path>
void run(const char* chosen, const char* name, long rounds, Path path) {
    if (std::strcmp(chosen, name) != 0) return;
    for (long i = 0; i != rounds; ++i) {
        path();
        barrier();
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const char* chosen = arguments[1];
    long rounds = 0;
    for (const char* digit = arguments[2]; *digit != '\0'; ++digit) rounds = rounds * 10 + (*digit - '0');
    gate.set();
    run(chosen, "nothing", rounds, [] {});
    run(chosen, "poll", rounds, [] {
        if (event.is_set()) std::abort();
    });
    run(chosen, "set_again", rounds, [] { gate.set(); });
    run(chosen, "set_and_try_wait", rounds, [] {
        event.set();
        barrier();
        if (!event.try_wait()) std::abort();
    });
    run(chosen, "set_and_wait", rounds, [] {
        event.set();
        barrier();
        event.wait();
    });
    run(chosen, "lock_and_unlock", rounds, [] {
        lock.lock();
        barrier();
        lock.unlock();
    });
    run(chosen, "wake_nobody", rounds, [] { tocsin::wake_by_address_one(&word); });
}

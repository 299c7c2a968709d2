// SPDX-License-Identifier: Apache-2.0
#include <tocsin/barrier.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/word_lock.hpp>

#include <utility>

void pass_quietly() {
    tocsin::barrier(1, []() noexcept {}).arrive_and_wait();
}

// expect only: tocsin: a barrier calls its completion function without arguments
#ifdef MISUSE_barrier_completion_may_throw
void pass_or_throw() {
    tocsin::barrier(1, []() {}).arrive_and_wait();
}
#endif

void wait_once(tocsin::barrier<>& all) { all.wait(all.arrive()); }

// expect: use of deleted function|deleted (copy )?constructor
#ifdef MISUSE_barrier_token_copied
void wait_twice(tocsin::barrier<>& all) {
    auto token = all.arrive();
    auto copy = token;
    all.wait(std::move(copy));
}
#endif

std::atomic<std::uint32_t> flags;
tocsin::bit_lock guard(flags, 31);

// expect: needs an unsigned integer of 1, 2, 4 or 8 bytes
#ifdef MISUSE_bit_lock_of_signed_word
std::atomic<std::int32_t> signed_flags;
tocsin::bit_lock wrong(signed_flags, 31);
#endif

struct item {
    item() = default;
    item(item&&) noexcept(false) {}
};
tocsin::channel<item*> pointers(1);

// expect only: tocsin: a channel moves its items after two threads have agreed on it
#ifdef MISUSE_channel_of_throwing_moves
tocsin::channel<item> items(1);
#endif

constinit tocsin::latch zero(0);

// expect: die_of_misuse
#ifdef MISUSE_latch_of_negative_number
constinit tocsin::latch negative(-1);
#endif

tocsin::word_lock<> mutex;

// expect: use of deleted function|deleted constructor
#ifdef MISUSE_lock_copied
tocsin::word_lock<> copy(mutex);
#endif

bool tried() { return mutex.try_lock(); }

// expect: unused-result
#ifdef MISUSE_lock_try_ignored
void ignored(tocsin::word_lock<>& mutex) { mutex.try_lock(); }
#endif

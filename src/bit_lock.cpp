// The half of bit_lock.hpp (and so of word_lock.hpp) that waits and wakes.
//
// State: one bit of the user's word, which is on while the lock is held, and a queue in the lot under the key of that
// address and that bit.
//
// Invariants
//   bit_lock-1  Each bit has a key of its own. So a wake for one bit is never spent on a waiter for another bit, nor on
//       an address wait of the user on the same word.
//   bit_lock-2  unlock() uses only the address after its read-modify-write: the next holder may destroy the word.
//   bit_lock-3  A released thread tries again. If another thread was faster, the unlock() of that thread wakes the
//       next.
//
// No lost wake-up: as for address waits (address.cpp), with the lock's bit as the value and the read-modify-write of
// unlock() as the change. A timed wait that is released but does not get the lock has found it held. So an unlock() is
// still to come, which looks for waiters again (bit_lock-3).
//
// Memory order
//   [lock-release]  the read-modify-write of unlock() releases, the one that takes the lock acquires.
//   [wake-check]    the read-modify-write and fence of unlock() against the fence of prepare_wait(). On x86 the
//                   read-modify-write is both.
//
// Checked by: tests/model/lock_model_test.cpp, tests/unit/{word,bit}_lock_test.cpp, tests/stress/.
#include "core/lot/lot.hpp"
#include "core/wait/spinner.hpp"
#include "platform/system/system.hpp"

#include <tocsin/bit_lock.hpp>

#include <cstdio>

namespace tocsin::detail {
namespace {

core::wait_key key_of(const void* word, unsigned bit) noexcept {
    return {word, static_cast<core::wait_kind>(static_cast<unsigned>(core::wait_kind::lock_bit_0) + bit)};
}

// Sleeps until released; false if the deadline passed first. Returns at once if the lock is free.
bool sleep_while_taken(const lock_word& lock, const wait_options& options) noexcept {
    const core::wait_key key = key_of(lock.word, lock.bit);
    core::waiter self;
    core::wait_node node(key, self, core::can_cancel(options));
    {
        core::locked_queue queue(key);
        queue.prepare_wait();
        if (!lock.is_taken(lock.word, lock.bit)) return true;
        queue.append(node);
    }
    if (self.sleep(options) == core::claim::signaled) return true;
    core::locked_queue(key).remove(node);
    return false;
}

}  // namespace

bool lock_slow(const lock_word& lock, const deadline& until, spin_policy spin) noexcept {
    const wait_options options{until, nullptr, spin};
    const auto take = [&]() noexcept { return lock.take(lock.word, lock.bit); };
    while (!until.has_passed()) {
        core::spinner looking(key_of(lock.word, lock.bit), options);
        if (looking.before_parking(take) || looking.while_parked(take))
            return true;  // not parked: nothing to miss
        if (!sleep_while_taken(lock, options)) break;
        if (take()) return true;
    }
    return take();
}

void unlock_wake(const void* word, unsigned bit) noexcept {
    const core::wait_key key = key_of(word, bit);
    const auto fence = [] {
        if (!rmw_is_full_fence()) full_fence();  // [wake-check]
    };
    if (!core::may_be_waited_on(key, fence)) return;
    core::release_list freed;
    {
        core::locked_queue queue(key);
        freed = queue.take_one();
    }
    freed.wake();
}

void unlocked_twice(const void* word, unsigned bit) noexcept {
    char message[128];
    std::snprintf(message, sizeof message,
                  "tocsin: lock at %p, bit %u, unlocked although it was not locked\n", word, bit);
    platform::die(message);
}

}  // namespace tocsin::detail

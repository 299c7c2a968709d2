// SPDX-License-Identifier: Apache-2.0
// Any system with a C++ standard library. A sleeper has a condition variable on its own stack and queues itself in the
// slot of its word. A slot's lock is a mutex. wait_table.hpp explains the slots, and why no wake-up is lost.
//
// Unlike the waits of the other backends, this backend's wait may be a pthread cancellation point. On some systems a
// wait with a steady deadline may end late if the system clock is set back (condition_wait.hpp).
//
// Checked by: tests/internal/futex_test.cpp; every suite, run again in the portable build.
#include "platform/futex/condition_wait.hpp"
#include "platform/futex/futex.hpp"
#include "platform/futex/wait_table.hpp"
#include "platform/system/system.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tocsin::platform {
namespace {

struct sleeper : queued_sleeper<sleeper> {
    using queued_sleeper::queued_sleeper;
    std::condition_variable wake{};
};

struct slot {
    std::mutex mutex;
    sleeper_queue<sleeper> queue;
};

constinit wait_table<slot> table{3};

sleep_result sleep_in_table(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    slot& its_slot = table.slot_of(&word);
    std::unique_lock lock(its_slot.mutex);
    if (word.load(std::memory_order_relaxed) != expected)
        return sleep_result::returned;  // no order: the mutex gives it
    sleeper self(&word);
    its_slot.queue.append(self);
    const auto woken = [&self] { return self.woken; };
    if (until.is_never()) {
        self.wake.wait(lock, woken);
    } else if (until.which() == deadline::clock::steady) {
        wait_until<std::chrono::steady_clock>(self.wake, lock, until.nanoseconds(), woken);
    } else {
        wait_until<std::chrono::system_clock>(self.wake, lock, until.nanoseconds(), woken);
    }
    if (self.woken) return sleep_result::returned;
    its_slot.queue.remove(self);
    return sleep_result::timed_out;
}

}  // namespace

template <>
sleep_result portable_futex::wait(const futex_word& word, std::uint32_t expected,
                                  const deadline& until) noexcept {
    const errno_guard guard;
    return sleep_until(until, [&](const deadline& end) { return sleep_in_table(word, expected, end); });
}

template <>
void portable_futex::wake_one(const void* word) noexcept {
    const errno_guard guard;
    slot& its_slot = table.slot_of(word);
    const std::lock_guard lock(its_slot.mutex);
    if (sleeper* const found = its_slot.queue.take(word)) found->wake.notify_one();
}

// Counts the sleepers on the word, then wakes that many, the oldest first. Does not keep the lock in between, because a
// woken sleeper takes the lock before it returns.
template <>
void portable_futex::wake_all(const void* word) noexcept {
    std::size_t left;
    {
        const errno_guard guard;
        slot& its_slot = table.slot_of(word);
        const std::lock_guard lock(its_slot.mutex);
        left = its_slot.queue.count(word);
    }
    for (; left != 0; --left) wake_one(word);
}

template <>
void portable_futex::after_fork() noexcept {
    table.forget_sleepers();
}

template <>
void** portable_futex::sleepers() noexcept {
    return table.in_use();
}

}  // namespace tocsin::platform

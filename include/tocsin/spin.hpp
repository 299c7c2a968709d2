// SPDX-License-Identifier: Apache-2.0
// How long a waiting thread spins or yields before it sleeps. The policy is set for one call or for the whole process.
#pragma once

#include <tocsin/detail/config.hpp>

#include <chrono>
#include <cstdint>

namespace tocsin {

// A thread that must wait can spin (look again and again for a moment), yield (let other threads run, then look again),
// or sleep. Waking a thread that sleeps costs two context switches and, if its core is idle, several microseconds.
// Spinning keeps a core busy instead.
//
// The default policy, `adaptive()`, learns for each address whether spinning or yielding has recently paid. Where
// neither has, a wait mostly sleeps at once. The time of every spin is bounded, and so is the number of yields. On one
// CPU no thread spins.
//
// A policy applies to waits for events, semaphores, conditions, latches, barriers, addresses and locks, to wait_any()
// and wait_all(), and to waits in a wait_set. All other waits sleep at once. A thread that waits for a lock spins and
// yields before it is queued. A thread in a semaphore's acquire() spins before it is queued or, if permits are held for
// a few microseconds at most, yields before it is queued and spins afterwards (semaphore.hpp). With descriptors,
// wait_any() and a wait_set spin only under an adaptive policy, and never yield. A wait_all() does not spin while a
// timer is among its sources and has not passed. A group_commit never spins, and yields only under an adaptive policy.
class spin_policy {
public:
    // The policy of the process (set_spin_policy()), which is `adaptive()` until it is set.
    constexpr spin_policy() noexcept = default;

    // Sleeps at once.
    static constexpr spin_policy none() noexcept { return spin_policy(mode::none, 0); }

    // Does what has recently paid. If spinning has, the thread spins before it is queued, for up to 4 us and no longer
    // than `longest`. If it has not, the thread tries again now and then, in up to three waits in a row. It is then
    // queued first, and spins for up to twice the time that waking a thread has taken here, which is measured, and for
    // no longer than 100 us and `longest`. If yielding has paid, the thread yields after it is queued. (At a lock, it
    // always spins and yields before it is queued. At a condition, at a channel, and at a semaphore at which it has
    // yielded before, it always spins after it is queued. Waits for latches learn for each thread, not for each latch,
    // because a latch works once.)
    static constexpr spin_policy adaptive(
        std::chrono::nanoseconds longest = std::chrono::microseconds(100)) noexcept {
        return spin_policy(mode::adaptive, longest.count());
    }

    // Does not learn: queues the thread, spins for `longest` (a second at most), and then sleeps. (At a lock, the
    // thread spins before it is queued.) For a thread that may keep a core busy to react faster.
    static constexpr spin_policy fixed(std::chrono::nanoseconds longest) noexcept {
        return spin_policy(mode::fixed, longest.count());
    }

    // Which policy this is, and the longest spin that it was given. (32 bits, so that a policy has no padding.)
    enum class mode : std::uint32_t { process, none, adaptive, fixed };
    constexpr mode which() const noexcept { return mode_; }
    constexpr std::chrono::nanoseconds longest() const noexcept { return std::chrono::nanoseconds(longest_); }
    friend constexpr bool operator==(spin_policy, spin_policy) noexcept = default;

private:
    static constexpr std::int64_t max = 1'000'000'000;  // a second: no thread spins for longer

    constexpr spin_policy(mode which, std::int64_t nanoseconds) noexcept
        : longest_(static_cast<std::uint32_t>(nanoseconds < 0     ? 0
                                              : nanoseconds > max ? max
                                                                  : nanoseconds)),
          mode_(which) {}

    std::uint32_t longest_ = 0;
    mode mode_ = mode::process;
};

// Sets the policy of all waits whose call names no policy. Any thread may call this at any time. A wait under way keeps
// the policy with which it began. (A call that waits several times internally, as lock() may, looks at the policy each
// time.) `spin_policy()` restores the default, `adaptive()`.
TOCSIN_API void set_spin_policy(spin_policy policy) noexcept;
[[nodiscard]] TOCSIN_API spin_policy process_spin_policy() noexcept;

#if TOCSIN_COUNTERS
// What the waits of the process have done since the process began. A wait to which none of the first three counters
// applies is not counted. A call that waits several times internally, as lock() may, is counted each time.
struct wait_counters {
    std::uint64_t spun = 0;     // waits that ended while spinning
    std::uint64_t yielded = 0;  // waits that ended after yielding to the scheduler
    std::uint64_t slept = 0;    // waits that slept
    std::uint64_t woken = 0;    // sleepers woken (one system call may wake several)
};
// The counters now. Only in builds with TOCSIN_COUNTERS.
[[nodiscard]] TOCSIN_API wait_counters read_wait_counters() noexcept;
#endif

}  // namespace tocsin

// How long a wait looks before it sleeps: for one call, or for the process.
#pragma once

#include <tocsin/detail/config.hpp>

#include <chrono>
#include <cstdint>

namespace tocsin {

// A thread that must wait can look again for a moment (spin), let other threads run and look again (yield), or sleep.
// Waking a sleeper costs two switches and, on an idle core, several microseconds. Spinning burns that time instead. The
// default policy learns for each address whether spinning or yielding has paid recently. Where neither has, a wait
// mostly sleeps at once. Every spin is bounded in time, and yielding in number. On one CPU no thread spins. Waits on
// events, addresses and locks spin, and so does wait_any(); all other waits sleep at once. For a lock, a thread spins
// and yields before it is queued. With descriptors, wait_any() spins only adaptively, and never yields.
class spin_policy {
public:
    // The policy of the process (set_spin_policy()), which is `adaptive()` until it is set.
    constexpr spin_policy() noexcept = default;

    // Sleep at once.
    static constexpr spin_policy none() noexcept { return spin_policy(mode::none, 0); }

    // Do what has helped recently: spin before the thread is queued, for up to 4 us and no longer than `longest`; and
    // yield once it is queued.
    static constexpr spin_policy adaptive(
        std::chrono::nanoseconds longest = std::chrono::microseconds(4)) noexcept {
        return spin_policy(mode::adaptive, longest.count());
    }

    // In every wait, spin for `longest` (a second at most) after the thread is queued, then sleep. (For a lock, spin
    // before it is queued.) For a thread that may burn a core for latency.
    static constexpr spin_policy fixed(std::chrono::nanoseconds longest) noexcept {
        return spin_policy(mode::fixed, longest.count());
    }

    enum class mode : std::uint8_t { process, none, adaptive, fixed };
    constexpr mode which() const noexcept { return mode_; }
    constexpr std::chrono::nanoseconds longest() const noexcept { return std::chrono::nanoseconds(longest_); }
    friend constexpr bool operator==(spin_policy, spin_policy) noexcept = default;

private:
    static constexpr std::int64_t most = 1'000'000'000;  // a second: no thread spins for longer

    constexpr spin_policy(mode which, std::int64_t nanoseconds) noexcept
        : longest_(static_cast<std::uint32_t>(nanoseconds < 0      ? 0
                                              : nanoseconds > most ? most
                                                                   : nanoseconds)),
          mode_(which) {}

    std::uint32_t longest_ = 0;
    mode mode_ = mode::process;
};

// Sets the policy of every wait that is given none. Any thread may call it at any time; waits under way keep theirs.
// Setting `spin_policy()` restores the default.
TOCSIN_API void set_spin_policy(spin_policy policy) noexcept;
[[nodiscard]] TOCSIN_API spin_policy process_spin_policy() noexcept;

#if TOCSIN_COUNTERS
// What the waits of the process have done since it began. A wait that did none of the first three is not counted. A
// call that waits several times inside, as lock() may, counts each time.
struct wait_counters {
    std::uint64_t spun = 0;     // waits that ended while spinning
    std::uint64_t yielded = 0;  // waits that ended after yielding to the scheduler
    std::uint64_t slept = 0;    // waits that slept
    std::uint64_t woken = 0;    // sleepers woken: system calls made to wake
};
[[nodiscard]] TOCSIN_API wait_counters read_wait_counters() noexcept;
#endif

}  // namespace tocsin

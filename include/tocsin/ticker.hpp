// SPDX-License-Identifier: Apache-2.0
// A timer that is ready again and again, at the points of a grid: a source for wait_any(), wait_all(), coroutines,
// operations, senders and the headers for Asio, libuv and GLib.
//
//     auto second = tocsin::every(1s);                          // the first tick is a second from now
//     while (tocsin::wait_any(shutdown, second).index == 1) {
//         draw();
//         if (second.ticks() > 1) log("late");                  // one report stands for all ticks that have passed
//     }
//
// The grid does not drift: tick n is at `first + n * period` on the clock of `first`, however late a wait comes. A wait
// that comes after several ticks reports them once. So a late loop never gets a burst of reports. Whoever only wants to
// act at most once per tick ignores the number; whoever counts adds it up.
//
// The same for a timer in a wait_set: wait_timer::reset_every() (wait_set.hpp). To be woken by signals, but at most
// once per interval: coalescer.hpp.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/repetition.hpp>
#include <tocsin/source.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>

namespace tocsin {

// One wait at a time may have it as a source (a wait over several may name it more than once), and no thread may call
// reset() or stop() meanwhile. A wait that takes the ticker moves it to its next tick when the wait returns, in the
// thread or coroutine that waited. A wait that ends otherwise, or whose coroutine or operation is destroyed, moves
// nothing: the next wait reports the tick. Owns and allocates nothing. It neither copies nor moves, because the sources
// made from it refer to it.
class ticker {
public:
    // The first tick is one period from now, on the steady clock.
    template <class Rep, class Period>
    explicit ticker(std::chrono::duration<Rep, Period> period) : ticker(deadline(period), period) {}
    // The first tick is at `first`, which may be on any clock. If it has passed already, the first wait reports it,
    // with all ticks since. `first` may be a duration: counted from now, and zero for a first tick at once. If `first`
    // was made from a time point of a clock of your own, the ticker refers to that time point (deadline.hpp).
    // A tick on the system clock follows that clock. If somebody sets it forward by an hour, one report stands for the
    // ticks of that hour; if somebody sets it back, the next tick is at its point of the grid, up to an hour later.
    // The period is rounded up to whole nanoseconds; one that is out of range never ends. Throws std::invalid_argument
    // if it is zero or less.
    template <class Rep, class Period>
    ticker(const deadline& first, std::chrono::duration<Rep, Period> period) {
        reset(first, period);
    }
    ticker(const ticker&) = delete;
    ticker& operator=(const ticker&) = delete;

    // Begins a new grid, as the constructors do. If it throws, the ticker is as it was before.
    template <class Rep, class Period>
    void reset(std::chrono::duration<Rep, Period> period) {
        reset(deadline(period), period);
    }
    template <class Rep, class Period>
    void reset(const deadline& first, std::chrono::duration<Rep, Period> period) {
        const std::int64_t length = detail::nanoseconds_up(period);
        if (length <= 0)
            detail::throw_or_die(
                std::invalid_argument("tocsin::ticker: the period must be longer than zero"));
        ticks_.next =
            first.which() == deadline::clock::passed ? deadline(std::chrono::steady_clock::now()) : first;
        ticks_.period = length;
    }
    // From now on there are no ticks, until reset().
    void stop() noexcept { ticks_.next = deadline::never(); }

    // For how many ticks the last report stands: 1 if the wait came in time. 0 before the first report.
    std::uint64_t ticks() const noexcept { return ticks_.ticks; }
    // When the next tick is, or `never` after stop().
    const deadline& next() const noexcept { return ticks_.next; }

    // Takes the tick if one has passed, and returns whether it did. Cost: a look at the clock; if it takes the tick,
    // another.
    [[nodiscard]] bool try_wait() noexcept {
        if (!ticks_.next.has_passed()) return false;
        ticks_.advance();
        return true;
    }
    operator source() & noexcept { return source(ticks_); }  // implicit on purpose

private:
    detail::repetition ticks_;
};

// Makes a ticker: `auto second = every(1s);`.
template <class Rep, class Period>
[[nodiscard]] ticker every(std::chrono::duration<Rep, Period> period) {
    return ticker(period);
}
template <class Rep, class Period>
[[nodiscard]] ticker every(std::chrono::duration<Rep, Period> period, const deadline& first) {
    return ticker(first, period);
}

}  // namespace tocsin

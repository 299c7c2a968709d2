// SPDX-License-Identifier: Apache-2.0
// Waiting for the first of several things, or for all of them at once.
//
//     tocsin::auto_reset_event job;
//     tocsin::manual_reset_event shutdown;
//     switch (tocsin::wait_any(shutdown, job).index) {
//         case 0: return;
//         case 1: work(); break;
//     }
//     if (tocsin::wait_any({.until = 50ms}, job, tocsin::at(tomorrow)).status == tocsin::wait_status::timed_out) ...
//     tocsin::wait_all(left_fork, right_fork);
//
// A call takes any number of sources in any mix, one by one or as a span. Sources are events, semaphores
// (semaphore.hpp), latches (latch.hpp), wait groups (wait_group.hpp), a barrier's tokens (barrier.hpp), timers, tickers
// (ticker.hpp), descriptors (fd.hpp), sends and receives of channels (channel.hpp), and custom sources
// (source.hpp). Below, what is said of a manual-reset event is true of a latch, a wait group and a token, too.
//
// A wait for up to 16 sources allocates nothing. A wait for more allocates one block of memory (wait_any() only when it
// has to sleep), and frees it at its end. If more than 16 of these sources are descriptors, it also holds a second
// block until its end. If more than 64 are, it also holds a third block during each poll.
//
// A deadline, a stop token and a spin policy are given as `limits`, before the sources (limits.hpp).
//
// A wait sleeps on one clock only. If its timers and its deadline are on several clocks, the wait judges at its
// beginning which time will pass first, and sleeps on the clock of that time. (Of the timers of a wait_all(), the last
// counts.) If somebody sets the system clock during the wait, the wait may notice a timer or a deadline on another
// clock late.
//
// These errors are thrown before the wait begins. (A program built without exceptions ends instead, with the message of
// the exception.)
// - std::invalid_argument if there are no sources, or if a source is empty. (A wait_any() that takes a source at the
//   front of the list may leave the sources behind it unchecked.)
// - In wait_all(), also std::invalid_argument if a source occurs twice (only timers may), is a descriptor or an object
//   that processes share, or is a custom source that does not declare that it stays ready. (If such a
//   source is given outside a list, the call does not compile.)
// - std::bad_alloc.
// Waits with descriptors throw further errors: see fd.hpp.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/event_state.hpp>
#include <tocsin/detail/source_arguments.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

namespace tocsin {

// A timer as a source. It is ready once the duration (counted from this call) or the time point (of any clock) has
// passed. When a thread waits for a timer, the timer becomes a deadline of the wait, so it needs no other thread and no
// descriptor. (On Linux, a wait that also has descriptors opens one for a timer on the system clock.) A time point of a
// clock of your own must outlive the source, which refers to it.
template <class Rep, class Period>
source after(std::chrono::duration<Rep, Period> from_now) noexcept {
    return source(deadline(from_now));
}
template <class Clock, class Duration>
source at(const std::chrono::time_point<Clock, Duration>& when) noexcept {
    return source(deadline(when));
}

// A source that is never ready. It takes the place of a source that a list leaves out, so that the others keep their
// indices: for a channel that has been closed and is empty, for instance, whose receive would be ready again and again.
//
//     wait_any(a_open ? source(next_a) : never_ready(), b_open ? source(next_b) : never_ready());
inline source never_ready() noexcept { return source(deadline::never()); }

// How a wait for any of several sources ended.
struct any_result {
    // The index of a wait that timed out or was stopped. It names no source.
    static constexpr std::size_t npos = static_cast<std::size_t>(-1);

    wait_status status;                 // `signaled`: it took a source
    std::size_t index = npos;           // of the source that was taken, if `status` is `signaled`
    readiness found = readiness::none;  // what was found, if that source is a descriptor

    friend bool operator==(const any_result&, const any_result&) noexcept = default;
};

namespace detail {

struct lock_reference;

// If `lock` is not null, the wait gives the lock up once the thread is queued for all sources, and does not spin before
// that. The caller takes the lock back.
TOCSIN_API any_result wait_any_slow(std::span<const source> sources, const limits& how,
                                    lock_reference* lock = nullptr);
TOCSIN_API wait_status wait_all_slow(std::span<const source> sources, const limits& how);

// The inline part of a wait's first look. Looks only at the leading sources. In a list, these are the sources with a
// ready bit (events, latches ...) before the first that has none. If the sources are given one by one, they are the
// events and the custom sources before the first of another kind. Takes the first leading source that is
// ready. Returns its index, or npos if it took none.
inline std::size_t take_leading(std::span<const source> sources) noexcept {
    for (std::size_t i = 0; i != sources.size() && sources[i].has_ready_bit(); ++i) {
        if (!may_be_ready(sources[i].lot(), sources[i].object())) continue;
        return sources[i].lot().try_take(sources[i].object()) ? i : any_result::npos;
    }
    return any_result::npos;
}
template <class... Sources>
std::size_t take_leading(Sources&... from) noexcept {
    std::size_t index = any_result::npos;
    std::size_t seen = 0;
    const auto ends_it = [&](auto& one) {
        if constexpr (event_like<decltype(one)> || custom_source<std::remove_reference_t<decltype(one)>>) {
            if (one.try_wait()) index = seen;
            ++seen;
            return index != any_result::npos;
        } else {
            return true;
        }
    };
    (void)(ends_it(from) || ...);
    return index;
}

template <class... Sources>
any_result wait_any_each(const limits& how, Sources&... from) {
    if constexpr (are_sources<lists::taken, Sources...>()) {
        if (looks_as_listed(how)) [[likely]] {
            if (const auto i = take_leading(from...); i != any_result::npos)
                return {wait_status::signaled, i};
        }
        return wait_any_slow(std::array{source(from)...}, how);
    } else {
        return refused<any_result>();
    }
}
template <class... Sources>
wait_status wait_all_each(const limits& how, Sources&... from) {
    if constexpr (are_sources_of<lists::taken, true, Sources...>()) {
        return wait_all_slow(std::array{source(from)...}, how);
    } else {
        return refused<wait_status>();
    }
}

}  // namespace detail

// Waits until a source is ready, and takes that source and no other. Taking consumes an auto-reset event or a permit of
// a semaphore, and leaves a manual-reset event set. If several sources are ready at the start, takes the one with the
// lowest index. It does so even if the deadline has passed or a stop was requested. (`order` and `stop_first` of the
// limits choose otherwise.) The same source may occur twice.
// What other threads did before they made the taken source ready is visible to the caller, as after a wait for that
// source alone. Never returns spuriously.
// A wait that times out or is stopped has taken nothing, so it never eats a signal. The index in its result is npos.
// Each event serves its waiters first in, first out, whether they wait in wait_any() or in the event's own wait().
// Cost: if a source is ready, about that of its try_wait(). Otherwise one short lock per source to queue, another per
// source to leave the queue, and one system call to sleep. With 64 events on one core, that is some three times the
// processor time of a wait in a wait_set (wait_set.hpp).
[[nodiscard]] inline any_result wait_any(const limits& how, std::span<const source> sources) {
    if (detail::looks_as_listed(how)) [[likely]] {
        if (const auto i = detail::take_leading(sources); i != any_result::npos)
            return {wait_status::signaled, i};
    }
    return detail::wait_any_slow(sources, how);
}
template <class... Sources>
    requires detail::one_by_one<Sources...>
[[nodiscard]] any_result wait_any(const limits& how, Sources&&... from) {
    return detail::wait_any_each<Sources...>(how, from...);
}
inline any_result wait_any(std::span<const source> sources) { return wait_any(limits(), sources); }
template <class... Sources>
    requires detail::one_by_one<Sources...> && detail::no_limits_first<Sources...>
any_result wait_any(Sources&&... from) {
    return detail::wait_any_each<Sources...>(limits(), from...);
}

// Waits until all sources are ready at the same instant, then takes all of them in one step: no thread sees one of them
// taken and another not. Until then it takes nothing, so a wait that times out or is stopped has taken nothing. A
// thread sleeps until all its sources are ready. (If there are timers among them, it also wakes when the last timer has
// passed, and sleeps again if another source is not ready.) Several wait_all() calls with sources in common do not
// deadlock. Each set() of an auto-reset event serves the wait that has queued longest among those that can take it. A
// wait_all() reserves nothing. So if other waits keep taking its events one by one, it may be long before all are set
// at the same time.
// Cost: that of wait_any(). While a thread waits for all, a set() of one of its events also looks at the other
// sources.
[[nodiscard]] inline wait_status wait_all(const limits& how, std::span<const source> sources) {
    return detail::wait_all_slow(sources, how);
}
template <class... Sources>
    requires detail::one_by_one<Sources...>
[[nodiscard]] wait_status wait_all(const limits& how, Sources&&... from) {
    return detail::wait_all_each<Sources...>(how, from...);
}
inline wait_status wait_all(std::span<const source> sources) { return wait_all(limits(), sources); }
template <class... Sources>
    requires detail::one_by_one<Sources...> && detail::no_limits_first<Sources...>
wait_status wait_all(Sources&&... from) {
    return detail::wait_all_each<Sources...>(limits(), from...);
}

TOCSIN_REFUSE_MISUSE(wait_any, "a, b", ", or make a list first: tocsin::source list[]{a, b}", any_result)
TOCSIN_REFUSE_MISUSE(wait_all, "a, b", ", or make a list first: tocsin::source list[]{a, b}", wait_status)

}  // namespace tocsin

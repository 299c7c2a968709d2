// SPDX-License-Identifier: Apache-2.0
// Helpers for mechanisms that call poll(2). They convert readiness to poll's bits, make the list for one call, and
// repeat the call until a deadline.
#pragma once

#include "platform/poller/doorbells.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/cancellation_disabled.hpp"
#include "platform/system/system.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <poll.h>

namespace tocsin::platform {

short to_poll_events(readiness asked) noexcept;
readiness from_poll_events(short found) noexcept;
// Returns 0 if a descriptor can be in a poll set. Otherwise returns EBADF, or EPERM for a regular file or a directory,
// which epoll refuses, too.
int why_not_in_a_set(int descriptor) noexcept;
// The error for a descriptor that is no member of a set: EBADF or ENOENT.
int why_no_member(int descriptor) noexcept;

// Whether the poll found a doorbell struck. `found` is what the poll reported for the doorbell, and `struck` is the
// condition for which the sleeper polls the doorbell.
inline bool is_struck(int found, short struck) noexcept {
    if ((found & POLLNVAL) != 0) die_of_closed_doorbell();
    return (found & struck) != 0;
}

// This is the `answer_if_struck` that a pool_owner gets (doorbells.hpp). If the program has closed the descriptor,
// returns false and does not stop the program.
template <class Doorbells>
bool answer_if_struck(doorbell& bell) noexcept {
    const errno_guard guard;
    const cancellation_disabled here;
    pollfd one{bell.wait_end(), Doorbells::struck(bell), 0};
    return ::poll(&one, 1, 0) == 1 && (one.revents & POLLNVAL) == 0 && Doorbells::was_rung(bell, one.revents);
}

// What one call polls: the caller's descriptors, then up to two that belong to the poller.
class poll_list {
public:
    explicit poll_list(std::span<poll_entry> what) noexcept;
    ~poll_list();
    poll_list(const poll_list&) = delete;
    poll_list& operator=(const poll_list&) = delete;

    bool has_memory() const noexcept { return at_ != nullptr; }
    // Whether a descriptor is negative. poll(2) skips such a descriptor, but collect() finds it `invalid`. So a poll
    // need not sleep.
    bool has_impossible() const noexcept { return has_impossible_; }

    pollfd& add(int descriptor, short events) noexcept;
    pollfd* data() noexcept { return at_; }
    nfds_t size() const noexcept { return size_; }

    // Writes what poll(2) found into the caller's entries, and returns how many of them are ready.
    std::size_t collect() noexcept;

private:
    static constexpr std::size_t own = 2;

    const std::span<poll_entry> what_;
    bool has_impossible_ = false;
    nfds_t size_ = 0;
    pollfd few_[polled_without_allocation + own];
    pollfd* at_ = few_;
};

inline constexpr std::int64_t no_timeout = -1;

// Calls `call(nanoseconds)` until some descriptors are ready or the deadline has passed. Returns how many are ready, or
// an error as a negative number. `call` sleeps for about `nanoseconds` at most, or without end if `nanoseconds` is
// `no_timeout`. It returns how many descriptors are ready, or -1 with the error in errno.
template <class Call>
int poll_until(const deadline& until, Call call) noexcept {
    for (;;) {
        const int found = static_cast<int>(call(until.is_never() ? no_timeout : until.longest_sleep()));
        if (found > 0) return found;
        if (found < 0 && errno != EINTR) return -errno;
        if (found == 0 && until.has_passed()) return 0;
    }
}

// Implements a mechanism's poll() with three functions of the mechanism:
//   - `Doorbells::struck(bell)` returns the condition for which a sleeper polls the bell.
//   - `Doorbells::was_rung(bell, found)` takes what the poll has reported for the bell. If the poll found the bell
//     struck, it answers the bell and returns true.
//   - `sleep_until(list, until)` polls the list until a descriptor is ready or the deadline has passed. It returns the
//     number of ready descriptors, or an error as a negative number.
template <class Doorbells, class SleepUntil>
poll_result poll_once(std::span<poll_entry> what, doorbell* bell, const deadline& until,
                      SleepUntil sleep_until) noexcept {
    const errno_guard guard;
    poll_list list(what);
    if (!list.has_memory()) return {.error = ENOMEM};
    const auto own = list.size();
    if (bell != nullptr) list.add(bell->wait_end(), Doorbells::struck(*bell));
    const int found =
        sleep_until(list, list.has_impossible() ? deadline(std::chrono::nanoseconds(0)) : until);
    if (found < 0) return {.error = -found};
    poll_result result{.ready = list.collect()};
    if (bell != nullptr) result.rung = Doorbells::was_rung(*bell, list.data()[own].revents);
    result.timed_out = result.ready == 0 && !result.rung;
    return result;
}

inline constexpr std::size_t max_events = 128;

// Implements the wait() of a poll set that the kernel keeps.
// - `descriptor` refers to the kernel's set, which reports `Event`s.
// - `sleep(events, nanoseconds)` sleeps in the set. It returns the number of events, or -1 with the error in errno.
// - `report(events, out)` turns events into the items of the result.
// - `poll(entries, until)` follows the system clock. No timeout of such a set does. So for a deadline on that clock,
//   the thread sleeps in `poll` instead of in the set, and the only entry is the set's descriptor.
template <class Event, class Sleep, class Poll, class Report>
poll_result wait_in_kernel_set(int descriptor, std::span<poll_set::item> out, const deadline& until,
                               Sleep sleep, Poll poll, Report report) noexcept {
    const errno_guard guard;
    Event storage[max_events];
    const auto events = std::span(storage).first(std::min(out.size(), max_events));
    const auto sleep_until = [&]() noexcept -> int {
        if (until.which() != deadline::clock::system) {
            return poll_until(until, [&](std::int64_t left) { return sleep(events, left); });
        }
        poll_entry set{descriptor, readiness::readable};
        const poll_result found = poll({&set, 1}, until);
        if (found.error != 0) return -found.error;
        return found.timed_out ? 0 : std::max(sleep(events, 0), 0);
    };
    for (;;) {
        const int found = sleep_until();
        if (found < 0) return {.error = -found};
        const poll_result result = report(events.first(static_cast<std::size_t>(found)), out);
        if (result.ready != 0 || result.rung || result.error != 0) return result;
        if (found == 0 && until.has_passed()) return {.timed_out = true};
    }
}

}  // namespace tocsin::platform

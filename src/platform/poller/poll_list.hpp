// poll(2) as the pollers use it: readiness in its bits, a list for one call, the deadline around it.
#pragma once

#include "platform/poller/doorbells.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <poll.h>

namespace tocsin::platform {

short to_poll_events(readiness asked) noexcept;
readiness from_poll_events(short found) noexcept;
// 0, or why a descriptor can't be in a standing poll: EBADF, or EPERM for what epoll does not take either, so that sets
// are the same everywhere.
int why_not_in_a_set(int descriptor) noexcept;

// What is polled once: the caller's descriptors, and up to two of the poller's own behind them.
class poll_list {
public:
    explicit poll_list(std::span<poll_entry> what) noexcept;
    ~poll_list();
    poll_list(const poll_list&) = delete;
    poll_list& operator=(const poll_list&) = delete;

    bool is_there() const noexcept { return at_ != nullptr; }  // false: no memory
    // A negative descriptor, which poll(2) passes over: it counts as found, so there is nothing to sleep for.
    bool has_impossible() const noexcept { return has_impossible_; }

    pollfd& add(int descriptor, short events) noexcept;
    pollfd* data() noexcept { return at_; }
    nfds_t size() const noexcept { return size_; }

    // Tells the caller's descriptors what was found; how many of them are ready.
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

// Calls `call(nanoseconds)`, which sleeps so long (or `no_timeout`) and returns how many are ready or -1 and
// errno, until some are ready or the deadline has passed: their number, or 0, or an error as a negative
// number.
template <class Call>
int poll_until(const deadline& until, Call call) noexcept {
    for (;;) {
        const int found = static_cast<int>(call(until.is_never() ? no_timeout : until.remaining()));
        if (found > 0) return found;
        if (found < 0 && errno != EINTR) return -errno;
        if (found == 0 && until.has_passed()) return 0;
    }
}

// poll() of a system that has `struck(bell)`, what a sleeper polls its doorbell for, `sleep(list, until)`,
// like poll_until, and `was_rung(bell, found)`, which answers a bell that was found struck.
template <class Struck, class Sleep, class WasRung>
poll_result poll_once(std::span<poll_entry> what, doorbell* bell, const deadline& until, Struck struck,
                      Sleep sleep, WasRung was_rung) noexcept {
    const errno_guard kept;
    poll_list list(what);
    if (!list.is_there()) return {.error = ENOMEM};
    const auto own = list.size();
    if (bell != nullptr) list.add(bell->wait_end(), struck(*bell));
    const int found = sleep(list, list.has_impossible() ? deadline(std::chrono::nanoseconds(0)) : until);
    if (found < 0) return {.error = -found};
    poll_result result{.ready = list.collect()};
    if (bell != nullptr) result.rung = was_rung(*bell, list.data()[own].revents);
    result.timed_out = result.ready == 0 && !result.rung;
    return result;
}

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// How a thread that waits in the poller sleeps. Why it is correct: core/lot/waiter.cpp.
#pragma once

#include "core/lot/waiter.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/wait_options.hpp>

#include <cstdint>

namespace tocsin::core {

// What a thread polls while it sleeps, the bell that ends its poll, and what the last poll has found.
class poll_sleep {
public:
    // Sleeps until the waiter is released (its release rings the bell), or until a poll finds a descriptor ready, times
    // out or fails. Returns why the wait ended:
    // - If a poll ended the sleep and nobody has claimed the wait yet, this thread claims it. If a descriptor is ready,
    //   the claim is `signaled`, for the source that ready_source() returns. Otherwise it is `timed_out`, even if the
    //   poll failed. found() is what the poll found.
    // - If the wait is claimed otherwise (by a set or a stop, for example), this function returns only after the
    //   waiter's release, even if a poll has ended before. found() is empty.
    claim sleep(waiter& self, const detail::wait_options& options) noexcept;
    const platform::poll_result& found() const noexcept { return found_; }

protected:
    ~poll_sleep() = default;

private:
    virtual platform::doorbell_id bell() const noexcept = 0;
    // Looks, and sleeps once. A ring of the bell ends that sleep, if nothing ends it before.
    virtual platform::poll_result poll(const deadline& until) noexcept = 0;
    // The number of the source that the last poll has found ready.
    virtual std::uint32_t ready_source() const noexcept = 0;

    claim sleep_until(waiter& self, const deadline& until) noexcept;

    platform::poll_result found_;
};

}  // namespace tocsin::core

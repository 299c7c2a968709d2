// SPDX-License-Identifier: Apache-2.0
// How a thread that waits in the poller sleeps. Why it is correct: core/lot/waiter.cpp.
//
// Checked by: tests/model/many_model_test.cpp (polling_model), tests/model/wait_set_poll_model_test.cpp.
#pragma once

#include "core/lot/waiter.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/deadline.hpp>

namespace tocsin::core {

// Sleeps in `poll()` until the waiter is released (its release rings the bell), or until a poll finds a descriptor
// ready, times out or fails. Returns why the wait ended:
// - If a poll ended the sleep and nobody has claimed the wait yet, this thread claims it. If a descriptor is ready, the
//   claim is `signaled`, for the source whose index the caller's `winner()` returns. Otherwise it is `timed_out`, even
//   if the poll failed. `found` is what the poll found.
// - If the wait is claimed otherwise (by a set or a stop, for example), this function returns only after the waiter's
//   release, even if a poll has ended before. `found` is empty.
template <class Poll, class Winner>
claim sleep_polling(waiter& self, platform::doorbell_id bell, platform::poll_result& found, Poll poll,
                    Winner winner) noexcept {
    const auto look = [&]() noexcept {
        found = poll();
        return found.ended();
    };
    if (!self.poll_until_released(bell, look)) {
        const bool ready = found.ready != 0;
        if (!ready) TOCSIN_PROBE(timeout, &self);
        const claim reason = ready ? claim::signaled : claim::timed_out;
        if (self.try_claim(reason, ready ? winner() : 0)) return reason;
        // Another thread has claimed the wait, and releases it now or soon.
        self.sleep_until_released(deadline::never());
    }
    found = {};
    return self.finish();
}

}  // namespace tocsin::core

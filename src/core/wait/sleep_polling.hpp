// How a thread that waits in the poller sleeps. Why it is correct: core/lot/waiter.cpp.
//
// Checked by: tests/model/many_model_test.cpp (polling_model), tests/model/wait_set_poll_model_test.cpp.
#pragma once

#include "core/lot/waiter.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/deadline.hpp>

namespace tocsin::core {

// Sleeps in `poll()`. The sleep ends when the waiter is released (its release rings the bell), or when the poll ends in
// another way before any thread has claimed the wait. Returns why the wait ended. If the poll ended the wait, `found`
// is what the poll found; otherwise `found` is empty. If the poll finds a descriptor ready, the caller's `winner()`
// says for which source the wait is claimed: it returns that source's index.
template <class Poll, class Winner>
claim sleep_polling(waiter& self, platform::doorbell_id bell, platform::poll_result& found, Poll poll,
                    Winner winner) noexcept {
    const auto look = [&]() noexcept {
        found = poll();
        return found.ended();
    };
    if (!self.poll_until_released(bell, look)) {
        const bool ready = found.ready != 0;
        const claim reason = ready ? claim::signaled : claim::timed_out;
        if (self.try_claim(reason, ready ? winner() : 0)) return reason;
        // Another thread has claimed the wait, and releases it now or soon.
        self.sleep_until_released(deadline::never());
    }
    found = {};
    return self.finish();
}

}  // namespace tocsin::core

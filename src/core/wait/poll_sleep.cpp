// SPDX-License-Identifier: Apache-2.0
// The sleep of poll_sleep.hpp: one poll after another, until the waiter is released or a poll ends the wait.
//
// Checked by: tests/model/many_model_test.cpp (polling_model), tests/model/wait_set_poll_model_test.cpp.
#include "core/wait/poll_sleep.hpp"

#include "core/lot/relay.hpp"
#include "core/sync/probe.hpp"

namespace tocsin::core {

claim poll_sleep::sleep(waiter& self, const detail::wait_options& options) noexcept {
    return self.stoppable(options, [&]() noexcept { return sleep_until(self, options.until); });
}

claim poll_sleep::sleep_until(waiter& self, const deadline& until) noexcept {
    bool is_released = !self.enter_polling(bell()) || self.is_released();
    while (!is_released) {
        found_ = poll(until);
        if (found_.ended()) {
            const bool ready = found_.ready != 0;
            if (!ready) TOCSIN_PROBE(timeout, &self);
            const claim reason = ready ? claim::signaled : claim::timed_out;
            if (self.try_claim(reason, ready ? ready_source() : 0)) return reason;
            // Another thread has claimed the wait, and releases it now or soon.
            self.sleep_until_released(deadline::never());
        }
        is_released = self.is_released();
    }
    found_ = {};
    return finish(self);
}

}  // namespace tocsin::core

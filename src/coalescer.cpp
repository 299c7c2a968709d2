// SPDX-License-Identifier: Apache-2.0
// A thread that sleeps in a pause is in no queue. So a signal does not find this thread, and makes no system call for
// it. The signal leaves its source ready for the thread's wait after the pause.
//
// Checked by: tests/unit/coalescer_test.cpp.
#include "core/lot/relay.hpp"
#include "core/wait/source_list.hpp"

#include <tocsin/coalescer.hpp>

namespace tocsin {

wait_status coalescer::pause(const limits& how) const noexcept {
    if (next_.has_passed()) return wait_status::signaled;
    const source end(next_);
    const core::latest_end first({&end, 1}, how.until);
    core::waiter self;  // not queued anywhere: its sleep ends only by a stop or by time
    const core::claim ended = core::sleep(self, {first.when(), how.stop.get(), {}});
    if (ended == core::claim::stopped) return wait_status::stopped;
    return first.timer_that_passed() == core::multi_wait::none ? wait_status::timed_out
                                                               : wait_status::signaled;
}

}  // namespace tocsin

// SPDX-License-Identifier: Apache-2.0
// A thread that sleeps in a pause is in no queue. So a signal does not find this thread, and makes no system call for
// it. The signal leaves its source ready for the thread's wait after the pause.
//
// Checked by: tests/unit/coalescer_test.cpp.
#include "core/lot/waiter.hpp"

#include <tocsin/coalescer.hpp>

namespace tocsin {

wait_status coalescer::pause(const limits& how) const noexcept {
    if (next_.has_passed()) return wait_status::signaled;
    const bool ends_first = how.until.remaining() < next_.remaining();
    core::waiter self;  // not queued anywhere: its sleep ends only by a stop or by time
    const core::claim ended = self.sleep({ends_first ? how.until : next_, how.stop.get(), {}});
    if (ended == core::claim::stopped) return wait_status::stopped;
    return ends_first ? wait_status::timed_out : wait_status::signaled;
}

}  // namespace tocsin

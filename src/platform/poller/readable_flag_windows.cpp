// SPDX-License-Identifier: Apache-2.0
// The flag is a manual-reset kernel event, which is set while the flag is raised. A foreign loop waits for the event's
// handle.
#include "platform/poller/poller.hpp"
#include "platform/poller/readable_flag.hpp"
#include "platform/poller/windows_event_doorbells.hpp"
#include "platform/system/system.hpp"

namespace tocsin::platform {

int readable_flag::open() noexcept { return poller::open_flag(ends_); }

void readable_flag::raise() noexcept { ::SetEvent(handle_of(ends_[0])); }

void readable_flag::lower() noexcept { ::ResetEvent(handle_of(ends_[1])); }

void readable_flag::close() noexcept {
    if (ends_[1] >= 0) close_descriptor(ends_[1]);
}

}  // namespace tocsin::platform

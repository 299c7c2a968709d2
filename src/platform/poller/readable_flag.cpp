// SPDX-License-Identifier: Apache-2.0
// A flag is an event counter (Linux) or a pipe. Each raise writes eight bytes, as an event counter demands. A pipe
// keeps the bytes of every write until they are read. Writes and reads never block. If a write finds no room, the flag
// is already raised, so nothing is lost.
#include "platform/poller/readable_flag.hpp"

#include "platform/poller/poller.hpp"
#include "platform/system/cancellation_disabled.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <cstdint>

#include <unistd.h>

namespace tocsin::platform {

int readable_flag::open() noexcept { return poller::open_flag(ends_); }

void readable_flag::raise() noexcept {
    const errno_guard guard;
    const cancellation_disabled here;
    const std::uint64_t one = 1;
    while (::write(ends_[0], &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void readable_flag::lower() noexcept { (void)take(); }

bool readable_flag::take() noexcept {
    const errno_guard guard;
    const cancellation_disabled here;
    std::uint64_t up[64];
    constexpr int more_than_a_pipe_holds = 256;
    bool was_up = false;
    for (int i = 0; i != more_than_a_pipe_holds; ++i) {
        const auto read = ::read(ends_[1], up, sizeof up);
        if (read < 0 && errno == EINTR) continue;
        was_up = was_up || read > 0;
        if (read != sizeof up) break;  // that was all
    }
    return was_up;
}

void readable_flag::close() noexcept {
    if (ends_[1] < 0) return;
    if (ends_[0] != ends_[1]) close_descriptor(ends_[0]);
    close_descriptor(ends_[1]);
}

}  // namespace tocsin::platform

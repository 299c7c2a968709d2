// A flag is an event counter (Linux) or a pipe. Each raise writes eight bytes, as an event counter demands. A pipe
// keeps the bytes of every write until they are read. Writes and reads never block. If a write finds no room, the flag
// is already raised, so nothing is lost.
#include "platform/poller/readable_flag.hpp"

#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <cstdint>

#include <unistd.h>

namespace tocsin::platform {

int readable_flag::open() noexcept { return poller::open_flag(ends_); }

void readable_flag::raise() noexcept {
    const errno_guard guard;
    const std::uint64_t one = 1;
    while (::write(ends_[0], &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void readable_flag::lower() noexcept {
    const errno_guard guard;
    std::uint64_t up[64];
    while (::read(ends_[1], up, sizeof up) < 0 && errno == EINTR) {
    }
}

void readable_flag::close() noexcept {
    if (ends_[1] < 0) return;
    const errno_guard guard;
    if (ends_[0] != ends_[1]) ::close(ends_[0]);
    ::close(ends_[1]);
}

}  // namespace tocsin::platform

// Eight bytes are what an event counter takes and gives; in a pipe they are eight bytes. Neither blocks: a write that
// finds no room finds it up.
#include "platform/poller/readable_flag.hpp"

#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <cstdint>

#include <unistd.h>

namespace tocsin::platform {

int readable_flag::open() noexcept { return poller::open_flag(ends_); }

void readable_flag::raise() noexcept {
    const errno_guard kept;
    const std::uint64_t one = 1;
    while (::write(ends_[0], &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void readable_flag::lower() noexcept {
    const errno_guard kept;
    std::uint64_t up[64];
    while (::read(ends_[1], up, sizeof up) < 0 && errno == EINTR) {
    }
}

void readable_flag::close() noexcept {
    if (ends_[1] < 0) return;
    const errno_guard kept;
    if (ends_[0] != ends_[1]) ::close(ends_[0]);
    ::close(ends_[1]);
}

}  // namespace tocsin::platform

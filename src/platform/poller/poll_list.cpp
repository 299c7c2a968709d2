// SPDX-License-Identifier: Apache-2.0
#include "platform/poller/poll_list.hpp"

#include <cerrno>
#include <new>

#include <fcntl.h>
#include <sys/stat.h>

namespace tocsin::platform {
namespace {

#if defined(POLLRDHUP)
constexpr short peer_closed = POLLRDHUP;
#else
constexpr short peer_closed = 0;
#endif

struct pair {
    readiness ours;
    short theirs;
};
constexpr pair pairs[] = {
    {readiness::readable, POLLIN}, {readiness::writable, POLLOUT},
    {readiness::urgent, POLLPRI},  {readiness::hang_up, static_cast<short>(POLLHUP | peer_closed)},
    {readiness::error, POLLERR},   {readiness::invalid, POLLNVAL},
};

}  // namespace

short to_poll_events(readiness asked) noexcept {
    int events = 0;
    for (const pair& each : pairs) events |= has(asked, each.ours) ? each.theirs : 0;
    return static_cast<short>(events);
}

readiness from_poll_events(short found) noexcept {
    readiness result = readiness::none;
    if (found == 0) return result;  // as of most descriptors of most polls
    for (const pair& each : pairs) {
        if ((found & each.theirs) != 0) result = result | each.ours;
    }
    return result;
}

int why_not_in_a_set(int descriptor) noexcept {
    struct stat what{};
    if (::fstat(descriptor, &what) != 0) {  // Emscripten 3.1.6 over Node's files: fstat fails for pipes
        return ::fcntl(descriptor, F_GETFD) < 0 ? errno : 0;
    }
    return S_ISREG(what.st_mode) || S_ISDIR(what.st_mode) ? EPERM : 0;
}

int why_no_member(int descriptor) noexcept { return ::fcntl(descriptor, F_GETFD) < 0 ? EBADF : ENOENT; }

poll_list::poll_list(std::span<poll_entry> what) noexcept : what_(what) {
    if (what.size() > polled_without_allocation) at_ = new (std::nothrow) pollfd[what.size() + own];
    if (at_ == nullptr) return;
    for (const poll_entry& each : what) {
        has_impossible_ |= each.descriptor < 0;
        add(each.descriptor, to_poll_events(each.asked));
    }
}

poll_list::~poll_list() {
    if (at_ != few_) delete[] at_;
}

pollfd& poll_list::add(int descriptor, short events) noexcept {
    return at_[size_++] = pollfd{descriptor, events, 0};
}

std::size_t poll_list::collect() noexcept {
    std::size_t ready = 0;
    for (std::size_t i = 0; i != what_.size(); ++i) {
        poll_entry& each = what_[i];
        each.found = each.descriptor < 0 ? readiness::invalid : from_poll_events(at_[i].revents);
        ready += each.found != readiness::none ? 1 : 0;
    }
    return ready;
}

}  // namespace tocsin::platform

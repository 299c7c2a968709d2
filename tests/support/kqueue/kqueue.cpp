// SPDX-License-Identifier: Apache-2.0
// kqueue(2) built on epoll(7): each queue is an epoll instance. epoll has one registration for each descriptor, a
// kqueue has one for each filter. So a table holds the filters of each descriptor. The filters of one descriptor are
// either all level-triggered or all edge-triggered, as the poller uses them.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <map>
#include <mutex>

#include <sys/epoll.h>
#include <sys/event.h>

namespace {

constexpr std::array<int, 3> filters{EVFILT_READ, EVFILT_WRITE, EVFILT_EXCEPT};
constexpr std::array<unsigned, 3> conditions{EPOLLIN | EPOLLRDHUP, EPOLLOUT, EPOLLPRI};

struct registration {
    std::array<bool, 3> wanted{};
    bool on_change = false;

    bool is_empty() const { return wanted == std::array<bool, 3>{}; }
};

std::mutex mutex;
std::map<int, std::map<int, registration>>& queues() {
    static auto* const all = new std::map<int, std::map<int, registration>>;
    return *all;
}

int apply(int queue, const struct kevent& change) {
    const std::lock_guard lock(mutex);
    auto& all = queues()[queue];
    const int descriptor = static_cast<int>(change.ident);
    const auto which =
        static_cast<std::size_t>(std::find(filters.begin(), filters.end(), change.filter) - filters.begin());
    registration& one = all[descriptor];
    const bool was_in = !one.is_empty();
    if ((change.flags & EV_DELETE) != 0 && !one.wanted[which]) {
        if (!was_in) all.erase(descriptor);
        errno = ENOENT;
        return -1;
    }
    one.wanted[which] = (change.flags & EV_ADD) != 0;
    if ((change.flags & EV_ADD) != 0) one.on_change = (change.flags & EV_CLEAR) != 0;
    epoll_event event{};
    event.data.fd = descriptor;
    event.events = one.on_change ? EPOLLET : 0u;
    for (std::size_t i = 0; i != filters.size(); ++i) event.events |= one.wanted[i] ? conditions[i] : 0u;
    int result;
    if (one.is_empty()) {
        all.erase(descriptor);
        result = ::epoll_ctl(queue, EPOLL_CTL_DEL, descriptor, nullptr);
    } else {
        result = ::epoll_ctl(queue, was_in ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event);
        if (result != 0 && was_in && errno == ENOENT)
            result = ::epoll_ctl(queue, EPOLL_CTL_ADD, descriptor, &event);
    }
    return result;
}

// Reports one filter of the descriptor for which epoll has found something, and returns true. False: there is none.
bool translate(int queue, const epoll_event& found, struct kevent& into) {
    const std::lock_guard lock(mutex);
    const auto& all = queues()[queue];
    const auto at = all.find(found.data.fd);
    if (at == all.end()) return false;
    for (std::size_t i = 0; i != filters.size(); ++i) {
        if (!at->second.wanted[i] || (found.events & (conditions[i] | EPOLLHUP | EPOLLERR)) == 0) continue;
        into = {};
        into.ident = static_cast<std::uintptr_t>(found.data.fd);
        into.filter = static_cast<short>(filters[i]);
        return true;
    }
    return false;
}

}  // namespace

int kqueue() {
    const int made = ::epoll_create1(0);
    const std::lock_guard lock(mutex);
    if (made >= 0) queues()[made].clear();  // an earlier queue may have had this number
    return made;
}

int kevent(int queue, const struct kevent* changes, int change_count, struct kevent* events, int event_count,
           const timespec* timeout) {
    for (int i = 0; i != change_count; ++i) {
        if (apply(queue, changes[i]) != 0) return -1;
    }
    if (event_count == 0) return 0;
    std::array<epoll_event, 128> found;
    const auto milliseconds =
        timeout == nullptr ? -1
                           : static_cast<int>(std::min<std::int64_t>(timeout->tv_sec, 1'000'000) * 1000 +
                                              (timeout->tv_nsec + 999'999) / 1'000'000);
    const int count = ::epoll_wait(queue, found.data(), std::min(event_count, 128), milliseconds);
    if (count <= 0) return count;
    int reported = 0;
    for (int i = 0; i != count; ++i)
        reported += translate(queue, found[static_cast<std::size_t>(i)], events[reported]) ? 1 : 0;
    return reported;
}

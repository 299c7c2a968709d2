// SPDX-License-Identifier: Apache-2.0
// For a loop of yours that sleeps in epoll_wait() and serves a driver (driver.hpp): what to tell epoll for a watch of
// the driver, and what to tell the driver for an event of epoll. Linux only; the library itself does not use it.
//
//     driver.update([&](tocsin::driver::watch each) {
//         if (const int error = tocsin::watch_with_epoll(loop, each)) refused.push_back({each, error});
//     });
//     const int count = epoll_wait(loop, events, size, refused.empty() ? driver.poll_timeout() : 0);
//     for (int i = 0; i < count; ++i)
//         driver.notify(tocsin::watch_of_epoll(events[i]), tocsin::found_by_epoll(events[i].events));
//     for (const auto& [each, error] : std::exchange(refused, {}))
//         driver.notify(each.id, tocsin::found_if_refused(each, error));
//     driver.run_due();
//
// `data.u64` of an event is the id of its watch, which is never 0: so 0 is free for the descriptor that ends the loop's
// sleep. examples/loops/driven_by_epoll.cpp is a whole program.
#pragma once

#include <tocsin/driver.hpp>
#include <tocsin/readiness.hpp>

#include <cerrno>
#include <cstdint>

#include <sys/epoll.h>

namespace tocsin {

// What to ask epoll for.
constexpr std::uint32_t epoll_events_for(readiness asked) noexcept {
    return (has(asked, readiness::readable) ? std::uint32_t{EPOLLIN} : 0u) |
           (has(asked, readiness::writable) ? std::uint32_t{EPOLLOUT} : 0u) |
           (has(asked, readiness::urgent) ? std::uint32_t{EPOLLPRI} : 0u) |
           (has(asked, readiness::hang_up) ? std::uint32_t{EPOLLRDHUP} : 0u);
}

// What epoll has found.
constexpr readiness found_by_epoll(std::uint32_t events) noexcept {
    const auto if_any = [events](std::uint32_t of, readiness found) {
        return (events & of) != 0 ? found : readiness::none;
    };
    return if_any(EPOLLIN, readiness::readable) | if_any(EPOLLOUT, readiness::writable) |
           if_any(EPOLLPRI, readiness::urgent) |
           if_any(std::uint32_t{EPOLLHUP} | EPOLLRDHUP, readiness::hang_up) |
           if_any(EPOLLERR, readiness::error);
}

// The watch for which epoll has made this event.
inline driver::watch_id watch_of_epoll(const epoll_event& event) noexcept {
    return static_cast<driver::watch_id>(event.data.u64);
}

// Does what a driver's update() asks for: one or two calls of epoll_ctl(). Returns 0, or the system's error if epoll
// does not take the descriptor. Such a descriptor must be reported, too, or its waits never end: see
// found_if_refused(). An error while a watch ends means nothing, because the descriptor may be closed, and counts as 0.
inline int watch_with_epoll(int epoll, const driver::watch& which) noexcept {
    epoll_event event{};
    event.events = epoll_events_for(which.asked);
    event.data.u64 = static_cast<std::uint64_t>(which.id);
    const int kept = errno;
    int error = 0;
    if (which.asked == readiness::none) {
        (void)::epoll_ctl(epoll, EPOLL_CTL_DEL, which.descriptor, &event);
    } else if (::epoll_ctl(epoll, EPOLL_CTL_MOD, which.descriptor, &event) != 0 &&
               ::epoll_ctl(epoll, EPOLL_CTL_ADD, which.descriptor, &event) != 0) {
        error = errno;
    }
    errno = kept;
    return error;
}

// What to report for a watch that epoll has refused with this error. A regular file, for which the error is EPERM, is
// always ready for what is asked. With any other error, the descriptor is `invalid`.
constexpr readiness found_if_refused(const driver::watch& which, int error) noexcept {
    return error == EPERM ? which.asked : readiness::invalid;
}

}  // namespace tocsin

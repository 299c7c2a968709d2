// SPDX-License-Identifier: Apache-2.0
// An event or a semaphore as a descriptor, for somebody else's loop (epoll, libuv, GLib, Asio, poll). This is the
// reverse of fd.hpp.
//
//     tocsin::pollable watched(job);
//     loop.on_readable(watched.descriptor(), [&] {
//         if (watched.try_wait()) work();
//     });
//
// Only an event or a semaphore with a pollable pays for it: a set() or release() of any other costs as much as without
// pollables. examples/loops uses a pollable in a loop over epoll. Loops of Asio, libuv and GLib can do without:
// asio.hpp, uv.hpp, glib.hpp.
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/source.hpp>

#include <memory>

namespace tocsin {

// A pollable of an event or of a semaphore. Below, "event" and set() also mean a semaphore and its release(): the
// semaphore counts as set while a permit is free, and the pollable takes one permit at a time. A latch and a token of a
// barrier are events here, set when threads may pass. The pollable's descriptor is readable when the event is set. It
// may also be readable when the event is not set, because another thread may take the event first. Do nothing with the
// descriptor but poll it: the pollable alone reads, writes and closes it. The event must outlive the pollable and stay
// where it is. Each pollable of an event has a descriptor of its own. After a fork, a pollable belongs to the parent:
// the child may only destroy it.
class pollable {
public:
    // On Linux opens one descriptor, an eventfd. On other POSIX systems opens a pipe, which takes two descriptors. On
    // Windows opens a kernel event, whose HANDLE is the descriptor.
    // Throws std::invalid_argument for a timer, a descriptor, a custom source or an empty source;
    // std::system_error (EMFILE, ENFILE, ENOMEM); std::bad_alloc.
    TOCSIN_API explicit pollable(const source& event);
    pollable(const pollable&) = delete;
    pollable& operator=(const pollable&) = delete;
    // The loop must no longer use the descriptor. If another thread is in a set() of the event, the destructor waits a
    // few steps for that thread. (If the set has released more than a few threads, the destructor may wait until one of
    // them runs.)
    TOCSIN_API ~pollable();

    // Returns the same descriptor until the pollable is destroyed.
    TOCSIN_API int descriptor() const noexcept;

    // Takes the event if it is set, as the event's own try_wait() does. The descriptor stays readable until a call of
    // this function finds nothing to take. So in a loop that reports only changes (EPOLLET), call this until it returns
    // false. Other loops may call it as often as they like. Any thread may call it. It never blocks.
    // Cost: that of the event's try_wait(). A call that finds nothing also costs a short lock and a system call. For
    // the pollable, a set() makes a system call only if the descriptor is not readable yet.
    TOCSIN_API bool try_wait() noexcept;

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace tocsin

// The reverse of fd.hpp: an event as a descriptor, for someone else's loop (epoll, libuv, GLib, Asio, poll).
//
//     tocsin::pollable view(job);
//     loop.on_readable(view.descriptor(), [&] {
//         if (view.try_wait()) work();
//     });
//
// Only events with a view pay for it: a set() of any other event costs as much as without views. examples/loops uses
// views in four loops.
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/source.hpp>

#include <memory>

namespace tocsin {

// The descriptor is readable when the event is set. It may be readable when the event is not set, because another
// thread may take the event first. Only poll the descriptor: the view alone reads, writes and closes it. The event must
// outlive the view and stay where it is. Each view of an event has a descriptor of its own. After fork, a view belongs
// to the parent: the child may only destroy it.
class pollable {
public:
    // On Linux opens one descriptor, an eventfd. On other POSIX systems opens a pipe, which takes two. On Windows opens
    // a kernel event, whose HANDLE is the descriptor.
    // Throws std::system_error (EMFILE, ENFILE, ENOMEM), std::invalid_argument (not an event), std::bad_alloc.
    TOCSIN_API explicit pollable(const source& event);
    pollable(const pollable&) = delete;
    pollable& operator=(const pollable&) = delete;
    // The loop must no longer use the descriptor. If a set() is under way in another thread, waits a few steps for it.
    TOCSIN_API ~pollable();

    // The same one until the view is destroyed.
    TOCSIN_API int descriptor() const noexcept;

    // Takes the event if it is set, like the event's own try_wait(). The descriptor stays readable until a call has
    // found nothing to take. A loop that is told only of changes (EPOLLET) must call this until it returns false. Other
    // loops may call it as often as they like. Any thread may call it; it never blocks.
    // Cost: that of the event's try_wait(). If it finds nothing, also a short lock and a system call. A set() makes a
    // system call only if the descriptor is not readable yet.
    TOCSIN_API bool try_wait() noexcept;

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace tocsin

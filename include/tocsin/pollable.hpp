// The reverse of fd.hpp: an event as a descriptor, for someone else's loop (epoll, libuv, GLib, Asio, poll).
//
//     tocsin::pollable view(job);
//     loop.on_readable(view.descriptor(), [&] {
//         if (view.try_wait()) work();
//     });
//
// Only events with a view pay for it: a set() of any other event costs as much as without views. examples/loops uses
// it in four loops.
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/source.hpp>

#include <memory>

namespace tocsin {

// The descriptor is readable when the event is set, or may be: another thread may take the event first. Only poll it:
// the view alone reads, writes and closes it. The event must outlive the view and stay where it is. Several views of
// an event have a descriptor each. After fork, a view belongs to the parent: the child may only destroy it.
class pollable {
public:
    // Opens one descriptor: an eventfd; on other POSIX systems a pipe, which takes two; on Windows a kernel event,
    // and the descriptor is its HANDLE.
    // Throws std::system_error (EMFILE, ENFILE, ENOMEM), std::invalid_argument (not an event), std::bad_alloc.
    TOCSIN_API explicit pollable(const source& event);
    pollable(const pollable&) = delete;
    pollable& operator=(const pollable&) = delete;
    // The loop must no longer use the descriptor. Waits for a set() that is under way in another thread, for a few
    // steps.
    TOCSIN_API ~pollable();

    // The same one until the view is destroyed.
    TOCSIN_API int descriptor() const noexcept;

    // Takes the event if it is set, like the event's own try_wait(). The descriptor stays readable until this has
    // found nothing to take. A loop that is told only of changes (EPOLLET) must call it until it returns false;
    // others may call it as often as they like. Any thread may call it; it never blocks.
    // Cost: that of the event's try_wait(); if it finds nothing, also a short lock and a system call. A set() makes a
    // system call only if the descriptor is not readable yet.
    TOCSIN_API bool try_wait() noexcept;

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace tocsin

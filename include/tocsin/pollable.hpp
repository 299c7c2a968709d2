// The reverse of fd.hpp: an event as a descriptor, for someone else's loop (epoll, libuv, GLib, Asio, poll).
//
//     tocsin::pollable view(job);
//     loop.on_readable(view.descriptor(), [&] {
//         if (view.try_wait()) work();
//     });
//
// Made for those who need it: a set() of any other event costs what it did. examples/loops has it in four loops.
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/source.hpp>

#include <memory>

namespace tocsin {

// The descriptor is readable when the event is set, or may be: somebody else may take it first. It is for looking at
// only: reading, writing and closing it are the view's. The event must outlive the view and stay where it is; several
// views of an event each have a descriptor of their own.
// After fork a view belongs to the parent: the child may only destroy it.
class pollable {
public:
    // Opens one descriptor (eventfd; elsewhere a pipe, two; on Windows a kernel event, whose HANDLE it is). Throws
    // std::system_error (EMFILE, ENFILE, ENOMEM), std::invalid_argument (not an event), std::bad_alloc.
    TOCSIN_API explicit pollable(const source& event);
    pollable(const pollable&) = delete;
    pollable& operator=(const pollable&) = delete;
    // The loop must have let go of the descriptor. A set() that is under way in another thread is waited for, for a
    // few steps.
    TOCSIN_API ~pollable();

    TOCSIN_API int descriptor() const noexcept;

    // Takes the event if it is set, as its own try_wait(). The descriptor stays readable until this has found nothing
    // to take: a loop that is told of changes only (EPOLLET) must call it until it is false; any other as it likes.
    // Any thread; never blocks. Cost: as the event's try_wait(); when it finds nothing also a short lock and a
    // system call. A set() makes a system call only if the descriptor is not readable yet.
    TOCSIN_API bool try_wait() noexcept;

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace tocsin

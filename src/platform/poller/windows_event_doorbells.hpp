// SPDX-License-Identifier: Apache-2.0
// Windows: doorbells that are kernel events, and the list of threads that sleep on sockets. The process has one such
// list, even if it holds several copies of the library.
#pragma once

#include "platform/poller/doorbells.hpp"
#include "platform/system/windows.hpp"

#include <tocsin/detail/intrusive_list.hpp>

namespace tocsin::platform {

class socket_sleeper;  // windows_poll.cpp

// A doorbell's object is one auto-reset kernel event: the wait that sees the event set also resets it. Both ends are
// this event.
struct windows_event_doorbells {
    static doorbell_pool& doorbells() noexcept;
    static void*& shared_state() noexcept;
    static int make_doorbell(int (&ends)[2]) noexcept;
    // Makes one manual-reset event, which is both ends.
    static int make_flag(int (&ends)[2]) noexcept;
    static void strike(int descriptor, bool even) noexcept;

    // Looks, without sleeping, whether the bell is struck. If so, answers it and returns true.
    static bool was_rung(doorbell& bell) noexcept;
};

// The list of the process's threads that sleep on sockets, and the lock of that list.
detail::intrusive_list<socket_sleeper>& socket_sleepers() noexcept;
mutex& socket_sleepers_lock() noexcept;

// An int can hold a handle or a socket. The system promises that handles and sockets have 32 significant bits, so that
// 32-bit and 64-bit programs can share them.
inline HANDLE handle_of(int descriptor) noexcept {
    return reinterpret_cast<HANDLE>(static_cast<std::intptr_t>(descriptor));
}

}  // namespace tocsin::platform

// Windows: doorbells that are kernel events, and what the process has once for waits on sockets, even if it holds
// several copies of the library.
#pragma once

#include "platform/poller/doorbells.hpp"
#include "platform/system/windows.hpp"

#include <tocsin/detail/intrusive_list.hpp>

namespace tocsin::platform {

class socket_sleeper;  // windows_poll.cpp

// A kernel event that resets itself once its sleeper has seen it.
struct windows_event_doorbells {
    static doorbell_pool& doorbells() noexcept;
    static void*& shared_state() noexcept;
    static int make_doorbell(int (&ends)[2]) noexcept;
    // Both ends are one event, which is reset by hand.
    static int make_flag(int (&ends)[2]) noexcept;
    static void strike(int descriptor, bool even) noexcept;

    // Answers the bell if it is struck.
    static bool was_rung(doorbell& bell) noexcept;
};

// The threads that sleep on sockets, in the whole process, and the lock of that list.
detail::intrusive_list<socket_sleeper>& socket_sleepers() noexcept;
mutex& socket_sleepers_lock() noexcept;

// Handles and sockets have 32 significant bits: the system promises that, so that programs of both sizes can share
// them.
inline HANDLE handle_of(int descriptor) noexcept {
    return reinterpret_cast<HANDLE>(static_cast<std::intptr_t>(descriptor));
}

}  // namespace tocsin::platform

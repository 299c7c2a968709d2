// SPDX-License-Identifier: Apache-2.0
// Windows: asks sockets and handles what they are ready for, without sleeping.
#pragma once

#include "platform/poller/poller.hpp"
#include "platform/poller/windows_event_doorbells.hpp"
#include "platform/system/windows.hpp"

#include <cstddef>
#include <span>

#include <winsock2.h>

namespace tocsin::platform {

inline SOCKET socket_of(int descriptor) noexcept {
    return static_cast<SOCKET>(static_cast<std::uint32_t>(descriptor));
}

inline bool is_handle(const poll_entry& what) noexcept { return has(what.asked, readiness::signaled); }

// The library looks these functions up at run time, so that a program without sockets need not load their module.
struct socket_functions {
    using poll_function = int WSAAPI(WSAPOLLFD*, ULONG, INT);
    using select_function = int WSAAPI(SOCKET, WSAEVENT, long);
    using events_function = int WSAAPI(SOCKET, WSAEVENT, WSANETWORKEVENTS*);

    poll_function* poll = exported<poll_function>(L"ws2_32.dll", "WSAPoll");
    select_function* select = exported<select_function>(L"ws2_32.dll", "WSAEventSelect");
    events_function* events = exported<events_function>(L"ws2_32.dll", "WSAEnumNetworkEvents");

    bool are_found() const noexcept { return poll != nullptr && select != nullptr && events != nullptr; }
};

// The functions, looked up at the first call. A program that has a socket has already loaded their module.
const socket_functions& sockets() noexcept;

// Sets `found` of every entry. `storage` has room for as many entries as `what`. Returns 0 or an error.
int look(std::span<poll_entry> what, WSAPOLLFD* storage) noexcept;

std::size_t count_ready(std::span<const poll_entry> what) noexcept;

}  // namespace tocsin::platform

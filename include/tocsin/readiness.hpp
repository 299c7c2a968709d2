// SPDX-License-Identifier: Apache-2.0
// What a descriptor can be ready for: what a wait asks for, and what it finds.
#pragma once

#include <cstdint>

namespace tocsin {

enum class readiness : std::uint16_t {
    none = 0,
    readable = 1,   // data, or the end of the data; a connection to accept; a timer or process that ended
    writable = 2,   // room to write; a connection that was made, or failed
    urgent = 4,     // out-of-band data, or anything else that the system calls a priority (POLLPRI)
    hang_up = 8,    // both directions are closed: found even if not asked for. If asked for, also found
                    // when the peer has closed its direction. (Systems without POLLRDHUP report that
                    // as readable instead.)
    error = 16,     // found even if not asked for
    invalid = 32,   // not an open descriptor: found, never asked for
    signaled = 64,  // on Windows, asked for and found: a kernel HANDLE (of a process or an event, say)
                    // is signaled. A HANDLE has no other readiness.
};

// One ready member of a wait_set, named by its tag.
struct ready_item {
    std::uint64_t tag = 0;              // of the member, as given to add() or change()
    readiness found = readiness::none;  // what was found, if the member is a descriptor

    // The tag of a member that was added with a pointer. `T` is the type that add() was given.
    template <class T>
    T* pointer() const noexcept {
        return reinterpret_cast<T*>(static_cast<std::uintptr_t>(tag));
    }
};

constexpr readiness operator|(readiness a, readiness b) noexcept {
    return static_cast<readiness>(static_cast<std::uint16_t>(a) | static_cast<std::uint16_t>(b));
}
constexpr readiness operator&(readiness a, readiness b) noexcept {
    return static_cast<readiness>(static_cast<std::uint16_t>(a) & static_cast<std::uint16_t>(b));
}
// Whether `all` contains at least one of `any`.
constexpr bool has(readiness all, readiness any) noexcept {
    return (static_cast<std::uint16_t>(all) & static_cast<std::uint16_t>(any)) != 0;
}

}  // namespace tocsin

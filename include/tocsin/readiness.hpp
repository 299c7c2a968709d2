// What a descriptor can be ready for: what a wait asks for, and what it finds.
#pragma once

#include <cstdint>

namespace tocsin {

enum class readiness : std::uint16_t {
    none = 0,
    readable = 1,   // something to read, or the end; a connection to accept; a timer or process that ended
    writable = 2,   // room to write; connected, or failed to connect
    urgent = 4,     // out-of-band data, or anything else that the system calls a priority (POLLPRI)
    hang_up = 8,    // found without being asked for when both directions are closed; if asked for, also
                    // when the peer has closed its direction (on systems with POLLRDHUP; elsewhere found
                    // as readable)
    error = 16,     // found without being asked for
    invalid = 32,   // only found: it is not an open descriptor
    signaled = 64,  // Windows, asked for and found: a kernel HANDLE (process, event), which is ready in one
                    // way only
};

// One member of a wait_set that is ready, by the tag with which it was added.
struct ready_item {
    std::uint64_t tag = 0;
    readiness found = readiness::none;  // of a descriptor
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

// SPDX-License-Identifier: Apache-2.0
// A descriptor for somebody else's event loop, which may be of any kind. The descriptor is readable while the flag is
// raised. Each flag has its own event counter, pipe or kernel event, which is closed when the flag is destroyed and,
// unlike a doorbell's object, never gets another owner.
#pragma once

namespace tocsin::platform {

class readable_flag {
public:
    readable_flag() noexcept = default;
    readable_flag(const readable_flag&) = delete;
    readable_flag& operator=(const readable_flag&) = delete;
    ~readable_flag() { close(); }

    // Must be called once, before any other function. Returns 0 or the system's error.
    int open() noexcept;
    int descriptor() const noexcept { return ends_[1]; }
    // Any thread may call raise() and lower(). They never block, and they preserve errno. lower() undoes all raises so
    // far. If other threads raise the flag all the time, it may be up afterwards.
    void raise() noexcept;
    void lower() noexcept;
#if !defined(_WIN32)
    // The same as lower(), and returns whether there were any raises. For each raise, at most one caller gets true.
    bool take() noexcept;
#endif

private:
    void close() noexcept;

    int ends_[2] = {-1, -1};  // the end to write, the end to read
};

}  // namespace tocsin::platform

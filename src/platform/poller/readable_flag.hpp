// A descriptor that is readable while it is up, for someone else's loop: an event counter or a pipe of its own
// (unlike a doorbell's it is closed, and any loop may look at it).
#pragma once

namespace tocsin::platform {

class readable_flag {
public:
    readable_flag() noexcept = default;
    readable_flag(const readable_flag&) = delete;
    readable_flag& operator=(const readable_flag&) = delete;
    ~readable_flag() { close(); }

    // 0 or the system's error. Before anything else, once.
    int open() noexcept;
    int descriptor() const noexcept { return ends_[1]; }
    // Any thread; never blocks, preserves errno. Raised twice, it is still lowered by one lower(); or at the latest by
    // the next, if it was raised many times.
    void raise() noexcept;
    void lower() noexcept;

private:
    void close() noexcept;

    int ends_[2] = {-1, -1};  // to write, to read
};

}  // namespace tocsin::platform

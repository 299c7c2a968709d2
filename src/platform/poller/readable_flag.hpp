// A descriptor that is readable while the flag is raised, for a foreign event loop. The flag has an event counter, pipe
// or kernel event of its own. Unlike a doorbell's, this object never gets another owner: it is closed when the flag is
// destroyed. Any loop may look at it.
#pragma once

namespace tocsin::platform {

class readable_flag {
public:
    readable_flag() noexcept = default;
    readable_flag(const readable_flag&) = delete;
    readable_flag& operator=(const readable_flag&) = delete;
    ~readable_flag() { close(); }

    // Must come before anything else, once. Returns 0 or the system's error.
    int open() noexcept;
    int descriptor() const noexcept { return ends_[1]; }
    // Callable by any thread. Never blocks, and preserves errno. One lower() undoes at least 64 raises. After more of
    // them, the flag may stay raised until a later lower().
    void raise() noexcept;
    void lower() noexcept;

private:
    void close() noexcept;

    int ends_[2] = {-1, -1};  // to write, to read
};

}  // namespace tocsin::platform

// A descriptor for a foreign event loop, readable while the flag is raised. Any event loop may poll it. Each flag has
// its own event counter, pipe or kernel event. Unlike a doorbell's object, the flag's object never gets another owner:
// it is closed when the flag is destroyed.
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
    // Any thread may call raise() and lower(). They never block, and they preserve errno. One lower() undoes at least
    // 64 raises. After more than 64 raises, the flag may stay raised until a later lower().
    void raise() noexcept;
    void lower() noexcept;

private:
    void close() noexcept;

    int ends_[2] = {-1, -1};  // the end to write, the end to read
};

}  // namespace tocsin::platform

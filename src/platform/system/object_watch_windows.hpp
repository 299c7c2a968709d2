// Windows: a thread of the system's that waits for a kernel object, and calls when it is signaled.
#pragma once

#include "platform/system/windows.hpp"

#include <cstdint>

namespace tocsin::platform {

// Calls `run(what)` whenever the object is signaled, from start() until its destruction: then none is under way, and
// none begins. `run` may not make or destroy watches, nor take a lock under which that is done.
class object_watch {
public:
    object_watch() = default;
    ~object_watch();
    object_watch(const object_watch&) = delete;
    object_watch& operator=(const object_watch&) = delete;

    // Once. `flags` of RegisterWaitForSingleObject. False if the system has no thread for it.
    bool start(HANDLE object, ULONG flags, void (*run)(void*) noexcept, void* what) noexcept;

private:
    static void CALLBACK ring(void* number, BOOLEAN) noexcept;

    HANDLE wait_ = nullptr;
    std::uintptr_t number_ = 0;  // 0: not started
    void (*run_)(void*) noexcept = nullptr;
    void* what_ = nullptr;
    object_watch* next_ = nullptr;
    object_watch* before_ = nullptr;
};

}  // namespace tocsin::platform

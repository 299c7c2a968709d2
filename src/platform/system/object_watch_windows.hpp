// Windows: a system thread waits for a kernel object, and calls a function when it is signaled.
#pragma once

#include "platform/system/windows.hpp"

#include <tocsin/detail/intrusive_list.hpp>

#include <cstdint>

namespace tocsin::platform {

// Calls `run(what)` whenever the object is signaled, from start() until the watch is destroyed. After that no call is
// under way, and none begins. `run` must not start or destroy watches, nor take a lock under which that is done.
class object_watch : detail::list_links<object_watch> {
    friend class detail::intrusive_list<object_watch>;

public:
    object_watch() = default;
    ~object_watch();
    object_watch(const object_watch&) = delete;
    object_watch& operator=(const object_watch&) = delete;

    // At most once. `flags` are those of RegisterWaitForSingleObject. False if the system has no thread for it.
    bool start(HANDLE object, ULONG flags, void (*run)(void*) noexcept, void* what) noexcept;

private:
    static void CALLBACK call(void* number, BOOLEAN) noexcept;

    HANDLE wait_ = nullptr;
    std::uintptr_t number_ = 0;  // 0: not started
    void (*run_)(void*) noexcept = nullptr;
    void* what_ = nullptr;
};

}  // namespace tocsin::platform

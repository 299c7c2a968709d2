// SPDX-License-Identifier: Apache-2.0
// Windows: a system thread waits for a kernel object, and calls a function when the object is signaled.
#pragma once

#include "platform/system/windows.hpp"

#include <tocsin/detail/intrusive_list.hpp>

#include <cstdint>

namespace tocsin::platform {

// From start() until the watch is destroyed, calls `run(what)` whenever the object is signaled. (With
// WT_EXECUTEONLYONCE, only the first time.) Once the destructor has returned, no call is under way, and none begins.
// `run` must not start or destroy watches. Nor must it take a lock that a thread may hold while that thread starts or
// destroys a watch.
class object_watch : detail::list_links<object_watch> {
    friend class detail::intrusive_list<object_watch>;

public:
    object_watch() = default;
    ~object_watch();
    object_watch(const object_watch&) = delete;
    object_watch& operator=(const object_watch&) = delete;

    // Call it at most once for a watch. `flags` are those of RegisterWaitForSingleObject. Returns false if the system
    // can't wait for the object.
    bool start(HANDLE object, ULONG flags, void (*run)(void*) noexcept, void* what) noexcept;

private:
    static void CALLBACK call(void* number, BOOLEAN) noexcept;

    HANDLE wait_ = nullptr;
    std::uintptr_t number_ = 0;  // 0: not started
    void (*run_)(void*) noexcept = nullptr;
    void* what_ = nullptr;
};

}  // namespace tocsin::platform

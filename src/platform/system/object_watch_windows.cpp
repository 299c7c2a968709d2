// The system promises (Microsoft's reference of UnregisterWaitEx, Windows 2000): called with INVALID_HANDLE_VALUE it
// returns when all calls have ended, and none begins later. Wine 8.0 breaks the second half: its waiting thread may have
// seen the object signaled, and submits the call when the wait is unregistered already (27 of 1,129 calls came late
// where eight threads did nothing else). So a call brings a number instead of an address, and asks under a lock
// whether the watch of that number is still there; it runs under that lock, too.
//
// Checked by: tests/internal/windows_object_watch_test.cpp; every wait until a time of the system clock.
#include "platform/system/object_watch_windows.hpp"

#include <new>

namespace tocsin::platform {
namespace {

// Those that are there; under the lock.
struct watches {
    mutex lock;
    std::uintptr_t last_number = 1;  // odd ones only, so that none is 0 when they begin anew
    object_watch* first = nullptr;
};

// Never destroyed: a late call may come after main.
watches& all() noexcept {
    alignas(watches) static unsigned char place[sizeof(watches)];
    static watches* const made = new (place) watches;
    return *made;
}

}  // namespace

bool object_watch::start(HANDLE object, ULONG flags, void (*run)(void*) noexcept, void* what) noexcept {
    run_ = run;
    what_ = what;
    watches& list = all();
    {
        const lock_guard lock(list.lock);
        number_ = list.last_number += 2;
        next_ = list.first;
        if (next_ != nullptr) next_->before_ = this;
        list.first = this;
    }
    if (::RegisterWaitForSingleObject(&wait_, object, ring, reinterpret_cast<void*>(number_), INFINITE,
                                      flags))
        return true;
    wait_ = nullptr;
    return false;
}

object_watch::~object_watch() {
    if (number_ == 0) return;
    {
        watches& list = all();
        const lock_guard lock(list.lock);
        (before_ != nullptr ? before_->next_ : list.first) = next_;
        if (next_ != nullptr) next_->before_ = before_;
    }
    if (wait_ != nullptr) ::UnregisterWaitEx(wait_, INVALID_HANDLE_VALUE);
}

void object_watch::ring(void* number, BOOLEAN) noexcept {
    watches& list = all();
    const lock_guard lock(list.lock);
    for (const object_watch* each = list.first; each != nullptr; each = each->next_) {
        if (each->number_ != reinterpret_cast<std::uintptr_t>(number)) continue;
        each->run_(each->what_);
        return;
    }
}

}  // namespace tocsin::platform

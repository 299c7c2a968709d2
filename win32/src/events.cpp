// SPDX-License-Identifier: Apache-2.0
// Events and semaphores: each handle names an event or a semaphore of tocsin. Those objects and the table of handles
// contain all the concurrency, except for semaphores that count further than tocsin's (object.hpp).
//
// Checked by: tests/win32_unit/handles_test.cpp, tests/win32.
#include "object.hpp"

#include <algorithm>
#include <mutex>

namespace tocsin::win32 {

LONG semaphore_object::near() noexcept {
    // no order: a count, which the caller passes on or checks again
    return static_cast<LONG>(detail::semaphore_state::free_permits(word().load(std::memory_order_relaxed)));
}

bool semaphore_object::release(LONG count, LONG& before) noexcept {
    std::uint32_t seen = 0;
    if (most <= most_near) {
        if (count > most) return false;
        const bool done = detail::semaphore_try_release(word(), static_cast<std::uint32_t>(count),
                                                        static_cast<std::uint32_t>(most), seen);
        before = static_cast<LONG>(seen);
        return done;
    }
    const std::lock_guard held(lock_);
    const LONG beyond = beyond_.load(std::memory_order_relaxed);  // no order: under the lock
    const LONG now = near();
    if (now > most - beyond || count > most - beyond - now) return false;
    const LONG here = std::min(count, most_near - now);
    before = now + beyond;
    if (count != here)
        beyond_.store(beyond + (count - here), std::memory_order_relaxed);  // no order: the same
    if (here == 0) return true;
    // Takers may make the count less meanwhile, but nobody else adds to it.
    (void)detail::semaphore_try_release(word(), static_cast<std::uint32_t>(here),
                                        static_cast<std::uint32_t>(most_near), seen);
    before = static_cast<LONG>(seen) + beyond;
    return true;
}

bool semaphore_object::is_full() noexcept {
    // no order: a guess; the release decides
    return near() >= most - beyond_.load(std::memory_order_relaxed);
}

void semaphore_object::give_back() noexcept {
    std::uint32_t seen = 0;
    const auto most_ever = static_cast<std::uint32_t>(most_near);
    if (most <= most_near) return (void)detail::semaphore_try_release(word(), 1, most_ever, seen);
    const std::lock_guard held(lock_);
    if (detail::semaphore_try_release(word(), 1, most_ever, seen)) return;
    beyond_.fetch_add(1, std::memory_order_relaxed);  // no order: under the lock
}

void semaphore_object::move_near() noexcept {
    const std::lock_guard held(lock_);
    const LONG beyond = beyond_.load(std::memory_order_relaxed);  // no order: under the lock
    const LONG moved = std::min(beyond, most_near - near());
    if (moved == 0) return;
    beyond_.store(beyond - moved, std::memory_order_relaxed);  // no order: the same
    std::uint32_t seen = 0;
    (void)detail::semaphore_try_release(word(), static_cast<std::uint32_t>(moved),
                                        static_cast<std::uint32_t>(most_near), seen);
}

namespace {

HANDLE create_event(const object_name& name, DWORD flags, DWORD access) {
    if ((flags & ~(CREATE_EVENT_MANUAL_RESET | CREATE_EVENT_INITIAL_SET)) != 0)
        return no_handle(ERROR_INVALID_PARAMETER);
    const bool manual = (flags & CREATE_EVENT_MANUAL_RESET) != 0;
    const bool set = (flags & CREATE_EVENT_INITIAL_SET) != 0;
    return create(name, kind::event, granted(access), [&] {
        return new event_object(kind::event, manual ? reset_mode::manual_reset : reset_mode::auto_reset, set);
    });
}

DWORD event_flags(BOOL manual_reset, BOOL initially_set) noexcept {
    return (manual_reset != 0 ? CREATE_EVENT_MANUAL_RESET : 0) |
           (initially_set != 0 ? CREATE_EVENT_INITIAL_SET : 0);
}

template <class Act>
BOOL with_event(HANDLE handle, Act act) noexcept {
    const brief_use use(handle);
    auto* const found = of_kind<event_object>(use, kind::event, EVENT_MODIFY_STATE);
    if (found == nullptr) return FALSE;
    act(found->state);
    return TRUE;
}

HANDLE create_semaphore(const object_name& name, LONG initial, LONG maximum, DWORD flags, DWORD access) {
    if (flags != 0 || initial < 0 || maximum <= 0 || initial > maximum)
        return no_handle(ERROR_INVALID_PARAMETER);
    return create(name, kind::semaphore, granted(access),
                  [&] { return new semaphore_object(initial, maximum); });
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

HANDLE CreateEventA(LPSECURITY_ATTRIBUTES, BOOL manual_reset, BOOL initially_set, LPCSTR name) {
    return made([&] {
        return create_event(object_name(name), event_flags(manual_reset, initially_set), all_access);
    });
}
HANDLE CreateEventW(LPSECURITY_ATTRIBUTES, BOOL manual_reset, BOOL initially_set, LPCWSTR name) {
    return made([&] {
        return create_event(object_name(name), event_flags(manual_reset, initially_set), all_access);
    });
}
HANDLE CreateEventExA(LPSECURITY_ATTRIBUTES, LPCSTR name, DWORD flags, DWORD access) {
    return made([&] { return create_event(object_name(name), flags, access); });
}
HANDLE CreateEventExW(LPSECURITY_ATTRIBUTES, LPCWSTR name, DWORD flags, DWORD access) {
    return made([&] { return create_event(object_name(name), flags, access); });
}
HANDLE OpenEventA(DWORD access, BOOL, LPCSTR name) {
    return made([&] { return open_named(object_name(name), kind::event, access); });
}
HANDLE OpenEventW(DWORD access, BOOL, LPCWSTR name) {
    return made([&] { return open_named(object_name(name), kind::event, access); });
}

BOOL SetEvent(HANDLE event) {
    return with_event(event, [](tocsin::event& state) { state.set(); });
}
BOOL ResetEvent(HANDLE event) {
    return with_event(event, [](tocsin::event& state) { state.reset(); });
}
BOOL PulseEvent(HANDLE event) {
    return with_event(event, [](tocsin::event& state) {
        auto& byte = *static_cast<tocsin::detail::event_byte*>(tocsin::source(state).object());
        tocsin::detail::event_pulse(byte, state.mode());
    });
}

HANDLE CreateSemaphoreA(LPSECURITY_ATTRIBUTES, LONG initial, LONG maximum, LPCSTR name) {
    return made([&] { return create_semaphore(object_name(name), initial, maximum, 0, all_access); });
}
HANDLE CreateSemaphoreW(LPSECURITY_ATTRIBUTES, LONG initial, LONG maximum, LPCWSTR name) {
    return made([&] { return create_semaphore(object_name(name), initial, maximum, 0, all_access); });
}
HANDLE CreateSemaphoreExA(LPSECURITY_ATTRIBUTES, LONG initial, LONG maximum, LPCSTR name, DWORD flags,
                          DWORD access) {
    return made([&] { return create_semaphore(object_name(name), initial, maximum, flags, access); });
}
HANDLE CreateSemaphoreExW(LPSECURITY_ATTRIBUTES, LONG initial, LONG maximum, LPCWSTR name, DWORD flags,
                          DWORD access) {
    return made([&] { return create_semaphore(object_name(name), initial, maximum, flags, access); });
}
HANDLE OpenSemaphoreA(DWORD access, BOOL, LPCSTR name) {
    return made([&] { return open_named(object_name(name), kind::semaphore, access); });
}
HANDLE OpenSemaphoreW(DWORD access, BOOL, LPCWSTR name) {
    return made([&] { return open_named(object_name(name), kind::semaphore, access); });
}

BOOL ReleaseSemaphore(HANDLE semaphore, LONG count, LPLONG previous) {
    const brief_use use(semaphore);
    auto* const found = of_kind<semaphore_object>(use, kind::semaphore, SEMAPHORE_MODIFY_STATE);
    if (found == nullptr) return FALSE;
    if (count <= 0) return fail(ERROR_INVALID_PARAMETER);
    LONG before = 0;
    if (!found->release(count, before)) return fail(ERROR_TOO_MANY_POSTS);
    if (previous != nullptr) *previous = before;
    return TRUE;
}

}  // extern "C"

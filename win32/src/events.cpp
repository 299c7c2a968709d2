// SPDX-License-Identifier: Apache-2.0
// Events and semaphores: each handle names an event or a semaphore of tocsin. Those objects and the table of handles
// contain all the concurrency, except for semaphores that count further than tocsin's (permits.hpp).
//
// Checked by: win32/tests/unit/handles_test.cpp, win32/tests.
#include "object.hpp"
#include "shared_names.hpp"

namespace tocsin::win32 {

namespace {

HANDLE create_event(const object_name& name, DWORD flags, DWORD access) {
    if ((flags & ~(CREATE_EVENT_MANUAL_RESET | CREATE_EVENT_INITIAL_SET)) != 0)
        return no_handle(ERROR_INVALID_PARAMETER);
    const bool manual = (flags & CREATE_EVENT_MANUAL_RESET) != 0;
    const bool set = (flags & CREATE_EVENT_INITIAL_SET) != 0;
    const shared_recipe shared{manual ? shared_type::manual_reset_event : shared_type::auto_reset_event,
                               set ? 1 : 0, 0};
    const auto make = [&] {
        return new event_object(kind::event, manual ? reset_mode::manual_reset : reset_mode::auto_reset, set);
    };
    return create(name, kind::event, granted(access), make, nullptr, &shared);
}

DWORD event_flags(BOOL manual_reset, BOOL initially_set) noexcept {
    return (manual_reset != 0 ? CREATE_EVENT_MANUAL_RESET : 0) |
           (initially_set != 0 ? CREATE_EVENT_INITIAL_SET : 0);
}

// Changes an object that processes share. It fails only if one of them changes the memory without end.
template <class Change>
BOOL changed(Change change) noexcept {
    return without_exceptions<BOOL>(FALSE, [&] {
        change();
        return TRUE;
    });
}

template <class Act>
[[gnu::noinline]] BOOL with_event_slow(HANDLE handle, Act act) noexcept {
    const brief_use use(handle);
    if (use && use->type == kind::shared_event) {
        auto* const shared = of_kind<shared_event_object>(use, kind::shared_event, EVENT_MODIFY_STATE);
        return shared != nullptr ? changed([&] { act(*shared); }) : FALSE;
    }
    auto* const found = of_kind<event_object>(use, kind::event, EVENT_MODIFY_STATE);
    if (found == nullptr) return FALSE;
    act(found->state);
    return TRUE;
}
template <class Act>
BOOL with_event(HANDLE handle, Act act) noexcept {
    cached_use use(handle, EVENT_MODIFY_STATE);
    if (!use.is(kind::event)) return with_event_slow(handle, act);
    use.with<event_object>([&](event_object& found) { act(found.state); });
    return TRUE;
}

struct pulse {
    void operator()(tocsin::event& state) const noexcept {
        auto& byte = *static_cast<detail::event_byte*>(source(state).object());
        detail::event_pulse(byte, state.mode());
    }
    void operator()(shared_event_object& state) const {  // in two steps
        state.set();
        state.reset();
    }
};

HANDLE create_semaphore(const object_name& name, LONG initial, LONG maximum, DWORD flags, DWORD access) {
    if (flags != 0 || initial < 0 || maximum <= 0 || initial > maximum)
        return no_handle(ERROR_INVALID_PARAMETER);
    const shared_recipe shared{shared_type::semaphore, initial, maximum};
    const auto make = [&] { return new semaphore_object(initial, maximum); };
    return create(name, kind::semaphore, granted(access), make, nullptr, &shared);
}

[[gnu::noinline]] BOOL release_slow(HANDLE semaphore, LONG count, LPLONG previous) noexcept {
    const brief_use use(semaphore);
    if (use && use->type == kind::shared_semaphore) {
        auto* const shared =
            of_kind<shared_semaphore_object>(use, kind::shared_semaphore, SEMAPHORE_MODIFY_STATE);
        if (shared == nullptr) return FALSE;
        if (count <= 0) return fail(ERROR_INVALID_PARAMETER);
        bool fits = false;
        return changed([&] { fits = shared->release(count, previous); }) != FALSE && !fits
                   ? fail(ERROR_TOO_MANY_POSTS)
                   : (fits ? TRUE : FALSE);
    }
    auto* const found = of_kind<semaphore_object>(use, kind::semaphore, SEMAPHORE_MODIFY_STATE);
    if (found == nullptr) return FALSE;
    if (count <= 0) return fail(ERROR_INVALID_PARAMETER);
    if (!found->permits.release(count, previous)) return fail(ERROR_TOO_MANY_POSTS);
    return TRUE;
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
    return with_event(event, [](auto& state) { state.set(); });
}
BOOL ResetEvent(HANDLE event) {
    return with_event(event, [](auto& state) { state.reset(); });
}
BOOL PulseEvent(HANDLE event) { return with_event(event, pulse()); }

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
    cached_use cached(semaphore, SEMAPHORE_MODIFY_STATE);
    if (!cached.is(kind::semaphore) || count <= 0) return release_slow(semaphore, count, previous);
    bool done = false;
    cached.with<semaphore_object>(
        [&](semaphore_object& found) { done = found.permits.release(count, previous); });
    return done ? TRUE : fail(ERROR_TOO_MANY_POSTS);
}

}  // extern "C"

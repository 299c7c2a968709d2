// SPDX-License-Identifier: Apache-2.0
// The calls on mutexes. mutex_state.hpp explains their owners. thread.cpp explains what becomes of mutexes when their
// owner ends.
//
// Checked by: win32/tests/unit/mutex_test.cpp, win32/tests.
#include "thread.hpp"

namespace tocsin::win32 {
namespace {

HANDLE create_mutex(const object_name& name, DWORD flags, DWORD access) {
    if ((flags & ~CREATE_MUTEX_INITIAL_OWNER) != 0) return no_handle(ERROR_INVALID_PARAMETER);
    const bool owned = (flags & CREATE_MUTEX_INITIAL_OWNER) != 0;
    thread* const self = owned ? &current_thread() : nullptr;
    const shared_recipe shared{shared_type::mutex, owned ? 1 : 0, 0};
    const auto make = [&] {
        auto* const made = new mutex_object;
        if (self != nullptr && made->state.free().try_wait()) (void)made->begin(*self);
        return made;
    };
    return create(name, kind::mutex, granted(access), make, nullptr, &shared);
}

DWORD owner_flag(BOOL initial_owner) noexcept { return initial_owner != 0 ? CREATE_MUTEX_INITIAL_OWNER : 0; }

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

HANDLE CreateMutexA(LPSECURITY_ATTRIBUTES, BOOL initial_owner, LPCSTR name) {
    return made([&] { return create_mutex(object_name(name), owner_flag(initial_owner), all_access); });
}
HANDLE CreateMutexW(LPSECURITY_ATTRIBUTES, BOOL initial_owner, LPCWSTR name) {
    return made([&] { return create_mutex(object_name(name), owner_flag(initial_owner), all_access); });
}
HANDLE CreateMutexExA(LPSECURITY_ATTRIBUTES, LPCSTR name, DWORD flags, DWORD access) {
    return made([&] { return create_mutex(object_name(name), flags, access); });
}
HANDLE CreateMutexExW(LPSECURITY_ATTRIBUTES, LPCWSTR name, DWORD flags, DWORD access) {
    return made([&] { return create_mutex(object_name(name), flags, access); });
}
HANDLE OpenMutexA(DWORD access, BOOL, LPCSTR name) {
    return made([&] { return open_named(object_name(name), kind::mutex, access); });
}
HANDLE OpenMutexW(DWORD access, BOOL, LPCWSTR name) {
    return made([&] { return open_named(object_name(name), kind::mutex, access); });
}

BOOL ReleaseMutex(HANDLE mutex) {
    const handle_use use(mutex);
    auto* const found = of_kind<mutex_object>(use, kind::mutex, 0);
    if (found == nullptr) return FALSE;
    thread* const self = current_thread_or_null();
    if (self == nullptr || !found->state.is_owned_by(self)) return fail(ERROR_NOT_OWNER);
    found->release(*self);
    return TRUE;
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
#include "platform/poller/windows_event_doorbells.hpp"

#include <cerrno>
#include <new>

namespace tocsin::platform {
namespace {

// Nothing here is ever destroyed, because rings are allowed after main.
mutex& own_list_lock() noexcept {
    alignas(mutex) static unsigned char storage[sizeof(mutex)];
    static mutex* const made = new (storage) mutex;
    return *made;
}
constinit doorbell_pool own_doorbells;
const pool_owner owns_doorbells(own_doorbells, windows_event_doorbells::was_rung);

// The state that a process has only once: all copies of the library in it use the state of the first copy.
struct process_state {
    doorbell_pool* doorbells;
    mutex& (*list_lock)() noexcept;
    detail::intrusive_list<socket_sleeper> sleepers;  // protected by the list_lock
};
constinit process_state own_state{&own_doorbells, own_list_lock, {}};
constinit void* in_use = &own_state;

process_state& state() noexcept { return *static_cast<process_state*>(in_use); }

int make_event(int (&ends)[2], BOOL reset_by_hand) noexcept {
    const HANDLE made = ::CreateEventW(nullptr, reset_by_hand, FALSE, nullptr);
    if (made == nullptr) return ENOMEM;
    ends[0] = ends[1] = static_cast<int>(reinterpret_cast<std::intptr_t>(made));
    return 0;
}

}  // namespace

detail::intrusive_list<socket_sleeper>& socket_sleepers() noexcept { return state().sleepers; }

mutex& socket_sleepers_lock() noexcept { return state().list_lock(); }

doorbell_pool& windows_event_doorbells::doorbells() noexcept { return *state().doorbells; }

void*& windows_event_doorbells::shared_state() noexcept { return in_use; }

int windows_event_doorbells::make_doorbell(int (&ends)[2]) noexcept { return make_event(ends, FALSE); }

int windows_event_doorbells::make_flag(int (&ends)[2]) noexcept { return make_event(ends, TRUE); }

void windows_event_doorbells::strike(int descriptor, bool) noexcept { ::SetEvent(handle_of(descriptor)); }

bool windows_event_doorbells::was_rung(doorbell& bell) noexcept {
    const DWORD seen = ::WaitForSingleObject(handle_of(bell.wait_end()), 0);
    if (seen == WAIT_FAILED) die_of_closed_doorbell();
    if (seen != WAIT_OBJECT_0) return false;
    bell.answer();
    return true;
}

}  // namespace tocsin::platform

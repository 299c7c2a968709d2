// SPDX-License-Identifier: Apache-2.0
// Memory that processes share, and the objects in it.
#include "boundary.hpp"

#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_memory.hpp>
#include <tocsin/shared_semaphore.hpp>

using namespace tocsin::c;
using tocsin::lock_status;
using tocsin::shared_auto_reset_event;
using tocsin::shared_lock;
using tocsin::shared_manual_reset_event;
using tocsin::shared_memory;
using tocsin::shared_semaphore;

namespace tocsin::c {
namespace {

static_assert(sizeof(tocsin_shared_manual_event) == sizeof(shared_manual_reset_event));
static_assert(sizeof(tocsin_shared_auto_event) == sizeof(shared_auto_reset_event));
static_assert(sizeof(tocsin_shared_semaphore) == sizeof(shared_semaphore));
static_assert(sizeof(tocsin_shared_lock) == sizeof(shared_lock));
static_assert(shared_semaphore::max() == TOCSIN_SHARED_SEMAPHORE_MAX);

// Makes the C++ object that `make` returns, on the heap.
template <class Make>
tocsin_status make_memory(tocsin_shared_memory* memory, Make make, const char* call) noexcept {
    if (object_at<tocsin_shared_memory>(memory) == nullptr)
        return refuse(call, "the object is null or misaligned");
    memory->opaque = nullptr;
    return guarded(call, [&] {
        memory->opaque = std::make_unique<shared_memory>(make()).release();
        return TOCSIN_OK;
    });
}

template <class T, class C>
tocsin_status find(void* at, std::size_t room, C** found, const char* call) noexcept {
    if (object_at<C*>(found) == nullptr)
        return refuse(call, "the place for the result is null or misaligned");
    *found = nullptr;
    return guarded(call, [&] {
        *found = reinterpret_cast<C*>(&tocsin::shared_at<T>(at, room));
        return TOCSIN_OK;
    });
}

template <class T, class C>
tocsin_status wait(C* object, const tocsin_limits* how, const char* call) noexcept {
    if (!is_valid(how)) return refuse(call, "the limits are not valid");
    return with<T>(
        object,
        [=](T& one) {
            const tocsin::limits until = limits_of(how);
            const tocsin::stop_token* const stop = until.stop.get();
            if (stop == nullptr) return status_of(one.wait_until(until.until));
            return status_of(one.wait_until(until.until, *stop));
        },
        call);
}

tocsin_status status_of(lock_status how) noexcept {
    switch (how) {
        case lock_status::acquired: return TOCSIN_OK;
        case lock_status::owner_died: return TOCSIN_OWNER_DIED;
        case lock_status::lost: return TOCSIN_LOCK_LOST;
        case lock_status::timed_out: return TOCSIN_TIMED_OUT;
        case lock_status::stopped: return TOCSIN_STOPPED;
        case lock_status::busy: break;
    }
    return TOCSIN_NOTHING_DONE;
}

}  // namespace
}  // namespace tocsin::c

extern "C" {

tocsin_status tocsin_shared_memory_create(tocsin_shared_memory* memory, const char* name, size_t size,
                                          uint32_t permissions) {
    if (name == nullptr) return refuse(__func__, "the name is null");
    return make_memory(memory, [=] { return shared_memory::create(name, size, permissions); }, __func__);
}
tocsin_status tocsin_shared_memory_open(tocsin_shared_memory* memory, const char* name) {
    if (name == nullptr) return refuse(__func__, "the name is null");
    return make_memory(memory, [=] { return shared_memory::open(name); }, __func__);
}
tocsin_status tocsin_shared_memory_open_or_create(tocsin_shared_memory* memory, const char* name, size_t size,
                                                  uint32_t permissions) {
    if (name == nullptr) return refuse(__func__, "the name is null");
    return make_memory(
        memory, [=] { return shared_memory::open_or_create(name, size, permissions); }, __func__);
}
tocsin_status tocsin_shared_memory_anonymous(tocsin_shared_memory* memory, size_t size) {
    return make_memory(memory, [=] { return shared_memory::anonymous(size); }, __func__);
}
tocsin_status tocsin_shared_memory_map(tocsin_shared_memory* memory, int descriptor) {
    return make_memory(memory, [=] { return shared_memory::map(descriptor); }, __func__);
}
tocsin_status tocsin_shared_memory_receive(tocsin_shared_memory* memory, int socket) {
    return make_memory(memory, [=] { return shared_memory::receive(socket); }, __func__);
}
tocsin_status tocsin_shared_memory_send(const tocsin_shared_memory* memory, int socket) {
    return with_held<const shared_memory>(
        memory, [=](const shared_memory& one) { return one.send(socket), TOCSIN_OK; });
}
tocsin_status tocsin_shared_memory_destroy(tocsin_shared_memory* memory) {
    return destroy_held<shared_memory>(memory);
}
tocsin_status tocsin_shared_memory_unlink(const char* name) {
    if (name == nullptr) return refuse(__func__, "the name is null");
    return guarded(__func__, [=] { return done_if(shared_memory::unlink(name)); });
}
void* tocsin_shared_memory_data(const tocsin_shared_memory* memory) {
    const shared_memory* const one = held_at<const shared_memory>(memory);
    return one != nullptr ? one->data() : nullptr;
}
size_t tocsin_shared_memory_size(const tocsin_shared_memory* memory) {
    const shared_memory* const one = held_at<const shared_memory>(memory);
    return one != nullptr ? one->size() : 0;
}
int tocsin_shared_memory_descriptor(const tocsin_shared_memory* memory) {
    const shared_memory* const one = held_at<const shared_memory>(memory);
    return one != nullptr ? one->descriptor() : -1;
}

tocsin_status tocsin_shared_manual_event_at(void* at, size_t room, tocsin_shared_manual_event** found) {
    return find<shared_manual_reset_event>(at, room, found, __func__);
}
tocsin_status tocsin_shared_manual_event_set(tocsin_shared_manual_event* event) {
    return with<shared_manual_reset_event>(event, [](auto& one) { return one.set(), TOCSIN_OK; });
}
tocsin_status tocsin_shared_manual_event_reset(tocsin_shared_manual_event* event) {
    return with<shared_manual_reset_event>(event, [](auto& one) { return one.reset(), TOCSIN_OK; });
}
bool tocsin_shared_manual_event_is_set(const tocsin_shared_manual_event* event) {
    const auto* const one = object_at<shared_manual_reset_event>(event);
    return one != nullptr && one->is_set();
}
tocsin_status tocsin_shared_manual_event_wait(tocsin_shared_manual_event* event, const tocsin_limits* how) {
    return wait<shared_manual_reset_event>(event, how, __func__);
}

tocsin_status tocsin_shared_auto_event_at(void* at, size_t room, tocsin_shared_auto_event** found) {
    return find<shared_auto_reset_event>(at, room, found, __func__);
}
tocsin_status tocsin_shared_auto_event_set(tocsin_shared_auto_event* event) {
    return with<shared_auto_reset_event>(event, [](auto& one) { return one.set(), TOCSIN_OK; });
}
tocsin_status tocsin_shared_auto_event_reset(tocsin_shared_auto_event* event) {
    return with<shared_auto_reset_event>(event, [](auto& one) { return one.reset(), TOCSIN_OK; });
}
bool tocsin_shared_auto_event_is_set(const tocsin_shared_auto_event* event) {
    const auto* const one = object_at<shared_auto_reset_event>(event);
    return one != nullptr && one->is_set();
}
tocsin_status tocsin_shared_auto_event_try_wait(tocsin_shared_auto_event* event) {
    return with<shared_auto_reset_event>(event, [](auto& one) { return done_if(one.try_wait()); });
}
tocsin_status tocsin_shared_auto_event_wait(tocsin_shared_auto_event* event, const tocsin_limits* how) {
    return wait<shared_auto_reset_event>(event, how, __func__);
}

tocsin_status tocsin_shared_semaphore_at(void* at, size_t room, tocsin_shared_semaphore** found) {
    return find<shared_semaphore>(at, room, found, __func__);
}
tocsin_status tocsin_shared_semaphore_release(tocsin_shared_semaphore* one, uint32_t permits) {
    if (permits > TOCSIN_SHARED_SEMAPHORE_MAX)
        return refuse(__func__, "too many permits", TOCSIN_ERROR_TOO_GREAT);
    return with<shared_semaphore>(one, [=](shared_semaphore& counted) {
        return counted.release(static_cast<std::ptrdiff_t>(permits)), TOCSIN_OK;
    });
}
tocsin_status tocsin_shared_semaphore_try_acquire(tocsin_shared_semaphore* one) {
    return with<shared_semaphore>(one,
                                  [](shared_semaphore& counted) { return done_if(counted.try_acquire()); });
}
tocsin_status tocsin_shared_semaphore_acquire(tocsin_shared_semaphore* one, const tocsin_limits* how) {
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    return with<shared_semaphore>(one, [=](shared_semaphore& counted) {
        const tocsin::limits until = limits_of(how);
        const tocsin::stop_token* const stop = until.stop.get();
        if (stop != nullptr) return status_of(counted.try_acquire_until(until.until, *stop));
        return counted.try_acquire_until(until.until) ? TOCSIN_OK : TOCSIN_TIMED_OUT;
    });
}
uint32_t tocsin_shared_semaphore_available(const tocsin_shared_semaphore* one) {
    const auto* const counted = object_at<shared_semaphore>(one);
    return counted != nullptr ? static_cast<uint32_t>(counted->available()) : 0;
}

tocsin_status tocsin_shared_lock_at(void* at, size_t room, tocsin_shared_lock** found) {
    return find<shared_lock>(at, room, found, __func__);
}
tocsin_status tocsin_shared_lock_try_acquire(tocsin_shared_lock* lock) {
    return with<shared_lock>(lock, [](shared_lock& one) { return status_of(one.try_lock()); });
}
tocsin_status tocsin_shared_lock_acquire(tocsin_shared_lock* lock, const tocsin_limits* how) {
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    return with<shared_lock>(lock, [=](shared_lock& one) {
        const tocsin::limits until = limits_of(how);
        const tocsin::stop_token* const stop = until.stop.get();
        return status_of(stop == nullptr ? one.try_lock_until(until.until)
                                         : one.try_lock_until(until.until, *stop));
    });
}
tocsin_status tocsin_shared_lock_release(tocsin_shared_lock* lock) {
    return with<shared_lock>(lock, [](shared_lock& one) { return one.unlock(), TOCSIN_OK; });
}
tocsin_status tocsin_shared_lock_mark_repaired(tocsin_shared_lock* lock) {
    return with<shared_lock>(lock, [](shared_lock& one) { return one.mark_repaired(), TOCSIN_OK; });
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// A lock in memory that several processes share, and that outlives its owner: if the thread that holds it dies, the
// next owner learns that. What shared_event.hpp says at its top about memory, layout, death and errors holds here, too.
// Memory full of zeros is a free lock.
//
//     switch (lock.lock()) {
//         case tocsin::lock_status::owner_died: repair(data); lock.mark_repaired(); [[fallthrough]];
//         case tocsin::lock_status::acquired: use(data); lock.unlock(); break;
//         default: break;  // lost: an owner could not repair what the lock protects
//     }
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/shared_layout.hpp>
#include <tocsin/stop_token.hpp>

#include <chrono>
#include <cstdint>

namespace tocsin {

enum class lock_status : std::uint8_t {
    acquired,  // the caller holds the lock
    owner_died,  // the caller holds the lock; an earlier owner died with it, and nobody has said that he has repaired
                 // what the lock protects
    lost,       // the caller does not hold the lock, and nobody will any more: see shared_lock::unlock()
    timed_out,  // the deadline passed first
    stopped,    // a stop was requested first
    busy,       // of try_lock(): another thread holds the lock
};

namespace detail {

enum class shared_lock_call : std::uint8_t { wait, only_try };
TOCSIN_API lock_status shared_lock_acquire(const shared_parts& object, const deadline& until,
                                           const stop_token* stop, shared_lock_call how);
TOCSIN_API void shared_lock_release(const shared_parts& object);
TOCSIN_API void shared_lock_repaired(const shared_parts& object);

}  // namespace detail

// 2 KiB: 64 bytes, and 64 for each of the 31 threads that can hold it or wait for it at one time. Not recursive. First
// come, first served.
//
// A thread can hold 64 of these locks at a time. The kernel's list of what a thread holds is that of the C library's
// robust mutexes, with which these locks mix freely.
class shared_lock {
public:
    // For the library: what the memory holds, and how many threads can wait at one time (0: any number).
    static constexpr auto kind = detail::shared_kind::lock;
    static constexpr unsigned slots = 31;

    constexpr shared_lock() noexcept = default;
    shared_lock(const shared_lock&) = delete;
    shared_lock& operator=(const shared_lock&) = delete;

    // Waits until the calling thread holds the lock, and returns `acquired`, `owner_died` or `lost`. Throws
    // std::system_error: resource_deadlock_would_occur if this thread holds the lock already, no_lock_available if this
    // thread holds 64 such locks, function_not_supported on a system that is not Linux, and what shared_event.hpp
    // names.
    [[nodiscard]] lock_status lock() { return acquire(deadline::never(), nullptr); }
    [[nodiscard]] lock_status lock(const stop_token& stop) { return acquire(deadline::never(), &stop); }
    [[nodiscard]] lock_status try_lock() {
        return acquire(deadline::never(), nullptr, detail::shared_lock_call::only_try);
    }
    template <class Rep, class Period>
    [[nodiscard]] lock_status try_lock_for(std::chrono::duration<Rep, Period> longest) {
        return acquire(longest, nullptr);
    }
    [[nodiscard]] lock_status try_lock_until(const deadline& until) { return acquire(until, nullptr); }
    [[nodiscard]] lock_status try_lock_until(const deadline& until, const stop_token& stop) {
        return acquire(until, &stop);
    }

    // Hands the lock to the thread that has waited longest. If the owner was told `owner_died` and has not called
    // mark_repaired(), the lock is lost from now on: all calls return `lost`, also those that wait. Only fresh, zeroed
    // memory makes a new lock. Throws operation_not_permitted if the calling thread does not hold the lock.
    void unlock() { detail::shared_lock_release(parts()); }

    // The owner says that what the lock protects is in order again. Throws as unlock().
    void mark_repaired() { detail::shared_lock_repaired(parts()); }

private:
    lock_status acquire(const deadline& until, const stop_token* stop,
                        detail::shared_lock_call how = detail::shared_lock_call::wait) {
        return detail::shared_lock_acquire(parts(), until, stop, how);
    }
    detail::shared_parts parts() noexcept { return {object_.header, object_.slots, slots, kind}; }

    detail::shared_object<slots> object_;
};

}  // namespace tocsin

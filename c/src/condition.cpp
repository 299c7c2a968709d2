// SPDX-License-Identifier: Apache-2.0
// The lock of four bytes, and conditions for it and for any other lock.
#include "boundary.hpp"

#include <tocsin/condition.hpp>
#include <tocsin/word_lock.hpp>

using namespace tocsin::c;
using tocsin::condition;
using c_lock = tocsin::word_lock<std::uint32_t>;

namespace tocsin::c {
namespace {

// A lock of C, in the form that a condition needs. Its functions must not throw.
struct foreign_lock {
    const tocsin_lockable& how;
    void lock() const noexcept { how.lock(how.object); }
    void unlock() const noexcept { how.unlock(how.object); }
};

template <class Lock>
tocsin_status wait(condition& one, Lock& lock, const tocsin_limits* how) {
    const tocsin::limits until = limits_of(how);
    const tocsin::stop_token none;
    const tocsin::stop_token* const stop = until.stop.get();
    return status_of(one.wait_until(lock, until.until, stop == nullptr ? none : *stop, until.spin));
}

// Calls `use` with the lock, as a word_lock if it is one.
template <class Use>
tocsin_status with_lock(const tocsin_lockable* lock, Use&& use, const char* call) noexcept {
    if (object_at<tocsin_lockable>(lock) == nullptr || (lock->lock == nullptr) != (lock->unlock == nullptr))
        return refuse(call, "the lock is null or misaligned, or lacks one of its functions");
    if (lock->lock == nullptr) return with<c_lock>(static_cast<tocsin_lock*>(lock->object), use, call);
    foreign_lock foreign{*lock};
    return use(foreign);
}

}  // namespace
}  // namespace tocsin::c

extern "C" {

tocsin_status tocsin_lock_init(tocsin_lock* lock) { return make<c_lock>(lock, __func__); }
tocsin_status tocsin_lock_acquire(tocsin_lock* lock, const tocsin_limits* how) {
    if (!is_valid(how) || (how != nullptr && how->stop != nullptr))
        return refuse(__func__, "the limits are not valid, or have a stop");
    return with<c_lock>(lock, [=](c_lock& one) {
        if (one.try_lock()) return TOCSIN_OK;
        const tocsin::limits until = limits_of(how);
        return one.try_lock_until(until.until, until.spin) ? TOCSIN_OK : TOCSIN_TIMED_OUT;
    });
}
tocsin_status tocsin_lock_try_acquire(tocsin_lock* lock) {
    return with<c_lock>(lock, [](c_lock& one) { return done_if(one.try_lock()); });
}
tocsin_status tocsin_lock_release(tocsin_lock* lock) {
    return with<c_lock>(lock, [](c_lock& one) { return one.unlock(), TOCSIN_OK; });
}

tocsin_status tocsin_condition_init(tocsin_condition* one) { return make<condition>(one, __func__); }
tocsin_status tocsin_condition_destroy(tocsin_condition* one) { return destroy<condition>(one); }
tocsin_status tocsin_condition_notify_one(tocsin_condition* one) {
    return with<condition>(one, [](condition& notified) { return notified.notify_one(), TOCSIN_OK; });
}
tocsin_status tocsin_condition_notify_all(tocsin_condition* one) {
    return with<condition>(one, [](condition& notified) { return notified.notify_all(), TOCSIN_OK; });
}
tocsin_status tocsin_condition_wait(tocsin_condition* one, tocsin_lock* lock, const tocsin_limits* how) {
    c_lock* const held = object_at<c_lock>(lock);
    if (held == nullptr || !is_valid(how))
        return refuse(__func__, "the lock is null or misaligned, or the limits are not valid");
    return with<condition>(one, [=](condition& changed) { return wait(changed, *held, how); });
}
tocsin_status tocsin_condition_wait_with(tocsin_condition* one, const tocsin_lockable* lock,
                                         const tocsin_limits* how) {
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    return with<condition>(one, [=, call = __func__](condition& changed) {
        return with_lock(lock, [&](auto& held) { return wait(changed, held, how); }, call);
    });
}
tocsin_status tocsin_condition_wait_any(tocsin_condition* one, const tocsin_lockable* lock,
                                        const tocsin_source* sources, size_t count, const tocsin_limits* how,
                                        tocsin_any_result* result) {
    if (result != nullptr) *result = {SIZE_MAX, 0};
    if (!is_valid(how)) return refuse(__func__, "the limits are not valid");
    const source_array list(sources, count, __func__);
    if (list.status() != TOCSIN_OK) return list.status();
    return with<condition>(one, [&, call = __func__](condition& changed) {
        const auto wait = [&](auto& held) {
            const tocsin::any_result ended = changed.wait_any(held, limits_of(how), list.all());
            if (result != nullptr) *result = {ended.index, static_cast<uint32_t>(ended.found)};
            return status_of(ended.status);
        };
        return with_lock(lock, [&](auto& held) { return guarded(call, [&] { return wait(held); }); }, call);
    });
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Waiting for an object to change, at any address: 1, 2, 4 or 8 bytes, on every system.
//
//     std::atomic<std::uint8_t> phase{0};
//     tocsin::wait_on_address(&phase, 0);                          // sleeps while phase is 0
//     tocsin::store(&phase, 1, tocsin::wake_all);                  // in another thread
//
// The object is a std::atomic<T>, or a plain T that every thread accesses atomically (std::atomic_ref). Values are
// compared bit by bit. T must be trivially copyable, of 1, 2, 4 or 8 bytes, and without padding. Change the value
// and wake in one call, as above, or change it first and then wake.
//
// Each wait takes the address, a value or a predicate, and then the usual arguments of a wait, in this order: a
// deadline, a stop token, a spin policy. Each of these three may be left out, with one exception: if
// wait_until_accepted() or wait_until_changed() is given a deadline and a spin policy, it needs a stop token between
// them. Write stop_token() there if you have none.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/address_value.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tocsin {

// If the object at `address` holds `expected`, sleeps until a wake on that address, the deadline or a stop request. If
// the object holds another value, or gets one before the thread is queued, returns `differed` at once. After `woken`,
// look at the value again: the wake may have been meant for an earlier object at the same address. Wakes are exact: n
// wakes release n waiters, even if the object is only one byte and other threads wait at neighbouring addresses.
// Waiters are released first in, first out.
// A call that returns `differed` has read the value with acquire order. If a wake releases the thread, what the waker
// did before is visible to the thread.
// Throws std::invalid_argument for an address that is not aligned to the object's size.
// Cost: a load if the value differs, else a short lock and one system call to sleep. Never allocates.
template <class T>
address_status wait_on_address(const T* address, detail::value_of_t<T> expected, spin_policy spin = {}) {
    if (detail::differs(address, expected)) [[likely]]
        return address_status::differed;
    return detail::address_wait(address, expected, nullptr, nullptr, spin);
}
template <class T>
address_status wait_on_address(const T* address, detail::value_of_t<T> expected, const stop_token& stop,
                               spin_policy spin = {}) {
    if (detail::differs(address, expected)) [[likely]]
        return address_status::differed;
    return detail::address_wait(address, expected, nullptr, &stop, spin);
}
template <class T>
address_status wait_on_address(const T* address, detail::value_of_t<T> expected, const deadline& until,
                               spin_policy spin = {}) {
    if (detail::differs(address, expected)) [[likely]]
        return address_status::differed;
    return detail::address_wait(address, expected, &until, nullptr, spin);
}
template <class T>
address_status wait_on_address(const T* address, detail::value_of_t<T> expected, const deadline& until,
                               const stop_token& stop, spin_policy spin = {}) {
    if (detail::differs(address, expected)) [[likely]]
        return address_status::differed;
    return detail::address_wait(address, expected, &until, &stop, spin);
}

// What wait_until_accepted() and wait_until_changed() return if they are given a deadline or a stop token: how the wait
// ended, and the value seen last.
template <class T>
struct value_result {
    wait_status status;  // how the wait ended
    T value;             // the one seen last
};

namespace detail {
// Looks at the value once more before a wait for a predicate gives up. So the wait never returns `timed_out` or
// `stopped` with a value that it would accept.
template <class T, class Predicate>
value_result<value_of_t<T>> last_look(const T* address, Predicate& accept, wait_status otherwise) {
    const auto value = load_value(address);
    return {accept(value) ? wait_status::signaled : otherwise, value};
}

template <class Value>
auto differs_from(const Value& old) {
    return [old](const Value& value) { return bits_of(value) != bits_of(old); };
}
}  // namespace detail

// Sleeps until `accept` returns true for the object's value. Wakes do not end the wait as long as `accept` returns
// false. `accept` runs in the calling thread, under no lock, once for each look at the value. A wait that times out or
// is stopped looks once more before it returns, and returns `signaled` if `accept` then returns true. So a value that
// comes with `timed_out` or `stopped` was not accepted. Errors, and the cost of each look, are those of
// wait_on_address().
template <class T, class Predicate>
[[nodiscard]] value_result<detail::value_of_t<T>> wait_until_accepted(const T* address, Predicate accept,
                                                                      const deadline& until,
                                                                      const stop_token& stop = {},
                                                                      spin_policy spin = {}) {
    detail::check_aligned(address, sizeof(detail::value_of_t<T>));
    for (;;) {
        const auto value = detail::load_value(address);
        if (accept(value)) return {wait_status::signaled, value};
        switch (detail::address_wait(address, value, &until, &stop, spin)) {
            case address_status::timed_out: return detail::last_look(address, accept, wait_status::timed_out);
            case address_status::stopped: return detail::last_look(address, accept, wait_status::stopped);
            default: break;
        }
    }
}
template <class T, class Predicate>
[[nodiscard]] value_result<detail::value_of_t<T>> wait_until_accepted(const T* address, Predicate accept,
                                                                      const stop_token& stop,
                                                                      spin_policy spin = {}) {
    return wait_until_accepted(address, std::move(accept), deadline::never(), stop, spin);
}
// With neither a deadline nor a stop token, the wait ends only with an accepted value, and returns that value.
template <class T, class Predicate>
detail::value_of_t<T> wait_until_accepted(const T* address, Predicate accept, spin_policy spin = {}) {
    return wait_until_accepted(address, std::move(accept), deadline::never(), stop_token(), spin).value;
}

// Sleeps until the object holds a value other than `old`, and returns that value. Otherwise like wait_until_accepted().
template <class T>
[[nodiscard]] value_result<detail::value_of_t<T>> wait_until_changed(const T* address,
                                                                     detail::value_of_t<T> old,
                                                                     const deadline& until,
                                                                     const stop_token& stop = {},
                                                                     spin_policy spin = {}) {
    return wait_until_accepted(address, detail::differs_from(old), until, stop, spin);
}
template <class T>
[[nodiscard]] value_result<detail::value_of_t<T>> wait_until_changed(const T* address,
                                                                     detail::value_of_t<T> old,
                                                                     const stop_token& stop,
                                                                     spin_policy spin = {}) {
    return wait_until_accepted(address, detail::differs_from(old), stop, spin);
}
template <class T>
detail::value_of_t<T> wait_until_changed(const T* address, detail::value_of_t<T> old, spin_policy spin = {}) {
    return wait_until_accepted(address, detail::differs_from(old), spin);
}

// These functions wake one, `count` or all of the threads that wait on the address, the longest waiting first. They
// return how many threads they released. Only the address matters: a thread is woken whatever the size of the object on
// which it waits. The memory at the address is never read, and may no longer exist.
// Cost: if no thread waits there, a fence and a load. (Rarely also a short lock, if threads wait at another address
// with a similar hash.) Otherwise a short lock and at most a few system calls: if many threads are released, they wake
// each other.
TOCSIN_API std::size_t wake_by_address_one(const volatile void* address) noexcept;
TOCSIN_API std::size_t wake_by_address_n(const volatile void* address, std::size_t count) noexcept;
TOCSIN_API std::size_t wake_by_address_all(const volatile void* address) noexcept;

// How many waiters a change wakes: wake_one, wake_n(3), wake_all.
struct wake_count {
    std::size_t max;  // at most so many
};
// The counts to pass: one waiter, all waiters, or `count` of them.
inline constexpr wake_count wake_one{1};
inline constexpr wake_count wake_all{static_cast<std::size_t>(-1)};
constexpr wake_count wake_n(std::size_t count) noexcept { return {count}; }

// The functions from here on change the object and then wake waiters, the longest waiting first. Each function does to
// the object what the member function of std::atomic<T> with the same name does, with sequentially consistent order,
// and returns what that member function returns. After the change, a function uses only the address, not the object. So
// a thread that sees the change may destroy the object at once. Like the three wakes above, these functions may be
// called before main, after it, and in destructors of thread-local objects, but not in signal handlers. If the object
// of a plain T is not aligned to its size, the behaviour is undefined; checked builds stop the program.
// Cost: if no thread waits there, the change and a load, and rarely a short lock, as above. (The change serves as the
// fence that a separate wake must make.) With waiters, the cost is that of the wakes above.
template <class T>
void store(T* address, detail::value_of_t<T> value, wake_count count) noexcept {
    detail::atomic_at(address).store(value, std::memory_order_seq_cst);  // [wake-check]
    detail::wake_after_change(address, count.max);
}
template <class T>
detail::value_of_t<T> exchange(T* address, detail::value_of_t<T> value, wake_count count) noexcept {
    const auto old = detail::atomic_at(address).exchange(value, std::memory_order_seq_cst);  // [wake-check]
    detail::wake_after_change(address, count.max);
    return old;
}

// If the object holds `expected`, writes `desired`, wakes, and returns true. Otherwise returns false and wakes nobody,
// and `expected` becomes the value that was found. Never fails spuriously (compare_exchange_strong).
template <class T>
bool compare_exchange(T* address, detail::value_of_t<T>& expected, detail::value_of_t<T> desired,
                      wake_count count) noexcept {
    // [wake-check]
    if (!detail::atomic_at(address).compare_exchange_strong(expected, desired, std::memory_order_seq_cst))
        return false;
    detail::wake_after_change(address, count.max);
    return true;
}

// Each function below exists for the types T for which std::atomic<T> has a member function of the same name.
template <class T>
detail::value_of_t<T> fetch_add(T* address, detail::difference_of_t<T> n, wake_count count) noexcept {
    const auto old = detail::atomic_at(address).fetch_add(n, std::memory_order_seq_cst);  // [wake-check]
    detail::wake_after_change(address, count.max);
    return old;
}
template <class T>
detail::value_of_t<T> fetch_sub(T* address, detail::difference_of_t<T> n, wake_count count) noexcept {
    const auto old = detail::atomic_at(address).fetch_sub(n, std::memory_order_seq_cst);  // [wake-check]
    detail::wake_after_change(address, count.max);
    return old;
}
template <class T>
detail::value_of_t<T> fetch_and(T* address, detail::value_of_t<T> bits, wake_count count) noexcept {
    const auto old = detail::atomic_at(address).fetch_and(bits, std::memory_order_seq_cst);  // [wake-check]
    detail::wake_after_change(address, count.max);
    return old;
}
template <class T>
detail::value_of_t<T> fetch_or(T* address, detail::value_of_t<T> bits, wake_count count) noexcept {
    const auto old = detail::atomic_at(address).fetch_or(bits, std::memory_order_seq_cst);  // [wake-check]
    detail::wake_after_change(address, count.max);
    return old;
}
template <class T>
detail::value_of_t<T> fetch_xor(T* address, detail::value_of_t<T> bits, wake_count count) noexcept {
    const auto old = detail::atomic_at(address).fetch_xor(bits, std::memory_order_seq_cst);  // [wake-check]
    detail::wake_after_change(address, count.max);
    return old;
}

}  // namespace tocsin

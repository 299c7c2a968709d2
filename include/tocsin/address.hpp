// Waiting for an object to change, at any address: 1, 2, 4 or 8 bytes, on every system.
//
//     std::atomic<std::uint8_t> phase{0};
//     tocsin::wait_on_address(&phase, 0);                          // sleeps while phase is 0
//     phase.store(1); tocsin::wake_by_address_all(&phase);         // in another thread
//
// The object is a std::atomic<T>, or a plain T that every thread accesses atomically (std::atomic_ref).
// Values are compared bit by bit; T must be trivially copyable, of 1, 2, 4 or 8 bytes and without
// padding. Change the value first, then wake.
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

namespace tocsin {

// Sleeps while the object at `address` holds `expected`, until a wake on that address, the deadline or a
// stop request. Returns `differed` at once when the value is another one. Callers look at the value again
// and decide; a wake meant for an earlier object at the same address can end a wait.
// Exact: n wakes release n waiters, however narrow the object and whatever waits beside it. First in,
// first out. A value that differs is read with acquire order; a wake is acquired by who it releases.
// Throws std::invalid_argument for an address that is not aligned to the object's size.
// Cost: a load if the value differs; else a short lock and one system call to sleep. Never allocates.
template <class T>
address_status wait_on_address(const T* address, detail::value_of_t<T> expected, spin_policy spin = {}) {
    if (detail::differs(address, expected)) return address_status::differed;
    return detail::address_wait(address, expected, {deadline::never(), nullptr, spin});
}
template <class T>
address_status wait_on_address(const T* address, detail::value_of_t<T> expected, const stop_token& stop,
                               spin_policy spin = {}) {
    if (detail::differs(address, expected)) return address_status::differed;
    return detail::address_wait(address, expected, {deadline::never(), &stop, spin});
}
template <class T>
address_status wait_on_address(const T* address, detail::value_of_t<T> expected, const deadline& until,
                               spin_policy spin = {}) {
    if (detail::differs(address, expected)) return address_status::differed;
    return detail::address_wait(address, expected, {until, nullptr, spin});
}
template <class T>
address_status wait_on_address(const T* address, detail::value_of_t<T> expected, const deadline& until,
                               const stop_token& stop, spin_policy spin = {}) {
    if (detail::differs(address, expected)) return address_status::differed;
    return detail::address_wait(address, expected, {until, &stop, spin});
}

// What the two forms below return: how it ended, and the value last seen.
template <class T>
struct value_result {
    wait_status status;
    T value;
};

namespace detail {
// A predicate wait that gives up looks once more, so that it never reports a value it would accept.
template <class T, class Predicate>
value_result<value_of_t<T>> last_look(const T* address, Predicate& accept, wait_status otherwise) {
    const auto value = load_value(address);
    return {accept(value) ? wait_status::signaled : otherwise, value};
}
}  // namespace detail

// Sleeps until `accept(value)` holds for the value of the object; `accept` runs in the caller, under no
// lock, once for each value looked at. Hides wakes that change nothing.
template <class T, class Predicate>
[[nodiscard]] value_result<detail::value_of_t<T>> wait_until_accepted(
    const T* address, Predicate accept, const deadline& until = deadline::never(),
    const stop_token& stop = {}, spin_policy spin = {}) {
    detail::check_aligned(address, sizeof(detail::value_of_t<T>));
    for (;;) {
        const auto value = detail::load_value(address);
        if (accept(value)) return {wait_status::signaled, value};
        switch (detail::address_wait(address, value, {until, &stop, spin})) {
            case address_status::timed_out: return detail::last_look(address, accept, wait_status::timed_out);
            case address_status::stopped: return detail::last_look(address, accept, wait_status::stopped);
            default: break;
        }
    }
}

// Sleeps until the object holds anything but `old`, and returns what it holds then.
template <class T>
[[nodiscard]] value_result<detail::value_of_t<T>> wait_until_changed(
    const T* address, detail::value_of_t<T> old, const deadline& until = deadline::never(),
    const stop_token& stop = {}, spin_policy spin = {}) {
    return wait_until_accepted(
        address, [old](const auto& value) { return detail::bits_of(value) != detail::bits_of(old); }, until,
        stop, spin);
}

// Wakes the longest waiting one, `count` or all of those who wait on the address, of any width, and
// returns how many it released. The address alone counts: the memory is never read and may be gone.
// Cost: a fence and a load when nobody waits there; else a short lock and at most a few system calls:
// when many are released, they wake each other.
TOCSIN_API std::size_t wake_by_address_one(const volatile void* address) noexcept;
TOCSIN_API std::size_t wake_by_address_n(const volatile void* address, std::size_t count) noexcept;
TOCSIN_API std::size_t wake_by_address_all(const volatile void* address) noexcept;

}  // namespace tocsin

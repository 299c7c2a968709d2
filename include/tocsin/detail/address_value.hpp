// SPDX-License-Identifier: Apache-2.0
// How a typed object becomes the bits that an address wait compares, and the atomic object that a change uses. The
// waits and wakes are in src/address.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/status.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tocsin::detail {

template <class T>
struct value_of {
    using type = T;
};
template <class T>
struct value_of<std::atomic<T>> {
    using type = T;
};
#if defined(TOCSIN_MODEL)
template <class T>
struct value_of<model::atomic<T>> {
    using type = T;
};
#endif
template <class T>
using value_of_t = typename value_of<std::remove_cv_t<T>>::type;

// What fetch_add() and fetch_sub() take.
template <class T>
using difference_of_t = typename std::atomic<value_of_t<T>>::difference_type;

template <class T>
constexpr void require_bits() noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "tocsin: an address wait needs a trivially copyable type");
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                  "tocsin: an address wait needs an object of 1, 2, 4 or 8 bytes");
    static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>,
                  "tocsin: an address wait compares bits, so the type must not have padding");
}

template <class T>
std::uint64_t bits_of(const T& value) noexcept {
    require_bits<T>();
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>
        bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <class Value>
Value value_from(std::uint64_t bits) noexcept {
    if constexpr (sizeof(Value) == 1)
        return std::bit_cast<Value>(static_cast<std::uint8_t>(bits));
    else if constexpr (sizeof(Value) == 2)
        return std::bit_cast<Value>(static_cast<std::uint16_t>(bits));
    else if constexpr (sizeof(Value) == 4)
        return std::bit_cast<Value>(static_cast<std::uint32_t>(bits));
    else
        return std::bit_cast<Value>(bits);
}

template <class T>
value_of_t<T> load_value(const T* address) noexcept {
    static_assert(sizeof(T) == sizeof(value_of_t<T>) || !std::is_same_v<T, std::atomic<value_of_t<T>>>,
                  "tocsin: this std::atomic is larger than its value");
    return value_from<value_of_t<T>>(detail::load_erased(address, sizeof(value_of_t<T>)));  // [user] acquires
}

[[noreturn]] TOCSIN_API void throw_misaligned(const volatile void* address, unsigned size);
[[noreturn]] TOCSIN_API void changed_misaligned(const volatile void* address, unsigned size) noexcept;

inline bool is_aligned(const volatile void* address, unsigned size) noexcept {
    return (reinterpret_cast<std::uintptr_t>(address) & (size - 1)) == 0;
}

inline void check_aligned(const volatile void* address, unsigned size) {
    if (!is_aligned(address, size)) [[unlikely]]
        throw_misaligned(address, size);
}

// What an atomic change operates on: the object itself if it is atomic, otherwise a std::atomic_ref of it.
template <class T>
decltype(auto) atomic_at(T* address) noexcept {
    using value = value_of_t<T>;
    require_bits<value>();
#if TOCSIN_CHECKED
    if (!is_aligned(address, sizeof(value))) changed_misaligned(address, sizeof(value));
#endif
    if constexpr (std::is_same_v<std::remove_volatile_t<T>, value>)
        return std::atomic_ref<value>(const_cast<value&>(*address));
    else
        return (*address);
}

// Wakes up to `count`. The caller has changed the object in one sequentially consistent step. [wake-check]
TOCSIN_API void wake_after_change(const volatile void* address, std::size_t count) noexcept;

// Called by a wait that has found the expected value: looks again, and sleeps. `until` and `stop` may be null. On
// 64-bit systems other than Windows, all arguments fit into registers. wait_on_address() marks the call as unlikely. So
// a wait that finds another value is a load, a compare and a test of the alignment, with no branch taken.
TOCSIN_API address_status address_wait_slow(const volatile void* address, unsigned size,
                                            std::uint64_t expected, const deadline* until,
                                            const stop_token* stop, spin_policy spin) noexcept;

template <class T>
bool differs(const T* address, const value_of_t<T>& expected) {
    check_aligned(address, sizeof(value_of_t<T>));
    return detail::load_erased(address, sizeof(value_of_t<T>)) != bits_of(expected);  // [user] acquires
}

template <class T>
address_status address_wait(const T* address, const value_of_t<T>& expected, const deadline* until,
                            const stop_token* stop, spin_policy spin) noexcept {
    return address_wait_slow(address, sizeof(value_of_t<T>), bits_of(expected), until, stop, spin);
}

}  // namespace tocsin::detail

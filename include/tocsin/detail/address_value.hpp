// How a typed object becomes the bits that an address wait compares. The wait itself is in src/address.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/status.hpp>

#include <bit>
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

template <class T>
std::uint64_t bits_of(const T& value) noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "tocsin: an address wait needs a trivially copyable type");
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                  "tocsin: an address wait needs an object of 1, 2, 4 or 8 bytes");
    static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>,
                  "tocsin: an address wait compares bits, so the type must not have padding");
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

inline void check_aligned(const volatile void* address, unsigned size) {
    if ((reinterpret_cast<std::uintptr_t>(address) & (size - 1)) != 0) [[unlikely]] {
        throw_misaligned(address, size);
    }
}

TOCSIN_API address_status address_wait_slow(const volatile void* address, unsigned size,
                                            std::uint64_t expected, const wait_options& options) noexcept;

template <class T>
bool differs(const T* address, const value_of_t<T>& expected) {
    check_aligned(address, sizeof(value_of_t<T>));
    return detail::load_erased(address, sizeof(value_of_t<T>)) != bits_of(expected);  // [user] acquires
}

template <class T>
address_status address_wait(const T* address, const value_of_t<T>& expected,
                            const wait_options& options) noexcept {
    return address_wait_slow(address, sizeof(value_of_t<T>), bits_of(expected), options);
}

}  // namespace tocsin::detail

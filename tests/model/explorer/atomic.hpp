// SPDX-License-Identifier: Apache-2.0
// std::atomic's interface over the explorer. The model tests compile the library's sources with it.
//
// An object has the size of its value, so that layouts do not change. The engine knows an object by its address. The
// member holds the newest value in modification order. The type is not trivially destructible, so that the model sees
// when an object is destroyed.
#pragma once

#include "hooks.hpp"

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tocsin::model {

template <class T>
concept atomic_value =
    std::is_trivially_copyable_v<T> && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

namespace detail {

template <std::size_t Size>
using bits_of_size =
    std::conditional_t<Size == 1, std::uint8_t,
                       std::conditional_t<Size == 2, std::uint16_t,
                                          std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
word to_word(const T& value) noexcept {
    return std::bit_cast<bits_of_size<sizeof(T)>>(value);
}

template <class T>
T from_word(word w) noexcept {
    return std::bit_cast<T>(static_cast<bits_of_size<sizeof(T)>>(w));
}

template <class T>
struct difference {
    using type = T;
};
template <class T>
struct difference<T*> {
    using type = std::ptrdiff_t;
};

// Derives the order of a failure from that of a success, as the standard does.
constexpr std::memory_order failure_order(std::memory_order o) noexcept {
    if (o == std::memory_order_acq_rel) return std::memory_order_acquire;
    if (o == std::memory_order_release) return std::memory_order_relaxed;
    return o;
}

}  // namespace detail

template <atomic_value T>
class atomic {
    using order = std::memory_order;
    using source = std::source_location;
    static constexpr order seq_cst = std::memory_order_seq_cst;

public:
    using value_type = T;
    using difference_type = typename detail::difference<T>::type;
    static constexpr bool is_always_lock_free = true;

    constexpr atomic() noexcept : atomic(T{}) {}

    constexpr atomic(T value) noexcept : value_(value) {
        if (!std::is_constant_evaluated() && detail::exploring)
            detail::constructed(&value_, sizeof value_, detail::to_word(value));
    }

    constexpr ~atomic() {
        if (!std::is_constant_evaluated() && detail::exploring) detail::destroyed(&value_, sizeof value_);
    }

    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    bool is_lock_free() const noexcept { return true; }

    T load(order o = seq_cst, source s = source::current()) const noexcept {
        if (!detail::exploring) return value_;
        return detail::from_word<T>(detail::load(&value_, sizeof value_, o, s));
    }

    void store(T value, order o = seq_cst, source s = source::current()) noexcept {
        if (!detail::exploring)
            value_ = value;
        else
            detail::store(&value_, sizeof value_, detail::to_word(value), o, s);
    }

    T exchange(T value, order o = seq_cst, source s = source::current()) noexcept {
        if (detail::exploring) return modify(detail::rmw::exchange, detail::to_word(value), o, s);
        const T old = value_;
        value_ = value;
        return old;
    }

    bool compare_exchange_strong(T& expected, T desired, order success, order failure,
                                 source s = source::current()) noexcept {
        return compare_exchange(expected, desired, success, failure, false, s);
    }
    bool compare_exchange_strong(T& expected, T desired, order o = seq_cst,
                                 source s = source::current()) noexcept {
        return compare_exchange(expected, desired, o, detail::failure_order(o), false, s);
    }
    bool compare_exchange_weak(T& expected, T desired, order success, order failure,
                               source s = source::current()) noexcept {
        return compare_exchange(expected, desired, success, failure, true, s);
    }
    bool compare_exchange_weak(T& expected, T desired, order o = seq_cst,
                               source s = source::current()) noexcept {
        return compare_exchange(expected, desired, o, detail::failure_order(o), true, s);
    }

    T fetch_add(difference_type n, order o = seq_cst, source s = source::current()) noexcept
        requires(std::is_integral_v<T> || std::is_pointer_v<T>)
    {
        if (!detail::exploring) {
            const T old = value_;
            value_ = static_cast<T>(value_ + n);
            return old;
        }
        return modify(detail::rmw::add, scaled(n), o, s);
    }

    T fetch_sub(difference_type n, order o = seq_cst, source s = source::current()) noexcept
        requires(std::is_integral_v<T> || std::is_pointer_v<T>)
    {
        if (!detail::exploring) {
            const T old = value_;
            value_ = static_cast<T>(value_ - n);
            return old;
        }
        return modify(detail::rmw::subtract, scaled(n), o, s);
    }

    T fetch_or(T bits, order o = seq_cst, source s = source::current()) noexcept
        requires std::is_integral_v<T>
    {
        if (detail::exploring) return modify(detail::rmw::bit_or, detail::to_word(bits), o, s);
        const T old = value_;
        value_ = static_cast<T>(value_ | bits);
        return old;
    }

    T fetch_and(T bits, order o = seq_cst, source s = source::current()) noexcept
        requires std::is_integral_v<T>
    {
        if (detail::exploring) return modify(detail::rmw::bit_and, detail::to_word(bits), o, s);
        const T old = value_;
        value_ = static_cast<T>(value_ & bits);
        return old;
    }

    T fetch_xor(T bits, order o = seq_cst, source s = source::current()) noexcept
        requires std::is_integral_v<T>
    {
        if (detail::exploring) return modify(detail::rmw::bit_xor, detail::to_word(bits), o, s);
        const T old = value_;
        value_ = static_cast<T>(value_ ^ bits);
        return old;
    }

    // Operators can't take a source location, so their rows have none.
    operator T() const noexcept { return load(seq_cst, source{}); }
    T operator=(T value) noexcept {
        store(value, seq_cst, source{});
        return value;
    }

private:
    T modify(detail::rmw kind, detail::word operand, order o, source s) noexcept {
        return detail::from_word<T>(detail::read_modify_write(&value_, sizeof value_, kind, operand, o, s));
    }

    static detail::word scaled(difference_type n) noexcept {
        if constexpr (std::is_pointer_v<T>)
            return static_cast<detail::word>(n) * sizeof(std::remove_pointer_t<T>);
        else
            return detail::to_word(n);
    }

    bool compare_exchange(T& expected, T desired, order success, order failure, bool weak,
                          source s) noexcept {
        if (!detail::exploring) {
            if (detail::to_word(value_) == detail::to_word(expected)) {
                value_ = desired;
                return true;
            }
            expected = value_;
            return false;
        }
        detail::word old = detail::to_word(expected);
        const bool done = detail::compare_exchange(&value_, sizeof value_, old, detail::to_word(desired),
                                                   success, failure, weak, s);
        expected = detail::from_word<T>(old);
        return done;
    }

    // Aligned as std::atomic is: to its size.
    alignas(sizeof(T)) T value_;
};

// A field that some lock protects: in every run, happens-before must order every access with every conflicting one. An
// access is not a scheduling point.
template <class T>
class plain {
    using source = std::source_location;

public:
    constexpr plain() noexcept : plain(T{}) {}

    constexpr plain(T value) noexcept : value_(value) {
        if (!std::is_constant_evaluated() && detail::exploring) detail::plain_constructed(this, sizeof *this);
    }

    constexpr plain(const plain& other) noexcept : plain(other.get(source{})) {}

    constexpr ~plain() {
        if (!std::is_constant_evaluated() && detail::exploring) detail::plain_destroyed(this, sizeof *this);
    }

    constexpr plain& operator=(const plain& other) noexcept {
        set(other.get(source{}), source{});
        return *this;
    }
    constexpr plain& operator=(T value) noexcept {
        set(value, source{});
        return *this;
    }

    constexpr operator T() const noexcept { return get(source{}); }
    constexpr T operator->() const noexcept
        requires std::is_pointer_v<T>
    {
        return get(source{});
    }

    constexpr T get(source s = source::current()) const noexcept {
        if (!std::is_constant_evaluated() && detail::exploring) detail::plain_read(this, sizeof *this, s);
        return value_;
    }

    constexpr void set(T value, source s = source::current()) noexcept {
        if (!std::is_constant_evaluated() && detail::exploring) detail::plain_written(this, sizeof *this, s);
        value_ = value;
    }

    constexpr plain& operator++() noexcept { return *this = static_cast<T>(get(source{}) + 1); }
    constexpr plain& operator--() noexcept { return *this = static_cast<T>(get(source{}) - 1); }
    constexpr T operator++(int) noexcept {
        const T old = get(source{});
        set(static_cast<T>(old + 1), source{});
        return old;
    }
    constexpr T operator--(int) noexcept {
        const T old = get(source{});
        set(static_cast<T>(old - 1), source{});
        return old;
    }
    constexpr plain& operator+=(T n) noexcept { return *this = static_cast<T>(get(source{}) + n); }
    constexpr plain& operator-=(T n) noexcept { return *this = static_cast<T>(get(source{}) - n); }
    constexpr plain& operator|=(T n) noexcept { return *this = static_cast<T>(get(source{}) | n); }
    constexpr plain& operator&=(T n) noexcept { return *this = static_cast<T>(get(source{}) & n); }

private:
    T value_;
};

inline void thread_fence(std::memory_order o, std::source_location s = std::source_location::current()) {
    if (detail::exploring) detail::fence(o, s);
}

inline void full_fence(std::source_location s = std::source_location::current()) {
    thread_fence(std::memory_order_seq_cst, s);
}

inline void cpu_relax(std::source_location s = std::source_location::current()) {
    if (detail::exploring) detail::relax(s);
}

// Whether this is an exploration of the x86 branch.
bool rmw_is_full_fence() noexcept;

// The running thread's load of the atomic at that address.
std::uint64_t load_erased(const void* address, unsigned size,
                          std::memory_order order = std::memory_order_acquire,
                          std::source_location where = std::source_location::current());

// Names the object at that address in tables. Costs nothing when there is no table.
void name(const void* object, std::string_view text);

int this_thread() noexcept;

}  // namespace tocsin::model

#include "stop.hpp"

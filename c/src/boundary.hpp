// SPDX-License-Identifier: Apache-2.0
// The boundary between C and C++: what every function of tocsin.h does before and after it calls the library. The
// functions here check the pointers, convert the limits and the sources, and turn exceptions into statuses.
//
// An object of C is one of two things: the memory of an object of C++ (an event, a semaphore, a latch ...), or a
// pointer to such an object on the heap (a wait_set, a pollable ...), which is called `held`. object_at() is for the
// first kind. held_at() is for the second.
#pragma once

#include <tocsin/limits.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <tocsin.h>

// Whether the system has POSIX signals.
#if defined(_WIN32) || defined(__wasm__)
#define TOCSIN_C_SIGNALS 0
#else
#define TOCSIN_C_SIGNALS 1
#endif

namespace tocsin::c {

// Notes what went wrong, for tocsin_last_error(), and returns the status.
tocsin_status refuse(const char* call, const char* what, tocsin_status status = TOCSIN_ERROR_INVALID,
                     int system_error = 0) noexcept;
// The same for the exception that is being handled.
tocsin_status refuse_current_exception(const char* call) noexcept;

tocsin_status status_of_errno(int number) noexcept;
inline tocsin_status status_of(wait_status how) noexcept {
    switch (how) {
        case wait_status::signaled: return TOCSIN_OK;
        case wait_status::timed_out: return TOCSIN_TIMED_OUT;
        case wait_status::stopped: break;
    }
    return TOCSIN_STOPPED;
}
inline tocsin_status done_if(bool done) noexcept { return done ? TOCSIN_OK : TOCSIN_NOTHING_DONE; }

// Calls `body`, which returns a status, and lets no exception out.
template <class Body>
tocsin_status guarded(const char* call, Body&& body) noexcept {
#if defined(__cpp_exceptions)
    try {
        return body();
    } catch (...) {
        return refuse_current_exception(call);
    }
#else
    (void)call;
    return body();
#endif
}

// The object of C++ that is in the memory of the object of C. Null if the pointer is null or misaligned.
template <class T, class C>
auto* object_at(C* object) noexcept {
    static_assert(sizeof(C) >= sizeof(T) && alignof(C) >= alignof(T), "tocsin.h gives the object too little");
    using target = std::conditional_t<std::is_const_v<C>, const T, T>;
    const bool aligned = (reinterpret_cast<std::uintptr_t>(object) & (alignof(C) - 1)) == 0;
    return aligned ? reinterpret_cast<target*>(object) : nullptr;
}
// The object of C++ to which the object of C has a pointer; null if there is none.
template <class T, class C>
T* held_at(const C* object) noexcept {
    return object_at<C>(object) == nullptr ? nullptr : static_cast<T*>(object->opaque);
}

// Calls `use` with the object of C++, if there is one.
template <class T, class C, class Use>
tocsin_status with(C* object, Use&& use, const char* call = __builtin_FUNCTION()) noexcept {
    auto* const found = object_at<T>(object);
    if (found == nullptr) [[unlikely]]
        return refuse(call, "the object is null or misaligned");
    return guarded(call, [&]() -> tocsin_status { return use(*found); });
}
template <class T, class C, class Use>
tocsin_status with_held(C* object, Use&& use, const char* call = __builtin_FUNCTION()) noexcept {
    T* const found = held_at<T>(object);
    if (found == nullptr) [[unlikely]]
        return refuse(call, "the object is null or misaligned, or was not initialized, or was destroyed");
    return guarded(call, [&]() -> tocsin_status { return use(*found); });
}

// Makes an object in the caller's memory. It need not be destroyed, but may be.
template <class T, class C, class... From>
tocsin_status make(C* object, const char* call, From&&... from) noexcept {
    T* const place = object_at<T>(object);
    if (place == nullptr) return refuse(call, "the object is null or misaligned");
    *object = C{};
    return guarded(call, [&] {
        new (place) T(std::forward<From>(from)...);
        return TOCSIN_OK;
    });
}
template <class T, class C>
tocsin_status destroy(C* object, const char* call = __builtin_FUNCTION()) noexcept {
    T* const found = object_at<T>(object);
    if (found == nullptr) return refuse(call, "the object is null or misaligned");
    found->~T();
    return TOCSIN_OK;
}

// The same on the heap.
template <class T, class C, class... From>
tocsin_status make_held(C* object, const char* call, From&&... from) noexcept {
    if (object_at<C>(object) == nullptr) return refuse(call, "the object is null or misaligned");
    object->opaque = nullptr;
    return guarded(call, [&] {
        object->opaque = std::make_unique<T>(std::forward<From>(from)...).release();
        return TOCSIN_OK;
    });
}
template <class T, class C>
tocsin_status destroy_held(C* object, const char* call = __builtin_FUNCTION()) noexcept {
    return with_held<T>(
        object,
        [object](T& found) {
            object->opaque = nullptr;
            delete &found;
            return TOCSIN_OK;
        },
        call);
}

// What a tocsin_stop points to.
struct stop_state {
    std::stop_source source;
    stop_token token = source.get_token();
};

bool is_valid(const tocsin_deadline& when) noexcept;
bool is_valid(const tocsin_spin& spin) noexcept;
bool is_valid(const tocsin_limits* how) noexcept;
// The arguments of these must be valid.
deadline deadline_of(const tocsin_deadline& when) noexcept;
spin_policy policy_of(const tocsin_spin& spin) noexcept;
limits limits_of(const tocsin_limits* how) noexcept;  // refers to the stop

// Waits for one object that has try_wait() and wait_until(). Refuses bad limits before it takes anything.
template <class T>
tocsin_status wait_for_one(T& object, const tocsin_limits* how, const char* call) noexcept {
    if (!is_valid(how)) return refuse(call, "the limits are not valid");
    if (object.try_wait()) return TOCSIN_OK;
    const limits until = limits_of(how);
    const stop_token* const stop = until.stop.get();
    return status_of(stop == nullptr ? object.wait_until(until.until, until.spin)
                                     : object.wait_until(until.until, *stop, until.spin));
}

// The C++ source that a source of C means; empty if it means none. Throws what the conversion of a shared object throws
// (tocsin/detail/shared_source.hpp).
source source_of(const tocsin_source& from);

// The C++ sources of an array. Up to 16 of them are inside the object, because a wait for up to 16 sources allocates
// nothing.
class source_array {
public:
    // Refuses an array that is null or empty, or that has a source that means nothing or can't be waited for. status()
    // then says so.
    source_array(const tocsin_source* from, std::size_t count, const char* call) noexcept;
    source_array(const source_array&) = delete;
    source_array& operator=(const source_array&) = delete;

    tocsin_status status() const noexcept { return status_; }
    std::span<const source> all() const noexcept { return {first_, count_}; }

private:
    static constexpr std::size_t inside = 16;

    tocsin_status status_ = TOCSIN_OK;
    std::size_t count_ = 0;
    source* first_ = nullptr;
    std::unique_ptr<std::byte[]> heap_;
    alignas(source) std::byte memory_[inside * sizeof(source)];
};

}  // namespace tocsin::c

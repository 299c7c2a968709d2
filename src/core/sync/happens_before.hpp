// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer what the library orders.
//
// ThreadSanitizer sees the atomic operations of code that was compiled with -fsanitize=thread. A program may be
// compiled so, and the library that it links may not. ThreadSanitizer then misses what happens inside the library, and
// reports races between threads that the library has ordered. So the library says what it orders: before() in the
// thread that comes first, and after() in the one that comes later, with the same address. Both are called where the
// program's thread enters the library or leaves it, not at each atomic operation inside. The headers need no calls,
// because the program compiles them.
//
// The address is that of the object that both threads name (the byte of an event, the word of a lock), which is also
// what the atomic operations in the headers name. Or it is that of the waiter, for what one thread does to another
// one's wait. One call too many hides races of the program. So each call stands for an order that the comment beside
// it, or the file's argument about memory order, promises.
//
// Where a wait is released (of a thread, a coroutine or an operation), before() and after() of its waiter (waiter.cpp)
// order all that came before the release. So what ends only by a release needs no call of its own: notifications,
// pulses. No call is needed either where the program's own code takes the step: lock_slow() takes a lock by the
// function that the header passes to it.
//
// If one of these calls is left out, tests/consumer/sanitized_user reports a race, except for calls that matter only
// during a few instructions, or that the program does not make:
// - event_is_set_slow(), event_try_wait_slow(), semaphore_try_acquire_slow(): a wait for all holds the object just
//   then. The header's load orders what came before that load; these order what came after.
// - event_wait_slow() and single_wait::park(): the event was set between the header's look and the queue. (The program
//   sees this in most runs.)
// - waiter::suspend(): the wait was released after it had queued, and before the coroutine suspended.
// - `passed` in channel.cpp: the other end moved on after the header's look. `lock` there: a critical section of both
//   locks names both, and whoever takes both later needs one of them.
// - wait_until_closed() of a wait_group: another add() is under way.
// - shared_token_try_slow(): a thread died with the token.
// - semaphore_try_release(): only C and tocsin/win32.h call it.
//
// ThreadSanitizer's functions are weak symbols here: without it, they are null, and a call costs a load and a branch.
// In a library that is itself compiled with -fsanitize=thread, in a model, and on systems without such symbols, these
// functions do nothing.
#pragma once

#include <tocsin/detail/sanitizer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__ELF__) && defined(__GNUC__) && !defined(TOCSIN_MODEL)
#define TOCSIN_TELLS_SANITIZER 1
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
#else
#define TOCSIN_TELLS_SANITIZER 0
#endif

namespace tocsin::core::order {

// What this thread has done until now comes before what other threads do once they have called after().
inline void before([[maybe_unused]] const volatile void* address) noexcept {
#if TOCSIN_TELLS_SANITIZER
    if constexpr (!detail::thread_sanitizer) {
        if (__tsan_release != nullptr) [[unlikely]]
            __tsan_release(const_cast<void*>(address));
    }
#endif
}

// Does nothing for null, the object of a descriptor or a timer.
inline void after([[maybe_unused]] const volatile void* address) noexcept {
#if TOCSIN_TELLS_SANITIZER
    if constexpr (!detail::thread_sanitizer) {
        if (__tsan_acquire != nullptr && address != nullptr) [[unlikely]]
            __tsan_acquire(const_cast<void*>(address));
    }
#endif
}

// Whether ThreadSanitizer is in this process.
inline bool is_watched() noexcept {
#if TOCSIN_TELLS_SANITIZER
    return detail::thread_sanitizer || __tsan_release != nullptr;
#else
    return detail::thread_sanitizer;
#endif
}

// A std::stop_callback that the library registers is made by code that ThreadSanitizer doesn't see, and called by code
// that it may see: the program's request_stop(). So what this thread did before comes before that call, and the end of
// that call before what this thread does after the callback's destruction. In the two common standard libraries, a
// token is a pointer to a state that begins with two atomics, of which one is the lock. The callback has an atomic that
// says that the call has ended. A standard library that is made in another way gets no order here, and no harm.
template <class Token>
void before_registration([[maybe_unused]] const Token& token) noexcept {
#if TOCSIN_TELLS_SANITIZER
    if (!is_watched()) [[likely]]
        return;
    std::uintptr_t state = 0;
    static_assert(sizeof token >= sizeof state);
    const void* const bytes = &token;
    std::memcpy(&state, bytes, sizeof state);
    before(reinterpret_cast<const void*>(state));
    before(reinterpret_cast<const void*>(state + sizeof(std::uint32_t)));
#endif
}
template <class Callback>
void after_registration([[maybe_unused]] const Callback* callback) noexcept {
#if TOCSIN_TELLS_SANITIZER
    if (!is_watched()) [[likely]]
        return;
    const auto* const begin = reinterpret_cast<const char*>(callback);
    for (std::size_t at = 0; at < sizeof(Callback); at += sizeof(std::uint32_t)) after(begin + at);
#endif
}

// Calls after_registration() when it is destroyed.
class after_callback {
public:
    after_callback() noexcept = default;
    after_callback(const after_callback&) = delete;
    after_callback& operator=(const after_callback&) = delete;
    ~after_callback() {
        if (told_ != nullptr) told_(callback_);
    }

    template <class Callback>
    void is_about([[maybe_unused]] const Callback& callback) noexcept {
        if (!is_watched()) [[likely]]
            return;
        callback_ = &callback;
        told_ = [](const void* which) noexcept { after_registration(static_cast<const Callback*>(which)); };
    }

private:
    const void* callback_ = nullptr;
    void (*told_)(const void*) noexcept = nullptr;
};

// Calls after() if a wait has ended with this result.
template <class Status>
Status after(const volatile void* address, Status how, Status success) noexcept {
    if (how == success) after(address);
    return how;
}

}  // namespace tocsin::core::order

// SPDX-License-Identifier: Apache-2.0
// A condition variable for any lock: threads that hold a lock wait until other threads have changed what the lock
// protects.
//
//     std::mutex mutex;
//     tocsin::condition changed;
//
//     std::unique_lock lock(mutex);                           // a consumer
//     changed.wait(lock, [&] { return !jobs.empty(); });
//
//     { std::scoped_lock lock(mutex); jobs.push_back(job); }  // a producer
//     changed.notify_one();
//
// It has the members of std::condition_variable_any. A program that uses std::condition_variable_any compiles with
// tocsin::condition instead. So does one that uses std::condition_variable, unless it needs native_handle() or
// notify_all_at_thread_exit(). tocsin::condition adds waits with a stop token but no predicate, spin policies, and
// waits without spurious returns. It also adds wait_any(), which waits for the condition alongside events, timers,
// descriptors and other sources.
//
// A condition is 8 bytes and owns nothing: no heap memory, no kernel object. It is constant-initialized and, except in
// checked builds, trivially destructible.
//
// A condition is no source: it is never ready. A notification reaches those who wait at that moment, and leaves no
// trace for a wait that comes later. A wait for a source first looks at the source, and then queues. So it would miss a
// notification between these two steps, unless the caller's lock is held during both. Only the condition's own
// wait_any() has this lock. For the same reason, wait_all() and wait_set do not take conditions. Nor does co_await: a
// coroutine would hold the lock while it suspends, and most locks belong to the thread that took them. In coroutines,
// use an event or a semaphore.
#pragma once

#include <tocsin/bit_lock.hpp>
#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/lock_reference.hpp>
#include <tocsin/detail/source_arguments.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/source.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/word_lock.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>

namespace tocsin {

// What a timed wait returns: the standard's type. (MinGW-w64's thread model win32 has neither that nor mutexes.)
#if !defined(__MINGW32__) || defined(_GLIBCXX_HAS_GTHREADS)
using std::cv_status;
#else
enum class cv_status { no_timeout, timeout };
#endif

// Says that at most one thread at a time can hold a lock of this type, and that this thread can't take the lock a
// second time. Then notify_all() does not release all threads that wait with the same lock together, but a few at a
// time. The next few follow when one of those before them has the lock. The value is true for std::mutex,
// std::timed_mutex, word_lock and bit_lock. Specialize it for a mutex of your own. True would be wrong for a recursive
// or a shared mutex: there, the threads could wait for each other for ever.
template <class Mutex>
inline constexpr bool is_plain_mutex = false;
#if !defined(__MINGW32__) || defined(_GLIBCXX_HAS_GTHREADS)
template <>
inline constexpr bool is_plain_mutex<std::mutex> = true;
template <>
inline constexpr bool is_plain_mutex<std::timed_mutex> = true;
#endif
template <class Word>
inline constexpr bool is_plain_mutex<word_lock<Word>> = true;
template <class Word>
inline constexpr bool is_plain_mutex<bit_lock<Word>> = true;

// A lock that a condition can give up and take back.
template <class T>
concept basic_lockable = requires(T& lock) {
    lock.lock();
    lock.unlock();
};

namespace detail {

// The word of a condition. The protocol, and why it is correct: src/condition.cpp.
using condition_word = atomic<std::uint64_t>;

TOCSIN_API void condition_notify_slow(condition_word& word, bool all) noexcept;
TOCSIN_API wait_status condition_wait(condition_word& word, lock_reference& lock,
                                      const wait_options& options) noexcept;
// The condition itself is the first of the sources.
TOCSIN_API any_result condition_wait_any(lock_reference& lock, std::span<const source> sources,
                                         const limits& how);
TOCSIN_API any_result condition_wait_any_beside(condition_word& word, lock_reference& lock,
                                                std::span<const source> others, const limits& how);
TOCSIN_API void condition_check_destroyed(const condition_word& word) noexcept;
[[noreturn]] TOCSIN_API void condition_refuse_lock(const condition_word& word);

// How a wait_any() uses a condition. condition_source() is a function, because the address of an object in a DLL is not
// a constant.
TOCSIN_API extern const lot_source condition_lot_source;
inline const lot_source& condition_source() noexcept { return condition_lot_source; }

// The number of a plain mutex: its address, with room for the number of a bit.
inline std::uint64_t number_of_bit(const void* word, unsigned bit) noexcept {
    return std::uint64_t{reinterpret_cast<std::uintptr_t>(word)} << 6 | bit;
}
template <class Mutex>
std::uint64_t number_of(const Mutex& mutex) noexcept {
    return is_plain_mutex<Mutex> ? number_of_bit(&mutex, 0) : lock_reference::any_lock;
}
template <class Word>
std::uint64_t number_of(const bit_lock<Word>& lock) noexcept {
    return number_of_bit(lock.word(), lock.bit());
}
template <class Mutex>
std::uint64_t number_of(const std::unique_lock<Mutex>& lock) noexcept {
    return number_of(*lock.mutex());
}

// For a wait that returns what the predicate returned.
template <class Predicate>
concept condition_predicate = std::predicate<Predicate&>;
// For a wait that returns nothing, and only asks again.
template <class Predicate>
concept condition_question = requires(Predicate& pred) { static_cast<bool>(!pred()); };

}  // namespace detail

// Order: waiters queue first in, first out. A wait queues its thread before it gives up the lock. So a notification
// that comes after this moment finds the thread.
//
// Before a wait sleeps, it gives up the lock. Each wait has the lock when it returns, however it ended. There are no
// spurious returns: a wait returns only for the reasons given in its own description. (The thread may find that what it
// waited for has changed again, since other threads may take the lock first. So wait with a predicate, or in a loop.)
// All waits may use different locks.
//
// Memory: what a thread did before notify_one() or notify_all() is visible to the threads that the call releases.
//
// Lifetime: a condition may be destroyed as soon as every waiting thread has been notified. These threads need not have
// returned. (But a wait whose predicate is still false waits again, and so uses the condition again.) If a released
// thread destroys the condition, the call that released this thread need not have returned either. All other calls of
// notify_one() and notify_all() must have returned. A call in a signal handler counts as returned when the call into
// the library that the signal interrupted has returned.
//
// Errors:
// - If the lock has owns_lock() and this is false (std::unique_lock), a wait throws std::system_error
//   (std::errc::operation_not_permitted). (With a predicate, it does so only once the predicate has returned false.)
//   The message names the condition's address, and nothing has changed. Without exceptions, the program ends with this
//   message.
// - Checked builds notice that a word_lock or bit_lock is not held, and end the program with a message that names the
//   lock. With another lock that is not held, the lock's own unlock() decides.
// - If the lock's unlock() or lock() throws, std::terminate() ends the program.
// - Checked builds end the program if a condition is destroyed while a thread that was not notified waits.
// - If a predicate throws, the exception leaves the wait, and the lock is held.
class condition {
public:
    constexpr condition() noexcept = default;
    condition(const condition&) = delete;
    condition& operator=(const condition&) = delete;

#if TOCSIN_CHECKED
    constexpr ~condition() {
        if (!std::is_constant_evaluated()) detail::condition_check_destroyed(word_);
    }
#else
    ~condition() = default;
#endif

    // Releases one of the threads that wait at this moment: the one that has waited longest, of those whose wait has
    // not ended in another way. Does nothing if there is none. If a timeout or a stop meets a notification, the
    // notification is not lost: either the wait reports it, or another waiting thread gets it. The caller need not hold
    // the lock now. But the caller must have held the lock when it changed what the threads wait for. Otherwise a
    // thread may look before the change, and wait after the notification. Cost: without waiters, one plain load. With
    // waiters, a short lock and one system call to wake. Never blocks on a waiter. The call is allowed in a signal
    // handler where an event's set() is (event.hpp). But a handler can't take the lock, so a thread that is just about
    // to wait may miss the notification: use an event there.
    void notify_one() noexcept {
        if (is_waited_on()) detail::condition_notify_slow(word_, false);
    }

    // Releases all threads that wait at this moment. If they all wait with the same plain mutex (is_plain_mutex), they
    // do not all run at once and then block on it: notify_all() wakes the first two. The second of them wakes the next
    // two when it has the lock again, just before its wait returns, and so on. If the threads wait with different
    // locks, with locks of other types, or in wait_any(), they wake each other before they take their locks. Cost:
    // without waiters, one plain load. With waiters, a short lock and at most a few system calls to wake, however many
    // wait. If one of the waits may also end in another way, the call takes the waiters one by one under that lock, at
    // 50 to 200 ns each.
    void notify_all() noexcept {
        if (is_waited_on()) detail::condition_notify_slow(word_, true);
    }

    // Gives up the lock and blocks until a notification releases this thread. Where yielding has recently paid, the
    // thread yields before it sleeps; it never spins while it holds the lock (spin.hpp).
    // Cost: a short lock, one system call to sleep, and what unlocking and locking the caller's lock costs.
    template <basic_lockable Lock>
    void wait(Lock& lock, spin_policy spin = {}) {
        (void)wait_with(lock, deadline::never(), nullptr, spin);
    }
    // Waits until the predicate returns true. The waiting thread calls it, with the lock held. If the first call
    // returns true, the wait does not give up the lock. This predicate may return a type that converts to bool only
    // explicitly, such as a std::shared_ptr.
    template <basic_lockable Lock, detail::condition_question Predicate>
    void wait(Lock& lock, Predicate pred, spin_policy spin = {}) {
        while (!pred()) wait(lock, spin);
    }

    // The same, but these end when a stop is requested, too. Without a predicate, the wait returns how it ended: after
    // `stopped`, no notification was spent on it. With a predicate, the wait returns what the predicate returned last.
    // If the stop was requested before, a wait does not give up the lock.
    template <basic_lockable Lock>
    [[nodiscard]] wait_status wait(Lock& lock, const stop_token& stop, spin_policy spin = {}) {
        return wait_with(lock, deadline::never(), &stop, spin);
    }
    template <basic_lockable Lock, detail::condition_predicate Predicate>
    [[nodiscard]] bool wait(Lock& lock, const stop_token& stop, Predicate pred, spin_policy spin = {}) {
        return wait_for_predicate(lock, deadline::never(), &stop, pred, spin);
    }

    // The same with a deadline: a duration from now or a time point of any clock (deadline.hpp). No wait ends before
    // its deadline unless it is notified or stopped. If a notification was spent on a wait, the wait reports it, even
    // after the deadline. With a duration of zero or less, or a time in the past, a wait gives up the lock and takes it
    // back, with no other step; a predicate that is false is called once before that and once after. Without a stop
    // token, the wait returns std::cv_status. With a stop token, it returns how it ended. With a predicate, it returns
    // what the predicate returned last. The standard's order, in which the stop token precedes the time, is allowed
    // where there is a predicate.
    template <basic_lockable Lock>
    cv_status wait_until(Lock& lock, const deadline& until, spin_policy spin = {}) {
        return as_standard(wait_with(lock, until, nullptr, spin));
    }
    template <basic_lockable Lock>
    [[nodiscard]] wait_status wait_until(Lock& lock, const deadline& until, const stop_token& stop,
                                         spin_policy spin = {}) {
        return wait_with(lock, until, &stop, spin);
    }
    template <basic_lockable Lock, detail::condition_predicate Predicate>
    bool wait_until(Lock& lock, const deadline& until, Predicate pred, spin_policy spin = {}) {
        return wait_for_predicate(lock, until, nullptr, pred, spin);
    }
    template <basic_lockable Lock, detail::condition_predicate Predicate>
    bool wait_until(Lock& lock, const deadline& until, const stop_token& stop, Predicate pred,
                    spin_policy spin = {}) {
        return wait_for_predicate(lock, until, &stop, pred, spin);
    }
    template <basic_lockable Lock, detail::condition_predicate Predicate>
    bool wait_until(Lock& lock, const stop_token& stop, const deadline& until, Predicate pred,
                    spin_policy spin = {}) {
        return wait_for_predicate(lock, until, &stop, pred, spin);
    }
    // `how` is the same as behind the time in wait_until().
    template <basic_lockable Lock, class Rep, class Period, class... How>
    auto wait_for(Lock& lock, std::chrono::duration<Rep, Period> longest, How&&... how) {
        return wait_until(lock, deadline(longest), std::forward<How>(how)...);
    }
    template <basic_lockable Lock, class Rep, class Period, detail::condition_predicate Predicate>
    bool wait_for(Lock& lock, const stop_token& stop, std::chrono::duration<Rep, Period> longest,
                  Predicate pred, spin_policy spin = {}) {
        return wait_for_predicate(lock, deadline(longest), &stop, pred, spin);
    }

    // Waits for a notification or for the first of several sources, as tocsin::wait_any() does (wait.hpp). In the
    // result, index 0 means that this thread was notified; the sources have the indices from 1 on.
    //
    //     while (jobs.empty()) {
    //         if (changed.wait_any(lock, {.until = 1s}, shutdown).index == 1) return;
    //     }
    //
    // The thread is queued for the notification and for all sources before it gives up the lock, which it has again
    // when the call returns or throws. If a source other than a descriptor is ready at the start, the call takes it and
    // does not give up the lock. A call that ends with `signaled` has taken exactly one thing. If the index is not 0,
    // no notification was spent on this wait. Allocates nothing for up to 15 sources that are given one by one, and
    // copies a span to the heap.
    template <basic_lockable Lock, class... Sources>
        requires detail::one_by_one<Sources...>
    [[nodiscard]] any_result wait_any(Lock& lock, const limits& how, Sources&&... from) {
        if constexpr (detail::are_sources<detail::lists::taken, Sources...>()) {
            detail::lock_reference held = hold(lock);
            const std::array<source, sizeof...(Sources) + 1> all{as_source(), source(from)...};
            return detail::condition_wait_any(held, all, how);
        } else {
            return detail::refused<any_result>();
        }
    }
    template <basic_lockable Lock, class... Sources>
        requires detail::one_by_one<Sources...> && detail::no_limits_first<Sources...>
    any_result wait_any(Lock& lock, Sources&&... from) {
        return wait_any(lock, limits(), std::forward<Sources>(from)...);
    }
    template <basic_lockable Lock>
    [[nodiscard]] any_result wait_any(Lock& lock, const limits& how, std::span<const source> sources) {
        detail::lock_reference held = hold(lock);
        return detail::condition_wait_any_beside(word_, held, sources, how);
    }
    template <basic_lockable Lock>
    any_result wait_any(Lock& lock, std::span<const source> sources) {
        return wait_any(lock, limits(), sources);
    }

private:
    // [registered] needs no order. [last-look] acquires: the caller may destroy the condition next.
    bool is_waited_on() const noexcept { return word_.load(std::memory_order_acquire) != 0; }

    source as_source() noexcept TOCSIN_LIFETIMEBOUND { return {&word_, detail::condition_source()}; }

    static cv_status as_standard(wait_status how) noexcept {
        return how == wait_status::timed_out ? cv_status::timeout : cv_status::no_timeout;
    }

    template <class Lock>
    detail::lock_reference hold(Lock& lock) const {
        if constexpr (requires { static_cast<bool>(lock.owns_lock()); }) {
            if (!lock.owns_lock()) [[unlikely]]
                detail::condition_refuse_lock(word_);
        }
        return {&lock, [](void* held) noexcept { static_cast<Lock*>(held)->unlock(); },
                [](void* held) noexcept { static_cast<Lock*>(held)->lock(); }, detail::number_of(lock)};
    }

    template <class Lock>
    wait_status wait_with(Lock& lock, const deadline& until, const stop_token* stop, spin_policy spin) {
        detail::lock_reference held = hold(lock);
        return detail::condition_wait(word_, held, {until, stop, spin});
    }

    template <class Lock, class Predicate>
    bool wait_for_predicate(Lock& lock, const deadline& until, const stop_token* stop, Predicate& pred,
                            spin_policy spin) {
        while (!pred()) {
            if (wait_with(lock, until, stop, spin) != wait_status::signaled) return pred();
        }
        return true;
    }

    detail::condition_word word_{0};
};

}  // namespace tocsin

// SPDX-License-Identifier: Apache-2.0
// A stop callback whose destructor sleeps on this library's futex, for standard libraries whose own destructor may
// hang.
//
// One such library is libstdc++ with threads but without a futex (MinGW-w64; GCC 12). While the callback runs in
// another thread, the destructor of std::stop_callback waits until the callback has ended. It waits with libstdc++'s
// atomic wait, which looks and then sleeps, in two steps (bits/atomic_wait.h, __waiter_pool::_M_do_wait). A
// notification between the two steps is lost, and the wait never ends. Under Wine this happened once in 480
// waits that another thread stopped.
//
// State: `step_`, which has one of these values:
//   making   the constructor is running
//   awaited  the constructor is running, and a callback in another thread waits until the constructor ends
//   made     the registration is complete, and no callback came before
//   running  the callback is running, or is about to run
//   over     the callback has ended
//   leaving  the destructor has begun, and no callback came before it
//
// Invariants
//   stop_callback-1  Either the callback or the destructor comes first, and its thread destroys the registration. The
//       callback comes first if it moves `step_` from `making` to `awaited`, or from `made` to `running`. In the first
//       case, the constructor moves `awaited` to `running`. The destructor comes first if it moves `step_` from `made`
//       to `leaving`. The callback's thread is the one that requested the stop. In that thread, by the standard,
//       destroying the registration doesn't wait.
//   stop_callback-2  If a stop has been requested already, the callback runs inside the constructor. Such a callback is
//       not registered, so no thread waits for it.
//   stop_callback-3  After storing `over`, the callback's thread touches nothing in this object: it wakes the
//       destructor by the address alone. If the user's function destroys this object, the destructor runs in the
//       callback's thread, inside run(). Through `gone_`, it sets a flag on the stack of run(). Then run() touches
//       nothing in the object, either.
//
// No lost wake-up: two threads may sleep on `step_`. The callback's thread sleeps until the constructor ends, and the
// destructor's thread until the callback ends. The other thread changes `step_` before it wakes the sleeper. Only a
// callback's thread that is about to sleep changes `making` to `awaited`. The constructor moves `making` to `made`. If
// that fails, it stores `running` and wakes the callback's thread.
//
// One wait remains in the standard library. If this destructor moves `step_` first, just as a stop begins, the
// destructor of std::stop_callback waits for a callback that returns at once. That wait can still hang, because the
// callback may return between the wait's two steps. In 1,600 stops, none hung.
//
// Memory order
//   [made]  The registration is complete before the callback destroys it.
//   [ran]   What the callback did, and the end of the registration, come before the destructor returns.
//   [runs]  `runner_` and `gone_` are written before another thread sees `running`.
//
// Checked by: tests/model/stop_callback_model_test.cpp, and on MinGW-w64 by every wait that can be stopped, and by
// tests/unit/sender_test.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace tocsin::detail {

// The system calls of the class below.
// Sleeps until a wake-up, or returns at once if the word no longer has the value `seen`. May return spuriously.
TOCSIN_API void sleep_on(const atomic<std::uint32_t>& word, std::uint32_t seen) noexcept;
// Wakes one thread that sleeps on the word. Only the address is used: the word may be gone.
TOCSIN_API void wake_sleeper(const void* word) noexcept;
// The calling thread's number, which no other running thread has.
TOCSIN_API std::uint64_t calling_thread() noexcept;

template <class Function>
class self_removing_stop_callback {
public:
    template <class Given>
    self_removing_stop_callback(const stop_token& token, Given&& given)
        : function_(std::forward<Given>(given)), maker_(calling_thread()) {
        std::construct_at(&registration, token, runner{*this});
        registered_ = true;
        std::uint32_t seen = making;
        if (!step_.compare_exchange_strong(seen, made, std::memory_order_release,
                                           std::memory_order_acquire)) {  // [made], [runs]
            step_.store(running, std::memory_order_release);              // [made], [runs]: it was `awaited`
            wake_sleeper(&step_);
        }
    }
    ~self_removing_stop_callback() {
        std::uint32_t seen = made;
        if (step_.compare_exchange_strong(seen, leaving, std::memory_order_acquire)) {  // [runs]
            deregister();
            return;
        }
        if (seen == running && runner_ == calling_thread()) {
            *gone_ = true;
            deregister();
            return;
        }
        while (step_.load(std::memory_order_acquire) == running) {  // [ran]
            sleep_on(step_, running);
        }
    }
    self_removing_stop_callback(const self_removing_stop_callback&) = delete;
    self_removing_stop_callback& operator=(const self_removing_stop_callback&) = delete;

private:
    enum step : std::uint32_t { making, awaited, made, running, over, leaving };

    struct runner {
        void operator()() const noexcept { self.run(); }
        self_removing_stop_callback& self;
    };

    void run() noexcept {
        // no order: either this thread wrote `making`, or comes_first() reads the word again
        if (step_.load(std::memory_order_relaxed) == making && maker_ == calling_thread()) {
            function_();  // stop_callback-2
            return;
        }
        bool gone = false;
        gone_ = &gone;
        runner_ = calling_thread();
        if (!comes_first()) return;
        function_();
        if (gone) return;
        deregister();
        step_.store(over, std::memory_order_release);  // [ran]
        wake_sleeper(&step_);                          // the address alone
    }

    void deregister() noexcept {
        registered_ = false;
        std::destroy_at(&registration);
    }

    // Whether the callback comes before the destructor (stop_callback-1).
    bool comes_first() noexcept {
        std::uint32_t seen = making;
        if (step_.compare_exchange_strong(seen, awaited, std::memory_order_release,
                                          std::memory_order_relaxed)) {  // [runs]
            while (step_.load(std::memory_order_acquire) == awaited) {   // [made]
                sleep_on(step_, awaited);
            }
            return true;
        }
        seen = made;
        return step_.compare_exchange_strong(seen, running, std::memory_order_acq_rel);  // [made], [runs]
    }

    Function function_;
    const std::uint64_t maker_;
    plain<std::uint64_t> runner_{0};
    plain<bool*> gone_{nullptr};
    atomic<std::uint32_t> step_{making};
    union {
        stop_callback<runner> registration;  // destroyed as stop_callback-1 says
    };
    plain<bool> registered_{false};  // the model explorer watches it in place of `registration`
};

// For a std::stop_token: the class above where the destructor of std::stop_callback may hang, otherwise
// std::stop_callback.
#if defined(__GLIBCXX__) && defined(__cpp_lib_semaphore) && !defined(_GLIBCXX_HAVE_PLATFORM_WAIT) && \
    !defined(TOCSIN_MODEL)
template <class Function>
using sound_stop_callback = self_removing_stop_callback<Function>;
#else
template <class Function>
using sound_stop_callback = stop_callback<Function>;
#endif

}  // namespace tocsin::detail

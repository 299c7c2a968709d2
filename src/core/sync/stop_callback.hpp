// A stop callback whose destructor sleeps by this library's futex, for standard libraries whose own may hang.
//
// libstdc++ with threads but without a futex (MinGW-w64; GCC 12): if a callback runs in another thread, the destructor
// waits for it by std::atomic::wait. There the look and falling asleep are two steps (bits/atomic_wait.h,
// __waiter_pool::_M_do_wait). A notification between them is lost, and the wait never ends: seen once in 480 stops of
// two threads under Wine.
//
// State: `step_`. It is `making` while the constructor runs, or `awaited` if a callback of another thread waits for the
// constructor to end. Then it is `made`. It is `running` while the callback runs, and then `over`. It is `leaving` if
// the destructor came first.
//
// Invariants
//   stop_callback-1  Either the callback or the destructor changes `made`, and that one destroys the registration. So
//       a callback destroys it in the thread that requested the stop, where the standard has it wait for nothing.
//   stop_callback-2  A callback that runs inside the constructor, because a stop has been requested, is not registered:
//       no thread waits for it.
//   stop_callback-3  After `over` the callback's thread touches nothing here; it wakes by the address alone. If the
//       function destroys the object, in the same thread, the destructor says so in `gone_`.
//
// No lost wake-up: both waits are on `step_`, which is changed before the wake. Only the thread that then sleeps
// changes `making` to `awaited`, and the constructor replaces either in one exchange.
//
// One wait remains in the standard library: a destructor that came first, just as a stop begins, waits there for a
// callback that returns at once.
//
// Memory order
//   [made]  The registration is complete before the callback destroys it.
//   [ran]   What the callback did, and the end of the registration, come before the destructor's return.
//   [runs]  `runner_` and `gone_` are written before another thread sees `running`.
//
// Checked by: tests/model/stop_callback_model_test.cpp, and on MinGW-w64 by every wait that can be stopped.
#pragma once

#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace tocsin::core {

template <class Function>
class self_removing_stop_callback {
public:
    template <class Given>
    self_removing_stop_callback(const detail::stop_token& token, Given&& given)
        : function_(std::forward<Given>(given)), maker_(platform::thread_number()) {
        std::construct_at(&registration, token, runner{*this});
        registered_ = true;
        if (step_.exchange(made, std::memory_order_release) == awaited) {  // [made]
            platform::futex::wake_one(&step_);
        }
    }
    ~self_removing_stop_callback() {
        std::uint32_t seen = made;
        if (step_.compare_exchange_strong(seen, leaving, std::memory_order_acquire)) {  // [runs]
            deregister();
            return;
        }
        if (seen == running && runner_ == platform::thread_number()) {
            *gone_ = true;
            deregister();
            return;
        }
        while (step_.load(std::memory_order_acquire) == running) {  // [ran]
            (void)platform::futex::wait(step_, running, deadline::never());
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
        // no order: this thread wrote it, or it is asked again
        if (step_.load(std::memory_order_relaxed) == making && maker_ == platform::thread_number()) {
            function_();  // stop_callback-2
            return;
        }
        await_maker();
        bool gone = false;
        gone_ = &gone;
        runner_ = platform::thread_number();
        std::uint32_t seen = made;
        if (!step_.compare_exchange_strong(seen, running, std::memory_order_acq_rel))
            return;  // [made], [runs]
        function_();
        if (gone) return;
        deregister();
        step_.store(over, std::memory_order_release);  // [ran]
        platform::futex::wake_one(&step_);             // the address alone
    }

    void deregister() noexcept {
        registered_ = false;
        std::destroy_at(&registration);
    }

    void await_maker() noexcept {
        std::uint32_t seen = making;
        step_.compare_exchange_strong(seen, awaited, std::memory_order_relaxed);  // no order: asked again
        while (step_.load(std::memory_order_acquire) == awaited) {                // [made]
            (void)platform::futex::wait(step_, awaited, deadline::never());
        }
    }

    Function function_;
    const std::uint64_t maker_;
    detail::plain<std::uint64_t> runner_{0};
    detail::plain<bool*> gone_{nullptr};
    detail::atomic<std::uint32_t> step_{making};
    union {
        detail::stop_callback<runner> registration;  // destroyed as stop_callback-1 says
    };
    detail::plain<bool> registered_{false};  // the explorer watches it in place of the registration
};

#if defined(__GLIBCXX__) && defined(__cpp_lib_semaphore) && !defined(_GLIBCXX_HAVE_PLATFORM_WAIT) && \
    !defined(TOCSIN_MODEL)
template <class Function>
using stop_callback = self_removing_stop_callback<Function>;
#else
template <class Function>
using stop_callback = detail::stop_callback<Function>;
#endif

}  // namespace tocsin::core

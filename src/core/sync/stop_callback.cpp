// SPDX-License-Identifier: Apache-2.0
// A stop callback whose destructor waits for a running callback, over any standard library.
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
//       callback comes first if it moves `step_` from `making` to `awaited` (the constructor then moves `awaited` to
//       `running`), or from `made` to `running`. The destructor comes first if it moves `step_` from `made`
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
// destructor of std::stop_callback waits for a callback that returns at once. It may miss that end: the callback may
// return between the wait's two steps. (A loop in which each destructor met a stop hung in five of six runs of
// 500,000.) On Windows, a stop requested in another DLL wakes only the sleepers of that DLL. But the callback finds
// `leaving`. Before it returns, it has a thread of the library wake the sleepers of the standard library again and
// again, until the destructor has returned from that wait (platform/futex/repeated_wakes.hpp).
//
// Memory order
//   [made]  The registration is complete before the callback destroys it.
//   [ran]   What the callback did, and the end of the registration, come before the destructor returns.
//   [runs]  `thread_` and `gone_` are written before another thread sees `running`.
// `wakes_repeatedly_` is written before the callback returns. The standard library orders that before the end of the
// destructor of the registration, if that waited for the callback.
//
// Checked by: tests/model/stop_callback_model_test.cpp, and on MinGW-w64 by every wait that can be stopped, and by
// tests/internal/stop_callback_test.cpp.
#include "platform/futex/futex.hpp"
#include "platform/futex/repeated_wakes.hpp"
#include "platform/system/system.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/stop_callback.hpp>

#include <memory>

namespace tocsin::detail {

stop_registration::stop_registration(const stop_token& token, call* function) noexcept
    : function_(function),
      leave_([](stop_registration& self) noexcept { self.leave(); }),
      thread_(platform::thread_number()) {
    std::construct_at(&registration, token, runner{*this});
    registered_ = true;
    std::uint32_t seen = making;
    if (!step_.compare_exchange_strong(seen, made, std::memory_order_release,
                                       std::memory_order_acquire)) {  // [made], [runs]
        step_.store(running, std::memory_order_release);              // [made], [runs]: it was `awaited`
        platform::futex::wake_one(&step_);
    }
}

stop_registration::~stop_registration() {
    std::uint32_t seen = made;
    if (step_.compare_exchange_strong(seen, leaving, std::memory_order_acquire)) {  // [runs]
        leave_(*this);
        return;
    }
    if (seen == running && thread_ == platform::thread_number()) {
        *gone_ = true;
        deregister();
        return;
    }
    while (step_.load(std::memory_order_acquire) == running) {  // [ran]
        sleep_while(running);
    }
}

void stop_registration::run() noexcept {
    // no order: either this thread wrote `making`, or comes_first() reads the word again
    if (step_.load(std::memory_order_relaxed) == making && thread_ == platform::thread_number()) {
        function_(*this);  // stop_callback-2
        return;
    }
    bool gone = false;
    gone_ = &gone;
    thread_ = platform::thread_number();
    if (!comes_first()) {
        wakes_repeatedly_ = true;
        platform::begin_repeated_wakes();
        return;
    }
    function_(*this);
    if (gone) return;
    deregister();
    step_.store(over, std::memory_order_release);  // [ran]
    platform::futex::wake_one(&step_);             // the address alone
}

void stop_registration::leave() noexcept {
    deregister();
    if (wakes_repeatedly_) platform::end_repeated_wakes();
}

void stop_registration::deregister() noexcept {
    registered_ = false;
    std::destroy_at(&registration);
}

// Whether the callback comes before the destructor (stop_callback-1).
bool stop_registration::comes_first() noexcept {
    std::uint32_t seen = making;
    if (step_.compare_exchange_strong(seen, awaited, std::memory_order_release,
                                      std::memory_order_relaxed)) {  // [runs]
        while (step_.load(std::memory_order_acquire) == awaited) {   // [made]
            sleep_while(awaited);
        }
        return true;
    }
    seen = made;
    return step_.compare_exchange_strong(seen, running, std::memory_order_acq_rel);  // [made], [runs]
}

void stop_registration::sleep_while(step seen) noexcept {
    (void)platform::futex::wait(step_, seen, deadline::never());
}

}  // namespace tocsin::detail

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
// Why it is correct: src/core/sync/stop_callback.cpp. Everything that touches std::stop_callback is compiled there. The
// reason: on Windows, each DLL has its own places where threads sleep in libstdc++. The library wakes only those that
// sleep in its own.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>

#include <cstdint>
#include <utility>

namespace tocsin::detail {

// Calls a function when a stop is requested. The function may destroy this object.
class TOCSIN_API stop_registration {
public:
    using call = void(stop_registration&) noexcept;

    stop_registration(const stop_token& token, call* function) noexcept;
    // If the function is being called in another thread, waits until it has returned.
    ~stop_registration();
    stop_registration(const stop_registration&) = delete;
    stop_registration& operator=(const stop_registration&) = delete;

private:
    enum step : std::uint32_t { making, awaited, made, running, over, leaving };

    struct runner {
        void operator()() const noexcept { self.run(); }
        stop_registration& self;
    };

    void run() noexcept;
    void leave() noexcept;
    void deregister() noexcept;
    bool comes_first() noexcept;
    void sleep_while(step seen) noexcept;

    call* const function_;
    // leave() of the copy of the library that made this object. That copy's run() will be called, too.
    call* const leave_;
    plain<std::uint64_t> thread_;  // the constructor's thread, and then the callback's
    plain<bool*> gone_{nullptr};
    atomic<std::uint32_t> step_{making};
    plain<bool> wakes_repeatedly_{false};
    plain<bool> registered_{false};  // the model explorer watches it in place of `registration`
    union {
        stop_callback<runner> registration;  // destroyed as stop_callback-1 says
    };
};

// Constructed before the registration, and destroyed after it.
template <class Function>
struct stop_function {
    template <class Given>
    stop_function(std::in_place_t, Given&& given) : function(std::forward<Given>(given)) {}

    Function function;
};

template <class Function>
class self_removing_stop_callback : stop_function<Function>, stop_registration {
public:
    template <class Given>
    self_removing_stop_callback(const stop_token& token, Given&& given)
        : stop_function<Function>(std::in_place, std::forward<Given>(given)),
          stop_registration(token, call) {}

private:
    static void call(stop_registration& self) noexcept {
        static_cast<self_removing_stop_callback&>(self).function();
    }
};

// For a std::stop_token: the class above where the destructor of std::stop_callback may hang, otherwise
// std::stop_callback.
#if defined(__GLIBCXX__) && !defined(_GLIBCXX_HAVE_LINUX_FUTEX) && !defined(TOCSIN_MODEL)
template <class Function>
using sound_stop_callback = self_removing_stop_callback<Function>;
#else
template <class Function>
using sound_stop_callback = stop_callback<Function>;
#endif

}  // namespace tocsin::detail

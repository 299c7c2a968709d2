// SPDX-License-Identifier: Apache-2.0
// Lets a loop of your own serve the deadlines and descriptors of asynchronous waits (await.hpp, operation.hpp). The
// library then starts no background threads for these waits.
//
//     tocsin::driver driver(wake_loop);        // any thread calls wake_loop() when the loop has to look again
//     tocsin::set_default_driver(&driver);     // or for one wait: async_wait_any(...).by(driver)
//     for (;;) {
//         driver.update([&](tocsin::driver::watch each) { ... epoll_ctl ... });
//         const int count = epoll_wait(loop, events, size, driver.poll_timeout());
//         for (each of the events) driver.notify(id, found);    // the id of the watch, from update()
//         driver.run_due();
//     }
//
// examples/loops/driven_by_epoll.cpp is a whole program. tests/support/driven_loops.hpp has the same for poll(), libuv,
// GLib and Asio, and for a loop that never sleeps.
//
// A loop that only polls descriptors, and takes no timeout from others, can let the driver watch for itself:
//
//     tocsin::driver driver;
//     loop.on_readable(driver.descriptor(), [&] { driver.run_ready(); });
//
// What the loop does
//   Before each sleep, the loop calls update() and next_deadline() (or poll_timeout()), in either order. After the
//   sleep it calls notify() for what it has found, and run_due(). A loop that never sleeps, such as a game's, calls
//   update(), notify() and run_due() once in each round. A loop whose waits have no descriptors may leave out update()
//   and notify().
//
//   Another thread may begin a wait with an earlier deadline, or begin or end a wait for a descriptor. The driver then
//   calls the function `changed` in that thread. This function must end the loop's sleep or, if the loop does not sleep
//   yet, its next sleep: it writes an eventfd, for instance, or calls uv_async_send(), g_main_context_wakeup() or
//   asio::post(). After such a call, and after run_due() or notify(), the driver does not call the function until the
//   loop has called update(), next_deadline() or poll_timeout(). From then until the next run_due() or notify(), a wait
//   that begins or ends in the loop's own thread may make the driver call the function there, too.
//
// Where a wait ends
//   A deadline, a timer or a descriptor ends a wait inside run_due() or notify(). Inside that call, the coroutine
//   resumes, or the operation's function or the executor is called. So in a program with one thread, only that thread's
//   own calls end a wait. Outside these calls, the thread may destroy a coroutine at any time. Inside them, a coroutine
//   may begin and end waits, and destroy itself or others, as in a set(). If a coroutine calls run_due() or notify()
//   inside one of these calls, the inner call ends further waits. The coroutines of these waits resume when the calling
//   coroutine suspends or ends.
//
// Descriptors
//   After a wait for a descriptor has ended, the loop watches the descriptor until its next update(). So let the loop
//   call update() before you close the descriptor, unless your loop lets you close a descriptor that it watches. (epoll
//   does, if the descriptor was not duplicated.) With a background thread you may close the descriptor at once.
//
// The driver must outlive each wait that uses it. A wait uses the driver until the co_await has returned, the
// operation's function has been called, or the coroutine or operation has been destroyed. If the driver is destroyed
// earlier, a checked build ends the program with a message.
//
// The member functions are for the thread whose loop sleeps. Only one thread at a time may call them. Before this
// thread sleeps again, it must make the calls described above. If another thread calls run_due() or notify() while the
// loop sleeps, the loop may sleep too long. Waits may begin and end, and `changed` may be called, in any thread at any
// time. In the child of a fork, a driver belongs to the parent: the child may only destroy it, and has no default
// driver. If a thread of the parent was using the driver at the fork, the child may leave the driver's memory unfreed.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/readiness.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace tocsin {

class driver;

namespace core {
class service;  // src/core/async/service.hpp
}

namespace detail {
// For a wait that names a driver. (In a class, because GCC for Windows refuses a function of a DLL as a friend.)
struct driver_access {
    TOCSIN_API static core::service& service_of(driver& which) noexcept;
};
}  // namespace detail

class driver {
public:
    // Names a watch in notify(). The loop keeps it beside what it registers: epoll and kqueue have a place for it.
    // Convert it by static_cast to a std::uint64_t and back. No watch is called watch_id(0).
    enum class watch_id : std::uint64_t {};

    // What the loop has to watch from now on.
    struct watch {
        // Lasts as long as somebody waits for the descriptor without a gap. After a gap the descriptor's number may
        // mean something else: then update() tells another id, and reports with the old one end no wait. For a watch
        // that is to end, it is the id with which the watch began.
        watch_id id{};
        // A descriptor; on Windows the number of a SOCKET, or of a HANDLE if `asked` is `signaled`.
        int descriptor = -1;
        // What to watch for. With `none`, watch the descriptor no more.
        readiness asked = readiness::none;
        // The loop watches the descriptor, but for some time nobody waited for it. So the descriptor may have been
        // closed, and its number may mean something else now: register it again, with the new id. (epoll: EPOLL_CTL_MOD
        // and, if that fails, EPOLL_CTL_ADD. If `asked` is `none`, ignore the errors of EPOLL_CTL_DEL.)
        bool renewed = false;
    };

    // Without `changed`: for a loop that never sleeps, or for a program in which only the loop's thread begins and ends
    // waits.
    driver() : driver(nullptr, nullptr) {}
    // `changed` must not throw, block, or call this driver or a wait. The driver refers to the function and does not
    // copy it.
    template <class Function>
        requires(std::invocable<Function&> && !std::same_as<std::remove_cv_t<Function>, driver>)
    explicit driver(Function& changed TOCSIN_LIFETIMEBOUND)
        : driver([](void* function) noexcept { (*static_cast<Function*>(function))(); },
                 const_cast<std::remove_cv_t<Function>*>(std::addressof(changed))) {}
    // The same, for a function pointer, which may be null. The function gets `argument`.
    TOCSIN_API driver(void (*changed)(void* argument) noexcept, void* argument);
    driver(const driver&) = delete;
    driver& operator=(const driver&) = delete;
    // If this is the default driver, there is no default driver afterwards. The destructor waits for any thread that is
    // inside `changed`.
    TOCSIN_API ~driver();

    // Calls each(watch), under no lock, for every descriptor whose watch has changed since the loop's last update().
    // Allocates nothing.
    template <std::invocable<watch> Function>
    void update(Function&& each) {
        watch next;
        for (std::size_t left = begin_update(); left != 0 && take_change(next); --left) each(next);
    }

    // Returns the first deadline to pass, which is on the steady or the system clock, or never(). A deadline on a clock
    // of your own counts as one on the steady clock, at its estimated time. When the returned deadline has passed, the
    // loop has to call run_due(). An earlier call, or an additional one, does no harm. The loop can sleep for the
    // deadline's remaining() nanoseconds. If somebody sets the system clock during the sleep, the loop notices it after
    // the sleep.
    TOCSIN_API deadline next_deadline() noexcept;
    // The same as a timeout of poll(), epoll_wait() and uv_timer_start(): milliseconds rounded up, or -1 for never.
    TOCSIN_API int poll_timeout() noexcept;

    // Ends the waits whose deadlines or timers have passed. Returns how often a deadline or timer has ended a wait, or
    // has made the timers of a wait for all ready. A deadline that is set inside this call waits for the next call.
    TOCSIN_API std::size_t run_due() noexcept;
    // The same, but a deadline on the steady clock that is after `now` is left for a later call. So `now` may be the
    // time at which the loop's round began. A time in the future counts as the present: no wait ends early.
    TOCSIN_API std::size_t run_due(std::chrono::steady_clock::time_point now) noexcept;

    // Call this when the loop has found the descriptor of this watch ready in this way, but not inside update(). Ends
    // the waits that have asked for this readiness, and returns how many. readiness::error and invalid concern every
    // wait for the descriptor. So does hang_up, unless another wait has asked for hang_up and this one has not. In that
    // case the loop may have found that only one direction is closed, so the driver polls the descriptor once for each
    // wait that has not asked for hang_up. If the loop cannot watch a descriptor, report the descriptor all the same:
    // as `invalid` if it is closed, or as ready for what was asked if it is always ready, like a regular file. If
    // nobody has waited for the descriptor at some time since the loop looked, the watch has ended, and the call does
    // nothing, even if somebody waits again: the next update() then tells of a new watch. If another wait has joined
    // the watch since the loop looked, that wait ends, too. The number of steps is proportional to the number of waits
    // for this descriptor, not of all waits.
    TOCSIN_API std::size_t notify(watch_id which, readiness found) noexcept;

    // A descriptor that is readable when run_ready() has something to do: at first, when a deadline or a timer has
    // passed, when a descriptor is ready, or when what to watch or the first deadline has changed. It stays readable
    // until run_ready() has left nothing to do. So a loop that reports only changes (EPOLLET) has to call run_ready()
    // until it returns 0. Do nothing with the descriptor but poll it: the driver alone reads, writes and closes it.
    // Returns the same descriptor until the driver is destroyed. A loop that uses descriptor() and run_ready() calls
    // none of the functions above. The function `changed` is called as before, if there is one.
    // The first call opens six descriptors. Throws std::system_error: EMFILE, ENFILE or ENOMEM, or
    // std::errc::operation_not_supported except on Linux with epoll. Throws std::bad_alloc.
    [[nodiscard]] TOCSIN_API int descriptor();
    // Does all that a loop does in a round, but never sleeps: finds the descriptors that are ready, 64 at most, ends
    // their waits and those whose deadlines or timers have passed, and watches what the driver now wants. Returns how
    // many waits this has ended, counted as by notify() and run_due(). If a descriptor can't be watched, its waits end
    // in the next call: a regular file is ready for what was asked, a closed descriptor is `invalid`, and if the system
    // refuses for another reason, such as ENOSPC, they report an `error`. Call descriptor() first, else this returns 0.
    // Costs one system call to look, one or two to lower the descriptor, and one for each watch or first deadline that
    // has changed. Throws std::bad_alloc, and then the next call does the rest.
    TOCSIN_API std::size_t run_ready();

private:
    class state;
    class own_loop;
    friend struct detail::driver_access;

    TOCSIN_API std::size_t begin_update() noexcept;
    TOCSIN_API bool take_change(watch& next) noexcept;

    std::unique_ptr<state> state_;
};

// Chooses the driver for asynchronous waits that begin after this call and name no driver of their own. Null means the
// background threads, as it does before the first call. A wait that has begun keeps its driver. Destroy a driver that
// is or was the default only while no other thread may be beginning a wait that uses the default. If there are several
// copies of the library in the process, each has a default of its own.
TOCSIN_API void set_default_driver(driver* which) noexcept;

}  // namespace tocsin

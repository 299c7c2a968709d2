// A blocked wait: who claims it, and how it is told to go on. The argument: waiter.cpp.
#pragma once

#include "core/sync/stop_callback.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/wait_options.hpp>

#include <cstdint>

namespace tocsin::core {

struct wait_node;
class spinner;

// Why a wait ended: whoever moves a waiter's claim word from `open` decides it, once.
// `signaled` also says for which of several sources, by its number: the values after it.
enum class claim : std::uint32_t { open, timed_out, stopped, signaled };

// What goes on, instead of a thread, when a wait is over: see resumption.hpp.
class resumable;

// A thread that sleeps until released, or a coroutine that is suspended until then (`then`). It lives on that
// thread's stack, or in the coroutine's frame, for one wait.
class waiter {
public:
    explicit waiter(resumable* then = nullptr) noexcept : then_(then) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    // The one that succeeds decides how the wait ends. Any thread, while the waiter is sure to exist.
    bool try_claim(claim reason, std::uint32_t index = 0) noexcept;

    // Lets the thread go on, and gives it `others` to release in turn (may be null). Whoever claimed the
    // waiter calls this once; the waiter may be gone before it returns. Not under a lock.
    void release(wait_node* others) noexcept;

    // What a stop request does, from the thread that requests it.
    void stop() noexcept {
        if (try_claim(claim::stopped)) release(nullptr);
    }

    // For coroutines. From its success on whoever releases the waiter resumes it, and nobody else may touch it; false
    // if it has been released.
    bool suspend() noexcept;
    bool is_coroutine() const noexcept { return then_ != nullptr; }

    // Whether the thread sleeps, so that releasing it takes a system call; a guess that may be out of date.
    bool is_asleep() const noexcept;

    // Waits until released or, if nobody claims it before, the options' deadline passes or a stop is requested.
    // Looks for its release for a while before it sleeps, if a spinner is given. Releases the others it was
    // given before it returns. A waiter that is never claimed by a stop or a deadline may be released without
    // a claim; it then counts as signaled.
    claim sleep(const detail::wait_options& options, spinner* looking = nullptr) noexcept;
    claim sleep(const deadline& until, spinner* looking = nullptr) noexcept;

    // For waits with more to do than sleep. `rest` sleeps until released (true) or the deadline has passed,
    // which claims nothing; `leave` does what a release asks for, and says why the wait ended.
    bool sleep_until_released(const deadline& until, spinner* looking) noexcept;
    // The same in the poller: `poll()` looks and sleeps once, until `bell` is rung at the latest, and says whether it
    // has found anything else; then it is false.
    template <class Poll>
    bool poll_until_released(platform::doorbell_id bell, Poll poll) noexcept {
        if (!fall_polling(bell)) return true;
        while (!is_released()) {
            if (poll()) return false;
        }
        return true;
    }
    claim finish() noexcept;

    // Runs `wait()` with a stop of the options' token reaching this waiter meanwhile.
    template <class Wait>
    claim stoppable(const detail::wait_options& options, Wait wait) noexcept {
        if (options.stop == nullptr || !options.stop->stop_possible()) return wait();
        // Its destructor waits until a stop() that runs in another thread is through with this waiter, and may
        // change errno doing so.
        const platform::errno_guard kept;
        const auto on_stop = [this]() noexcept { stop(); };
        const stop_callback<decltype(on_stop)> registered(*options.stop, on_stop);
        return wait();
    }

    bool is_claimed() const noexcept {
        return claim_.load(std::memory_order_relaxed) !=  // no order: waiter-1
               static_cast<std::uint32_t>(claim::open);
    }

    // Why the wait ended; for who knows that it has.
    claim outcome() const noexcept {
        const std::uint32_t how = claim_.load(std::memory_order_relaxed);  // no order: waiter-1
        return how < static_cast<std::uint32_t>(claim::signaled) ? static_cast<claim>(how) : claim::signaled;
    }

    // Which of several sources it was claimed for.
    std::uint32_t winner() const noexcept {
        return claim_.load(std::memory_order_relaxed) -  // no order: waiter-1
               static_cast<std::uint32_t>(claim::signaled);
    }

private:
    bool is_released() const noexcept;
    bool enter_state(std::uint32_t how) noexcept;
    bool fall_polling(platform::doorbell_id bell) noexcept;

    resumable* const then_;
    detail::atomic<std::uint32_t> word_{0};  // running, released, or how the thread sleeps
    detail::atomic<std::uint32_t> claim_{0};
    detail::plain<wait_node*> others_{nullptr};
};

// Whether a wait with these options may also end without a release.
bool can_cancel(const detail::wait_options& options) noexcept;

// Why a wait with these options is over before it begins: `stopped`, `timed_out`, or `open` if it is not.
inline claim ended_before_wait(const detail::wait_options& options) noexcept {
    if (options.stop != nullptr && options.stop->stop_requested()) return claim::stopped;
    return options.until.has_passed() ? claim::timed_out : claim::open;
}

// What a public call reports of a wait that ended like this; `released` is its word for `signaled`.
template <class Status>
constexpr Status status_from(claim how, Status released) noexcept {
    switch (how) {
        case claim::timed_out: return Status::timed_out;
        case claim::stopped: return Status::stopped;
        default: return released;
    }
}

}  // namespace tocsin::core

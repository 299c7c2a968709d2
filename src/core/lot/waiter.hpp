// A blocked wait: how its outcome is claimed, and how its thread or coroutine is released. The argument: waiter.cpp.
#pragma once

#include "core/sync/stop_callback.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/wait_options.hpp>

#include <cstdint>

namespace tocsin::core {

class resumable;
class shared_word;
struct wait_node;

// Why a wait ended. Whoever moves a waiter's claim word from `open` decides it, once. `signaled` + n also says that the
// wait ended for the source with number n.
enum class claim : std::uint32_t { open, timed_out, stopped, signaled };

// A thread that sleeps until released, or a coroutine that is suspended until then. A coroutine's release resumes
// `then` (resume_queue.hpp). The waiter lives for one wait, on the thread's stack or in the coroutine's frame.
class waiter {
public:
    explicit waiter(resumable* then = nullptr) noexcept : then_(then) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    // At most one call succeeds, and decides how the wait ends. Any thread may call it while the waiter is sure to
    // exist.
    bool try_claim(claim reason, std::uint32_t index = 0) noexcept;

    // Makes the thread or coroutine runnable, and gives it `others` to release in turn (null if there are none, as
    // always for a coroutine). Whoever claimed the waiter calls this once, under no lock. The waiter may be gone before
    // this returns. For a waiter that shares a word, mark_released() takes its place.
    void release(wait_node* others) noexcept;

    // The thread will sleep on this word, together with others (shared_word.cpp). Called by the thread itself, before its
    // node is queued.
    void share(shared_word& word) noexcept;
    // That word. Only for a waiter that shares one.
    shared_word& shared() const noexcept { return *reinterpret_cast<shared_word*>(others_or_word_ - 1); }
    // The first half of the release of a waiter that shares a word. If it returns true, the thread may be asleep, and the
    // caller must wake all who sleep on that word. The waiter may be gone before this returns.
    bool mark_released() noexcept;

    // What a stop request does, in the thread that requests the stop.
    void stop() noexcept {
        if (try_claim(claim::stopped)) release(nullptr);
    }

    // For coroutines. Returns false if the waiter has been released already. After true, the coroutine belongs to
    // whoever claims the waiter, and release() resumes it. The caller may then touch neither the coroutine nor the
    // waiter.
    bool suspend() noexcept;
    // The same before its first node is queued, so that nobody can release it yet: it succeeds.
    void suspend_unqueued() noexcept;
    bool is_coroutine() const noexcept { return then_ != nullptr; }

    // Whether the thread sleeps, so that releasing it takes a system call. A guess that may be out of date.
    bool is_asleep() const noexcept;
    // For a thread that looks for its release without sleeping. After true, call finish().
    bool is_released() const noexcept;

    // Sleeps until released. Also ends if the options' deadline passes or a stop is requested before anybody claims the
    // wait. Before it returns, releases the others that this waiter was given. A waiter that no stop or deadline can
    // claim may be released without a claim. It then counts as signaled.
    claim sleep(const detail::wait_options& options) noexcept;
    claim sleep(const deadline& until) noexcept;

    // For waits that do more than sleep. Sleeps until released, and returns true; or until the deadline, and returns
    // false. A timeout here claims nothing.
    bool sleep_until_released(const deadline& until) noexcept;
    // The same in the poller. `poll()` looks and sleeps once, at the latest until `bell` is rung. It returns whether it
    // found anything other than the ring. If it did, this returns false.
    template <class Poll>
    bool poll_until_released(platform::doorbell_id bell, Poll poll) noexcept {
        if (!enter_polling(bell)) return true;
        while (!is_released()) {
            if (poll()) return false;
        }
        return true;
    }
    // After a release: releases the others that this waiter was given, and returns why the wait ended.
    claim finish() noexcept;

    // Runs `wait()`. While it runs, a stop request for the options' token stops this waiter.
    template <class Wait>
    claim stoppable(const detail::wait_options& options, Wait wait) noexcept {
        if (options.stop == nullptr || !options.stop->stop_possible()) return wait();
        // The callback's destructor waits until a stop() that runs in another thread is done with this waiter. That may
        // change errno.
        const platform::errno_guard kept;
        const auto on_stop = [this]() noexcept { stop(); };
        const stop_callback<decltype(on_stop)> registered(*options.stop, on_stop);
        return wait();
    }

    bool is_claimed() const noexcept {
        return claim_.load(std::memory_order_relaxed) !=  // no order: waiter-1
               static_cast<std::uint32_t>(claim::open);
    }

    // Why the wait ended; for callers that know that it has.
    claim outcome() const noexcept {
        const std::uint32_t how = claim_.load(std::memory_order_relaxed);  // no order: waiter-1
        return how < static_cast<std::uint32_t>(claim::signaled) ? static_cast<claim>(how) : claim::signaled;
    }

    // For which of several sources it was claimed.
    std::uint32_t winner() const noexcept {
        return claim_.load(std::memory_order_relaxed) -  // no order: waiter-1
               static_cast<std::uint32_t>(claim::signaled);
    }

private:
    friend struct shared_layout;

    bool enter_state(std::uint32_t how) noexcept;
    bool enter_polling(platform::doorbell_id bell) noexcept;

    resumable* const then_;
    detail::atomic<std::uint32_t> word_{0};  // running, released, or how it sleeps (waiter.cpp)
    detail::atomic<std::uint32_t> claim_{0};
    // The node of others to release, or the shared word's address plus 1 (waiter-5).
    detail::plain<std::uintptr_t> others_or_word_{0};
};

// Whether a wait with these options may also end by a deadline or a stop.
bool can_cancel(const detail::wait_options& options) noexcept;

// Why a wait with these options is over before it begins: `stopped` or `timed_out`; or `open` if it isn't over.
inline claim ended_before_wait(const detail::wait_options& options) noexcept {
    if (options.stop != nullptr && options.stop->stop_requested()) return claim::stopped;
    return options.until.has_passed() ? claim::timed_out : claim::open;
}

// What a public call reports about a wait that ended with `how`. `released` is that call's value for `signaled`.
template <class Status>
constexpr Status status_from(claim how, Status released) noexcept {
    switch (how) {
        case claim::timed_out: return Status::timed_out;
        case claim::stopped: return Status::stopped;
        default: return released;
    }
}

}  // namespace tocsin::core

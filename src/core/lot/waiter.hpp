// SPDX-License-Identifier: Apache-2.0
// A blocked wait: how its outcome is claimed, and how its thread or coroutine is released. Why it is correct:
// waiter.cpp.
#pragma once

#include "core/lot/wake_sample.hpp"
#include "core/sync/happens_before.hpp"
#include "core/sync/probe.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/stop_callback.hpp>
#include <tocsin/detail/wait_options.hpp>

#include <cstdint>

namespace tocsin::core {

class resumable;
class shared_word;
struct wait_node;

// Why a wait ended. Whoever moves a waiter's claim word from `open` decides this, once. The value `signaled` + n says
// that the wait ended for the source with number n.
enum class claim : std::uint32_t { open, timed_out, stopped, signaled };

// A thread that sleeps until it is released, or a coroutine that is suspended until then. The release of a coroutine
// resumes `then` (resume_queue.hpp). A waiter is on the thread's stack, in the coroutine's frame or in an operation. It
// lives for one wait, unless suspend_unqueued() begins another.
class waiter {
public:
    explicit constexpr waiter(resumable* then = nullptr) noexcept : then_(then) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    // Decides that the wait ends for `reason`, and returns true. Returns false if an earlier call has decided already.
    // So at most one call succeeds. Any thread that knows that the waiter exists may call it.
    bool try_claim(claim reason, std::uint32_t index = 0) noexcept;

    // Makes the thread or coroutine runnable. Gives a thread the nodes `others`, which that thread then releases.
    // `others` is null if there are none, and always for a coroutine. Called exactly once (waiter-2), under no lock.
    // The waiter may be gone before this returns.
    void release(wait_node* others) noexcept { release_with(reinterpret_cast<std::uintptr_t>(others)); }
    // The same, but the thread keeps `others` when its wait ends, and releases them later. For threads only.
    void release_to_keep(wait_node* others) noexcept {
        release_with(others == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(others) | to_keep);
    }
    // The nodes that the thread keeps, or null. Called by that thread, after its release.
    wait_node* kept() const noexcept {
        return (others_or_word_ & to_keep) == 0 ? nullptr
                                                : reinterpret_cast<wait_node*>(others_or_word_ & ~to_keep);
    }

    // Records that the thread will sleep on this word, together with others (shared_word.cpp). The thread itself calls
    // this before its node is queued. The releaser then calls mark_released() instead of release().
    void share(shared_word& word) noexcept;
    // The word that share() has recorded. Only for a waiter that shares one.
    shared_word& shared() const noexcept { return *reinterpret_cast<shared_word*>(others_or_word_ - shares); }
    // The first half of the release of a waiter that shares a word. If it returns true, the thread may be asleep, and
    // the caller must wake all threads that sleep on that word. The waiter may be gone before this returns.
    bool mark_released() noexcept;

    // Called for a stop request, in the thread that requests the stop.
    void stop() noexcept {
        TOCSIN_PROBE(stop, this);
        if (try_claim(claim::stopped)) release(nullptr);
    }

    // For coroutines. Returns false if the waiter has already been released. If it returns true, the coroutine belongs
    // to whoever claims the waiter, and release() resumes it. The caller may then touch neither the coroutine nor the
    // waiter.
    bool suspend() noexcept;
    // Does the same, but before the waiter's only node is queued. Nobody can release the waiter yet, so this succeeds.
    // A waiter whose wait is over may begin another wait in this way.
    void suspend_unqueued() noexcept;
    bool is_coroutine() const noexcept { return then_ != nullptr; }

    // Whether the thread sleeps, so that its release needs a system call. A guess, which may be out of date.
    bool is_asleep() const noexcept;
    // For a thread that looks for its release without sleeping. If it returns true, the thread calls core::finish().
    bool is_released() const noexcept;

    // A thread sleeps by core::sleep() (relay.hpp), which calls this. Sleeps until released and returns true, or until
    // the deadline and returns false. A timeout here claims nothing.
    bool sleep_until_released(const deadline& until, sleep_report* report = nullptr) noexcept;
    // For a thread that sleeps in the poller (poll_sleep in relay.hpp): the release rings this bell from now on.
    // Returns false if the waiter has already been released.
    bool enter_polling(platform::doorbell_id bell) noexcept;
    // Called by core::finish() after a release: the first of the nodes that the thread was given to release, or null.
    wait_node* given() const noexcept {
        order::after(this);
        const std::uintptr_t others = others_or_word_;
        return (others & (shares | to_keep)) != 0 ? nullptr : reinterpret_cast<wait_node*>(others);
    }
    // Called last by core::finish(). Returns why the wait ended.
    claim awake() const noexcept {
        const auto reason = static_cast<claim>(claim_.load(std::memory_order_relaxed));  // no order: waiter-1
        TOCSIN_PROBE(awake, this, reason);
        return reason == claim::stopped ? claim::stopped : claim::signaled;
    }

    // Runs `wait()`. A stop request for the options' token stops this waiter while `wait()` runs.
    template <class Wait>
    claim stoppable(const detail::wait_options& options, Wait wait) noexcept {
        if (options.stop == nullptr || !options.stop->stop_possible()) return wait();
        // If stop() runs in another thread, the callback's destructor waits until that thread is done with this waiter.
        // This may change errno.
        const platform::errno_guard kept;
        const auto on_stop = [this]() noexcept { stop(); };
        order::after_callback told;  // destroyed after the callback
        order::before_registration(*options.stop);
        const detail::sound_stop_callback<decltype(on_stop)> registered(*options.stop, on_stop);
        told.is_about(registered);
        return wait();
    }

    bool is_claimed() const noexcept {
        return claim_.load(std::memory_order_relaxed) !=  // no order: waiter-1
               static_cast<std::uint32_t>(claim::open);
    }

    // Why the wait ended. For callers that know that it has ended.
    claim outcome() const noexcept {
        const std::uint32_t how = claim_.load(std::memory_order_relaxed);  // no order: waiter-1
        return how < static_cast<std::uint32_t>(claim::signaled) ? static_cast<claim>(how) : claim::signaled;
    }

    // The number of the source for which the waiter was claimed.
    std::uint32_t winner() const noexcept {
        return claim_.load(std::memory_order_relaxed) -  // no order: waiter-1
               static_cast<std::uint32_t>(claim::signaled);
    }

private:
    friend struct shared_layout;

    // In others_or_word_ (waiter-5).
    static constexpr std::uintptr_t shares = 1;
    static constexpr std::uintptr_t to_keep = 2;

    void release_with(std::uintptr_t others) noexcept;
    bool enter_state(std::uint32_t how) noexcept;

    resumable* const then_;
    detail::atomic<std::uint32_t> word_{0};  // running, released, or how it sleeps (waiter.cpp)
    detail::atomic<std::uint32_t> claim_{0};
    // The first node of others to release, or the shared word's address, with a tag (waiter-5).
    detail::plain<std::uintptr_t> others_or_word_{0};
};

// Whether a wait with these options may also end by a deadline or a stop.
bool can_cancel(const detail::wait_options& options) noexcept;

// Returns `stopped` or `timed_out` if a wait with these options is over before it begins; otherwise `open`.
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

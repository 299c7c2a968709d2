// SPDX-License-Identifier: Apache-2.0
// How waiters taken off a queue are released. If there are few, the waker releases all of them itself. If there are
// many, it releases some of them, and these release the others before their waits return. A thread's sleep is declared
// here, too, because it ends with the releases that the thread was given. Why it is correct: relay.cpp; of a sleep in a
// poll, waiter.cpp.
#pragma once

#include "core/lot/wait_node.hpp"
#include "core/lot/waiter.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/wait_options.hpp>

#include <cstdint>
#include <utility>

namespace tocsin::core {

// Nodes that were taken off a queue and whose waiters are to be released. The owner calls wake() once, under no lock.
class [[nodiscard]] release_list {
public:
    release_list() noexcept = default;
    // `differs`: whether the nodes may differ in urgency.
    release_list(node_list&& nodes, wait_node* last_coroutine, bool differs) noexcept
        : nodes_(std::move(nodes)), last_coroutine_(last_coroutine), differs_(differs) {}

    bool empty() const noexcept { return nodes_.empty(); }

    // Only for a list that was built by append() alone. Puts coroutines in front of the threads, so that no thread is
    // given a coroutine to release.
    void append(wait_node& node) noexcept;
    // Appends the nodes of `more`, again with coroutines in front. Visits only the coroutines among them.
    void append(release_list&& more) noexcept;

    // A pollable (pollable.cpp) may owe a raise of its flag. Takes the nodes of such pollables out of the list, and
    // resumes them, so that the flags are raised. The nodes of waits stay in the list. They are not even visited unless
    // there are such raises.
    void raise_pollables() noexcept;

    // Releases a few waiters. If more are left, the last of those few releases further waiters before its wait returns.
    void wake() noexcept;
    // Releases the first two waiters, and gives the second the nodes behind it to keep (release_in_turn()). For a list
    // of threads.
    void wake_in_turn() noexcept;

    // For a list whose nodes are kept elsewhere before wake() (tocsin::wake_list).
    wait_node* last_coroutine() const noexcept { return last_coroutine_; }
    bool differs_in_urgency() const noexcept { return differs_; }
    node_list take_nodes() noexcept { return std::move(nodes_); }

private:
    void put_most_urgent_first() noexcept;

    node_list nodes_;
    wait_node* last_coroutine_ = nullptr;
    wait_node* last_of_batches_ =
        nullptr;                  // the last delegate or sharer that append(node) has put into the list
    bool has_pollables_ = false;  // whether append(node) has put a raise into the list
    bool differs_ = false;        // whether the nodes may differ in urgency (relay-4)
};

// Ends the wait of a thread that has been released: releases the nodes that its waiter was given, and returns why the
// wait ended.
claim finish(waiter& self) noexcept;

// Sleeps until released, and then calls finish(). If the options' deadline passes or a stop is requested before anybody
// has claimed the wait, the sleep ends then. If no deadline or stop can claim a waiter, the waiter may be released
// without a claim. It then counts as signaled.
claim sleep(waiter& self, const detail::wait_options& options, sleep_report* report = nullptr) noexcept;
claim sleep(waiter& self, const deadline& until, sleep_report* report = nullptr) noexcept;

// What a thread polls while it sleeps, the bell that ends its poll, and what the last poll has found.
class poll_sleep {
public:
    // Sleeps until the waiter is released (its release rings the bell), or until a poll finds a descriptor ready, times
    // out or fails. Returns why the wait ended:
    // - If a poll ended the sleep and nobody has claimed the wait yet, this thread claims it. If a descriptor is ready,
    //   the claim is `signaled`, for the source that ready_source() returns. Otherwise it is `timed_out`, even if the
    //   poll failed. found() is what the poll found.
    // - If the wait is claimed otherwise (by a set or a stop, for example), this function returns only after the
    //   waiter's release, even if a poll has ended before. found() is empty.
    claim sleep(waiter& self, const detail::wait_options& options) noexcept;
    const platform::poll_result& found() const noexcept { return found_; }

protected:
    ~poll_sleep() = default;

private:
    virtual platform::doorbell_id bell() const noexcept = 0;
    // Looks, and sleeps once. A ring of the bell ends that sleep, if nothing ends it before.
    virtual platform::poll_result poll(const deadline& until) noexcept = 0;
    // The number of the source that the last poll has found ready.
    virtual std::uint32_t ready_source() const noexcept = 0;

    claim sleep_until(waiter& self, const deadline& until) noexcept;

    platform::poll_result found_;
};

// Releases the first two waiters, and gives the second the nodes behind it to keep (waiter::kept()). That thread
// releases the next two, by another call, when it is ready to. For threads only.
void release_in_turn(wait_node& first) noexcept;

}  // namespace tocsin::core

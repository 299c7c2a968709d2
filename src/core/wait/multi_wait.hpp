// SPDX-License-Identifier: Apache-2.0
// One wait for several sources: for the first that becomes ready, or for all at once. Why it is correct:
// multi_wait.cpp.
//
//     multi_wait wait(sources, multi_wait::mode::any, slots, buckets);
//     if (wait.enlist() == multi_wait::progress::waiting) how = sleep(wait.self, options);
//     wait.delist();
#pragma once

#include "core/lot/lot.hpp"
#include "core/lot/waiter.hpp"
#include "core/sync/rundown.hpp"
#include "core/wait/diagnosed_wait.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/source.hpp>

#include <cstdint>
#include <span>
#include <variant>

namespace tocsin::core {

// One source's storage in a wait: a node in the lot, an entry in the list of a custom source, or nothing.
struct custom_entry : wait_entry {
    using wait_entry::wait_entry;
    diagnosed_wait diagnosed;
};
using wait_slot = std::variant<std::monostate, wait_node, custom_entry>;
static_assert(sizeof(custom_entry) <= sizeof(wait_node), "a wait that has no custom source pays for them");

class multi_wait final : public all_waiter {
public:
    enum class mode : bool { any, all };
    enum class progress : std::uint8_t {
        waiting,  // sleep until released
        done,     // enlist() itself took what the wait is for; nobody will release the waiter
        retry,    // another thread took a custom source first: delist, and begin again
    };

    // `slots` has one element for each source. `buckets` has as many elements; only an all-wait (multi_wait.cpp) uses
    // them. Both outlive the wait. `then` is the coroutine that waits, or null if the thread does.
    multi_wait(std::span<const source> sources, mode what, wait_slot* slots, std::uint16_t* buckets,
               resumable* then = nullptr) noexcept;

    static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

    progress enlist() noexcept;
    // Must be called before the wait returns, however it ended. Afterwards no other thread knows of the wait.
    void delist() noexcept;

    waiter self;

    // For all-waits. Whether all sources look ready, without a lock. The source of the node `offered` counts as ready.
    bool looks_ready(const wait_node* offered) noexcept;
    // If the wait looks ready, acquires the rundown, which keeps the wait from returning, and replies `undecided`.
    reply on_wake(const wait_node* offered) noexcept override;
    // Takes all sources, if all are ready at one instant and nothing else has ended the wait. Then it releases the
    // rundown. If it has taken the sources, it also releases the waiter. The source of the node `offered` is an
    // exception. commit() neither holds nor takes this source, because the caller hands it over. For this source,
    // commit() only takes the node off the queue, and turns off the source's parked bit if the queue is then empty.
    bool commit(const wait_node* offered) noexcept override;
    // Does the same for the waiting thread itself, which needs neither rundown nor release.
    bool commit_own() noexcept { return looks_ready(nullptr) && take_everything(nullptr); }
    // Called by a custom source under its own lock when it becomes ready. If it returns true, the source must call
    // wake_notified() exactly once, under no lock; the wait cannot return before that.
    bool notify(std::uint32_t index) noexcept;
    void wake_notified() noexcept;
    // Called by the waiting thread of an all-wait. Counts `how_many` of its timers as ready. Each timer is counted
    // once.
    void add_ready_timers(std::uint32_t how_many) noexcept;
    // Does the same for a service that watches the timers of a coroutine. Like notify(), it is called under a lock that
    // the wait takes before it ends, and wake_notified() must follow.
    void notify_timers(std::uint32_t how_many) noexcept;

    bool is_all() const noexcept { return mode_ == mode::all; }

private:
    void make_node(std::uint32_t i) noexcept;
    void arrive(std::uint32_t how_many) noexcept;
    bool take_everything(const wait_node* offered) noexcept;
    bool hold_everything(const wait_node* offered) noexcept;
    void lock_everything() noexcept;
    void unlock_everything() noexcept;
    progress enlist_in_lot(wait_node& node, const source& from, const wait_origin& origin) noexcept;
    progress enlist_custom(custom_entry& entry, const source& from, std::uint32_t index,
                           const wait_origin& origin) noexcept;

    const mode mode_;
    const std::span<const source> sources_;
    wait_slot* const slots_;
    std::uint16_t* const buckets_;  // the buckets of all nodes, in the order in which they are locked
    std::uint32_t bucket_count_ = 0;
    std::uint32_t enlisted_ = 0;
    detail::plain<bool> committed_{false};
    detail::atomic<std::uint32_t> missing_{0};    // sources outside the lot that are not ready yet
    detail::atomic<std::uint32_t> looked_to_{0};  // where the next look at an all-wait begins
    rundown rundown_;
};

// Called after a source has visibly become ready. Satisfies the all-waits that lacked only this source, oldest first.
void satisfy_all_waiters(const wait_key& key) noexcept;

}  // namespace tocsin::core

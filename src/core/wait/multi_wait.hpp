// One wait for several sources: for the first that becomes ready, or for all at once. The argument: multi_wait.cpp.
//
//     multi_wait wait(sources, multi_wait::mode::any, slots, buckets);
//     if (wait.enlist() == multi_wait::progress::waiting) how = wait.self.sleep(options);
//     wait.delist();
#pragma once

#include "core/lot/lot.hpp"
#include "core/lot/waiter.hpp"
#include "core/sync/rundown.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/source.hpp>

#include <cstdint>
#include <span>
#include <variant>

namespace tocsin::core {

// One source's storage in a wait: a node in the lot, an entry in the list of a custom source, or nothing.
using wait_slot = std::variant<std::monostate, wait_node, wait_entry>;

class multi_wait final : public all_waiter {
public:
    enum class mode : bool { any, all };
    enum class progress : std::uint8_t {
        waiting,  // sleep until released
        done,     // enlist() itself took what it waits for; nobody will release it
        retry,    // somebody else took a custom source: delist, and begin again
    };

    // `slots`, and for all-waits `buckets`, have room for as many as there are sources, and outlive the wait. `then` is
    // the coroutine that waits, or null if the thread does.
    multi_wait(std::span<const source> sources, mode what, wait_slot* slots, std::uint16_t* buckets,
               resumable* then = nullptr) noexcept;

    static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
    // Takes the source if it is ready, and returns whether it was. Never takes a descriptor: source_list.hpp looks at
    // those.
    static bool take_if_ready(const source& from) noexcept;

    progress enlist() noexcept;
    // Call it before the wait returns, however it ended. Afterwards no other thread knows of the wait.
    void delist() noexcept;

    waiter self;

    // For all-waits. Whether all could be taken, as far as can be seen from here; `offered` counts as ready.
    bool looks_ready(const wait_node* offered) const noexcept;
    // If it looks ready, acquires the rundown, which keeps the wait from returning.
    reply on_wake(const wait_node* offered) noexcept override;
    // Takes everything, if everything is ready at one instant and nothing else has ended the wait. Then releases the
    // rundown and, after a success, the waiter. It does not take the offered source from its object: the caller brings
    // it.
    bool commit(const wait_node* offered) noexcept override;
    // The same for the waiting thread itself, which needs neither rundown nor release.
    bool commit_own() noexcept { return looks_ready(nullptr) && take_everything(nullptr); }
    // Called by a custom source under its own lock when it becomes ready. If it returns true, the source must call
    // wake_notified() exactly once, under no lock; the wait cannot return before that.
    bool notify(std::uint32_t index) noexcept;
    void wake_notified() noexcept;
    // For the waiting thread of an all-wait: counts so many of its timers as ready. Each is counted once.
    void add_ready_timers(std::uint32_t how_many) noexcept;
    // The same for a thread that watches the timers for a coroutine. It works like notify(), under a lock that the wait
    // takes before it ends.
    void notify_timers(std::uint32_t how_many) noexcept;

    bool is_all() const noexcept { return mode_ == mode::all; }

private:
    void make_node(std::uint32_t i) noexcept;
    void arrive(std::uint32_t how_many) noexcept;
    bool take_everything(const wait_node* offered) noexcept;
    bool hold_everything(const wait_node* offered) noexcept;
    void lock_everything() noexcept;
    void unlock_everything() noexcept;
    progress enlist_in_lot(wait_node& node, const source& from) noexcept;
    progress enlist_custom(wait_entry& entry, const source& from, std::uint32_t index) noexcept;

    const mode mode_;
    const std::span<const source> sources_;
    wait_slot* const slots_;
    std::uint16_t* const buckets_;  // of all nodes, in the order in which they are locked
    std::uint32_t bucket_count_ = 0;
    std::uint32_t enlisted_ = 0;
    detail::plain<bool> committed_{false};
    detail::atomic<std::uint32_t> missing_{0};  // sources outside the lot that are not ready yet
    rundown rundown_;
};

// Call it after a source has visibly become ready. Satisfies the all-waits that lacked only this source, oldest first.
void satisfy_all_waiters(const wait_key& key) noexcept;

}  // namespace tocsin::core

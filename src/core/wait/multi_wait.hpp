// One wait for several sources: for the first that comes, or for all at once. The argument: multi_wait.cpp.
//
//     multi_wait wait(sources, multi_wait::wants::any, seats, buckets);
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

// The place of one source in a wait: a node in the lot, or an entry in the list of a custom source.
using wait_slot = std::variant<std::monostate, wait_node, wait_entry>;

class multi_wait final : public all_waiter {
public:
    enum class mode : bool { any, all };
    enum class progress : std::uint8_t {
        waiting,  // sleep until released
        done,     // satisfied by itself, while it enlisted; nobody will release it
        retry,    // a custom source was taken by somebody else: delist, and begin again
    };

    // `seats`, and for all-waits `buckets`, have room for as many as there are sources, and outlive the wait. `then`
    // is the coroutine that waits, if it isn't the thread.
    multi_wait(std::span<const source> sources, mode what, wait_slot* slots, std::uint16_t* buckets,
               resumable* then = nullptr) noexcept;

    // Looks at each once, in order: takes the first that is ready and says which, or `none`. Doesn't look at
    // descriptors: those are the caller's.
    static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
    static std::uint32_t take_first_ready(std::span<const source> sources) noexcept;
    static bool take_if_ready(const source& from) noexcept;

    progress enlist() noexcept;
    // Before the wait returns, however it ended. Afterwards nobody knows of it.
    void delist() noexcept;

    waiter self;

    // For all-waits. Whether all could be taken, as far as can be seen from here; `in_hand` counts as ready.
    bool looks_ready(const wait_node* offered) const noexcept;
    // If it looks ready, pins it: keeps the wait from returning.
    reply on_wake(const wait_node* offered) noexcept override;
    // Takes everything, if everything is ready at one instant and nothing else has ended the wait, and releases it;
    // then unpins. A source in hand is not taken from its object: the caller brings it.
    bool commit(const wait_node* offered) noexcept override;
    // The same for the waiting thread itself, which needs no pin and no release.
    bool commit_own() noexcept { return looks_ready(nullptr) && take_everything(nullptr); }
    // A custom source has become ready, and calls this under its own lock. If it is true, it calls the other, once,
    // under no lock; until then the wait can't return.
    bool notify(std::uint32_t index) noexcept;
    void wake_notified() noexcept;
    // For the waiting thread of an all-wait: so many of its timers have come. Each is counted once.
    void timers_have_come(std::uint32_t how_many) noexcept;
    // The same for who watches them for a coroutine: as notify(), under a lock that the wait takes before it ends.
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

// After a source has become ready, and has been seen to be: lets those all-waits have it that are waiting for
// just this, oldest first.
void satisfy_all_waiters(const wait_key& key) noexcept;

}  // namespace tocsin::core

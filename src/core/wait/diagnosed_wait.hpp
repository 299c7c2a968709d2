// SPDX-License-Identifier: Apache-2.0
// Lists the waits that have no node in the lot, so that diagnose.hpp can show them: for custom sources, for
// descriptors, for objects between processes, in a wait_set and in a group_commit. Why it is correct:
// diagnosed_wait.cpp.
#pragma once

#include "core/sync/fork.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/wait_origin.hpp"

#include <tocsin/detail/intrusive_list.hpp>
#include <tocsin/source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::platform {
struct poll_entry;
}

namespace tocsin::core {

class member_table;
class waiter;

// What one wait enters into a list. The wait calls enter() once it is enlisted (or is about to sleep), and leave()
// before it returns.
class diagnosed_wait : public detail::list_links<diagnosed_wait> {
public:
    // For one custom source. Also fires the probe of a parked wait.
    void enter(const source& what, const waiter& who, const wait_origin& from) noexcept;
    void enter(const source_label& what, const waiter& who, const wait_origin& from) noexcept;
    // Does nothing if the wait has not entered.
    void leave() noexcept;
    bool is_listed() const noexcept { return who_ != nullptr; }

    // For looks under the list's lock.
    const source_label& label() const noexcept { return label_; }
    // Whether the wait has not ended yet.
    bool is_open() const noexcept;
    const wait_origin& origin() const noexcept { return origin_; }

private:
    friend struct debugger_layout;

    const waiter* who_ = nullptr;  // null: not in a list
    source_label label_;
    wait_origin origin_;
    process_stamp process_;
};

// The entry of a wait that is for more than its label says.
struct diagnosed_sleep : diagnosed_wait {
    // The label of a wait that is for each of `polled`.
    static constexpr char polls[] = "descriptor";

    const platform::poll_entry* polled = nullptr;
    std::size_t polled_count = 0;
    const member_table* members =
        nullptr;  // of a wait_set. For a debugger, which reads them without their lock.
};

// Enters a wait when it is made, and leaves when it is destroyed.
class diagnosed_here {
public:
    diagnosed_here(const source_label& what, const waiter& who, const wait_origin& from,
                   const member_table* members = nullptr) noexcept {
        entry_.members = members;
        entry_.enter(what, who, from);
    }
    // For a poll.
    diagnosed_here(std::span<const platform::poll_entry> polled, const waiter& who,
                   const wait_origin& from) noexcept {
        entry_.polled = polled.data();
        entry_.polled_count = polled.size();
        entry_.enter(source_label{diagnosed_sleep::polls, nullptr}, who, from);
    }
    diagnosed_here(const diagnosed_here&) = delete;
    diagnosed_here& operator=(const diagnosed_here&) = delete;
    ~diagnosed_here() { leave(); }
    void leave() noexcept { entry_.leave(); }

private:
    diagnosed_sleep entry_;
};

// A thread that sleeps on words of its own, without a waiter. It enters before its first sleep, and leaves when this is
// destroyed.
class diagnosed_sleeper {
public:
    explicit diagnosed_sleeper(const source_label& what) noexcept : what_(what) {}
    diagnosed_sleeper(const diagnosed_sleeper&) = delete;
    diagnosed_sleeper& operator=(const diagnosed_sleeper&) = delete;
    ~diagnosed_sleeper() { entry_.leave(); }
    // Does nothing if the wait has entered already.
    void enter() noexcept;

private:
    const source_label what_;
    diagnosed_wait entry_;
};

struct alignas(64) diagnosed_list {
    futex_lock lock;
    detail::intrusive_list<diagnosed_wait> waits;
};
inline constexpr unsigned diagnosed_lists_bits = 6;
extern diagnosed_list diagnosed_lists[std::size_t{1} << diagnosed_lists_bits];

// Calls `look(wait, context)` for each wait in the lists, under the lock of its list.
void for_each_diagnosed(void (*look)(const diagnosed_wait&, void*), void* context) noexcept;

}  // namespace tocsin::core

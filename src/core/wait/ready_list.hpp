// SPDX-License-Identifier: Apache-2.0
// The core of wait_set: events and timers, registered once and waited for often by one thread. Why it is correct:
// ready_list.cpp.
//
// A wait with the deadline `until` goes like this (simplified from wait_set.cpp):
//
//     if (std::size_t found = list.take_ready(items, nullptr)) return found;
//     ready_list::sleeper self(list);
//     if (list.begin_sleep(self, until)) {                    // false: something has become ready
//         core::claim how = sleep(self.waiting, self.until);   // to `until`, or to the first timer's deadline
//         list.end_sleep(self);
//     }
#pragma once

#include "core/lot/lot.hpp"
#include "core/sync/timer_queue.hpp"
#include "core/wait/alert.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::core {

class member_table;
class ready_list;

// A source or a timer that a ready_list can report.
class member : public detail::list_links<member> {
public:
    enum class kind : bool { source, timer };

    member(kind which, std::uint64_t tag) noexcept : tag_(tag), what_(which) {}
    member(const member&) = delete;
    member& operator=(const member&) = delete;

private:
    friend class ready_list;

    // Under the lock of the ready_list, but for `what_`:
    detail::plain<std::uint64_t> tag_;
    const kind what_;
    detail::plain<bool> ready_{false};  // whether it is in the list of what is ready
    // Of a source: whether the waiting thread has taken this member off the list and is looking at its source.
    detail::plain<bool> being_examined_{false};
};

// A source that is registered in a ready_list.
class source_member final : public member, subscriber {
public:
    source_member(ready_list& list, const source& what, std::uint64_t tag) noexcept;

    void* object() const noexcept { return const_cast<void*>(node_.key.address); }

private:
    friend class ready_list;
    friend class member_table;
    friend struct debugger_layout;

    reply on_wake(wait_node& node, bool exclusive, release_list& freed) noexcept override;
    bool sleeps(wait_origin& since) const noexcept override;

    ready_list& list_;
    const detail::lot_source& source_;
    wait_node node_;
    source_member* next_ = nullptr;  // in the member_table
};

// A timer, in at most one ready_list at a time.
class timer_member final : public member, public detail::list_links<timer_member>, timer_entry {
public:
    timer_member() noexcept : member(kind::timer, 0) {}

    // The ready_list that the timer is in, or null. Only add() and remove() change it.
    ready_list* list() const noexcept { return list_; }
    // Called after add(). If it returns false, the ready_list and its lock belong to another process.
    bool is_of_this_process() const noexcept { return added_by_.is_of_this_process(); }
    // Called while the timer is in no ready_list. add() then arms the timer with this deadline.
    void set_deadline(const deadline& when, std::int64_t period) noexcept {
        when_ = when;
        period_ = period;
    }
    const deadline& when() const noexcept { return when_; }
    std::uint32_t ticks() const noexcept { return ticks_; }

private:
    friend class ready_list;

    ready_list* list_ = nullptr;
    process_stamp added_by_{0};
    // Under the lock of the ready_list, while the timer is a member:
    detail::plain<std::uint32_t> ticks_{
        0};  // for how many ticks the last report stands; at most the greatest
    detail::plain<std::int64_t> period_{0};       // in nanoseconds; 0: the timer does not repeat
    detail::plain<timer_queue*> queue_{nullptr};  // that it was in last
};

class ready_list {
public:
    // One sleep of a thread in this ready_list.
    struct sleeper {
        explicit sleeper(ready_list& list) noexcept : node({&list, wait_kind::event}, waiting, true) {}

        waiter waiting;
        // Never queued; a release_list holds it to release the thread. Its owner writes the origin before the sleep.
        wait_node node;
        deadline until = deadline::never();  // when the thread wakes at the latest; begin_sleep() sets it
        bool until_timer = false;            // whether `until` is the deadline of a timer
        // The member for which the thread was released. It may be gone, so only compare the pointer. Null: look again.
        detail::plain<const member*> by{nullptr};
        detail::plain<std::uint64_t> tag{0};
    };

    // Tells a loop that polls a descriptor that a wait may find something (ready_list-8).
    struct view {
        alert flag;
        // Under the lock of the ready_list, while the alert is armed: the first deadlines of the timers. Otherwise only
        // the waiting thread uses them.
        deadline steady = deadline::never();
        deadline system = deadline::never();
    };

    ready_list() noexcept = default;
    ready_list(const ready_list&) = delete;
    ready_list& operator=(const ready_list&) = delete;

    // Any thread may call the functions below, but for one member only one thread at a time. add() takes a new
    // source_member, which was allocated by `new`.
    void add(source_member& joining) noexcept;
    void set_tag(member& which, std::uint64_t tag) noexcept;
    // Deletes the member, or has the waiting thread delete it. Afterwards the source may be destroyed.
    void remove(source_member* leaving) noexcept;

    // Adds a timer, and arms it if it has a deadline.
    void add(timer_member& joining, std::uint64_t tag) noexcept;
    // Called by any thread, while the timer is a member. Arms the timer, or moves it if it is armed. A deadline of
    // `never` disarms it. If `period` is not 0, each report arms it again.
    void arm(timer_member& which, const deadline& when, std::int64_t period) noexcept;
    // For how many ticks the timer's last report stands.
    std::uint32_t ticks(const timer_member& which) noexcept;
    // Whether the timer has a deadline that no wait has reported yet.
    bool is_armed(const timer_member& which) noexcept;
    // Afterwards the timer is in no list and not armed, and may be destroyed.
    void remove(timer_member& leaving) noexcept;
    void remove_timers() noexcept;

    // If a thread sleeps here, makes it look again. If there is a view, alerts it.
    void wake() noexcept;

    // From now on, alerts this view, which is not armed, and outlives all members. Called once.
    void show_to(view& from_now_on) noexcept;

    // Only the waiting thread calls the functions below. There is one waiting thread at a time.

    // Whether take_ready() may find something, without taking the lock. The answer may be out of date, and timers don't
    // count.
    bool may_have_ready() const noexcept {
        return ready_count_.load(std::memory_order_relaxed) != 0;  // no order: a guess
    }
    // Takes as much of what is ready as `out` has room for, and returns how much. Passes over `skipped` in this call.
    // `skipped` may be null.
    std::size_t take_ready(std::span<ready_item> out, const member* skipped) noexcept;
    // Returns false if something is ready. If it returns true, the thread is to sleep until `self.until`, which is not
    // later than `until`.
    bool begin_sleep(sleeper& self, const deadline& until) noexcept;
    void end_sleep(sleeper& self) noexcept;
    // For a ready_list that has a view, at the end of a wait. Lowers the view's flag if nothing is ready, and returns
    // whether the view is armed now. Then the loop must look again at the view's deadlines. `found_any`: whether the
    // wait found something, so that a loop that reports only changes waits again.
    bool arm_view(bool found_any) noexcept;

private:
    friend class source_member;

    // Holds the lock. Defers a set() in a signal handler, because that set() would take the same lock.
    struct guard {
        explicit guard(ready_list& list) noexcept : lock(list.lock_) {}
        const signal_deferral inside;
        const std::lock_guard<futex_lock> lock;
    };

    reply deliver(source_member& which, bool exclusive, release_list& freed) noexcept;
    void release_sleeper(release_list& freed, const member* by) noexcept;
    bool examine(source_member& which, ready_item& found) noexcept;
    void claim_sleeper(release_list& freed) noexcept;
    void alert_view(release_list& freed) noexcept {
        if (view_ != nullptr) view_->flag.offer(freed);
    }
    timer_queue& queue_for(const deadline& when) noexcept;
    void report(timer_member& which) noexcept;
    void make_due_ready(std::size_t max) noexcept;
    void disarm(timer_member& which) noexcept;
    void forget(timer_member& leaving) noexcept;
    void make_ready(member& which) noexcept;
    void clear_ready(member& which) noexcept;
    std::size_t ready_count() const noexcept;
    void set_ready_count(std::size_t count) noexcept;

    futex_lock lock_;
    detail::intrusive_list<member> ready_;        // the longest ready first
    detail::atomic<std::size_t> ready_count_{0};  // written under the lock
    detail::plain<sleeper*> sleeper_{nullptr};
    detail::plain<view*> view_{nullptr};
    timer_queue steady_timers_{deadline::clock::steady};
    timer_queue system_timers_{deadline::clock::system};
    detail::intrusive_list<timer_member> timers_;  // all timers that are members
};

}  // namespace tocsin::core

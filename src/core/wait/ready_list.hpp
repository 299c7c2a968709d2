// The core of wait_set: events and timers, registered once and waited for often by one thread. Why it is correct:
// ready_list.cpp.
//
//     if (std::size_t found = list.take_ready(items, nullptr)) return found;
//     ready_list::sleeper self(list);
//     if (list.begin_sleep(self, until)) how = self.waiting.sleep(self.until);
//     list.end_sleep(self);
#pragma once

#include "core/lot/lot.hpp"
#include "core/sync/timer_queue.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::core {

class ready_list;

// What a ready_list reports.
class member : public detail::list_links<member> {
public:
    enum class kind : bool { source, timer };

    member(kind which, std::uint64_t tag) noexcept : what_(which), tag_(tag) {}
    member(const member&) = delete;
    member& operator=(const member&) = delete;

private:
    friend class ready_list;

    const kind what_;
    // Under the lock of the ready_list:
    detail::plain<std::uint64_t> tag_;
    detail::plain<bool> ready_{false};  // it is in the list
};

// A source that is registered in a ready_list.
class source_member final : public member, subscriber {
public:
    source_member(ready_list& list, const source& what, std::uint64_t tag) noexcept;

private:
    friend class ready_list;

    reply on_wake(wait_node& node, bool exclusive, release_list& freed) noexcept override;

    ready_list& list_;
    const source source_;
    wait_node node_;
    // The waiting thread has taken it off the list and looks at it. Under the lock of the ready_list.
    detail::plain<bool> being_examined_{false};
};

// A timer, in at most one ready_list at a time.
class timer_member final : public member, public detail::list_links<timer_member>, timer_entry {
public:
    timer_member() noexcept : member(kind::timer, 0) {}

    // Null: in none. Written by add() and remove() only.
    ready_list* list() const noexcept { return list_; }
    // How many forks lay before add(). After another, the ready_list and its lock are another process's.
    std::uint32_t forks() const noexcept { return forks_; }
    // While it is in none: arms it from add() on.
    void set_deadline(const deadline& when) noexcept { when_ = when; }
    const deadline& when() const noexcept { return when_; }

private:
    friend class ready_list;

    ready_list* list_ = nullptr;
    std::uint32_t forks_ = 0;
    detail::plain<timer_queue*> queue_{nullptr};  // that it was in last; under the lock of the ready_list
};

class ready_list {
public:
    // A thread that sleeps here, for one sleep.
    struct sleeper {
        explicit sleeper(ready_list& list) noexcept : node({&list, wait_kind::event}, waiting, true) {}

        waiter waiting;
        wait_node node;                      // never queued: it is for release_list, which consists of nodes
        deadline until = deadline::never();  // when it wakes at the latest; begin_sleep() sets it
        bool until_timer = false;            // on account of a timer
        // The member that it was released for, which may be gone: only compare it. Null: it is to look again.
        detail::plain<const member*> by{nullptr};
        detail::plain<std::uint64_t> tag{0};
    };

    ready_list() noexcept = default;
    ready_list(const ready_list&) = delete;
    ready_list& operator=(const ready_list&) = delete;

    // Any thread. A member is added, tagged and removed by one thread at a time. A source_member is new, allocated by
    // `new`.
    void add(source_member& joining) noexcept;
    void set_tag(member& which, std::uint64_t tag) noexcept;
    // Deletes it, or makes the waiting thread delete it. Afterwards the source may be destroyed.
    void remove(source_member* leaving) noexcept;

    // Timers. Arms one that has a deadline.
    void add(timer_member& joining, std::uint64_t tag) noexcept;
    // Any thread, while it is a member: arms the timer, or moves it if it is armed. `never` disarms it.
    void arm(timer_member& which, const deadline& when) noexcept;
    // Whether it has a deadline that no wait has reported yet.
    bool is_armed(const timer_member& which) noexcept;
    // Afterwards it is in no list, not armed, and may be destroyed.
    void remove(timer_member& leaving) noexcept;
    void remove_timers() noexcept;

    // Makes the thread that sleeps, if there is one, look again.
    void wake() noexcept;

    // Whether take_ready() may find something; for a thread that looks without sleeping. A guess that may be out of
    // date, and that does not know of timers.
    bool may_have_ready() const noexcept {
        return ready_count_.load(std::memory_order_relaxed) != 0;  // no order: a guess
    }

    // The waiting thread, one at a time. Takes as much of what is ready as `out` has room for, and returns how much.
    // `skipped` is passed over this once (may be null).
    std::size_t take_ready(std::span<ready_item> out, const member* skipped) noexcept;
    // False: something is ready. Else the thread is to sleep until `self.until`, which is not later than `until`.
    bool begin_sleep(sleeper& self, const deadline& until) noexcept;
    void end_sleep(sleeper& self) noexcept;

private:
    friend class source_member;

    // Defers a set() in a signal handler, which would take the same lock.
    struct guard {
        explicit guard(ready_list& list) noexcept : lock(list.lock_) {}
        const signal_deferral inside;
        const std::lock_guard<futex_lock> lock;
    };

    reply deliver(source_member& which, bool exclusive, release_list& freed) noexcept;
    void release_sleeper(release_list& freed, const member* by) noexcept;
    bool examine(source_member& which, ready_item& found) noexcept;
    void claim_sleeper(release_list& freed) noexcept;
    timer_queue& queue_for(const deadline& when) noexcept;
    void make_due_ready(std::size_t most) noexcept;
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
    timer_queue steady_timers_{deadline::clock::steady};
    timer_queue system_timers_{deadline::clock::system};
    detail::intrusive_list<timer_member> timers_;  // all that are members
};

}  // namespace tocsin::core

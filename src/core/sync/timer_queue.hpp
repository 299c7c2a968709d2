// SPDX-License-Identifier: Apache-2.0
// A queue of deadlines on one clock, the earliest first. It is used for asynchronous waits
// (core/async/timer_thread.hpp) and for the timers of a wait_set (core/wait/ready_list.cpp). It owns nothing, allocates
// nothing and locks nothing. Whoever uses the queue holds the lock that guards it. The models check this rule: they
// report a race on any `plain` member.
//
// State
//   The times of the steady and the system clock can't be translated into each other, so a queue serves one of these
//   clocks. A deadline on a user's clock is in a queue of the steady clock, at its estimated time. When that time
//   comes, the queue asks the user's clock again. The entries form a pairing heap. It is ordered by `due_`, which is in
//   nanoseconds on the queue's clock.
//
// Invariants
//   timer_queue-1  An entry's `due_` is the time of its deadline (the estimated time, on a user's clock), or an earlier
//       time.
//       legal: `due_` is earlier than the deadline, and `has_moved_` is on: the deadline was moved to a later time, and
//       the entry stayed where it was.
//       illegal: `due_` is later than the deadline (on a user's clock: later than its estimated time).
//   timer_queue-2  first() returns the entry with the earliest `due_`, and that entry's `has_moved_` is off. So no
//       entry is due before it. For example, suppose that a deadline is moved to a later time, and that a thread then
//       calls first() and sleeps until the returned entry's `due_`. This thread does not wake at the deadline's former
//       time.
//   timer_queue-3  take_due() returns an entry whose deadline has passed, and the entry is then in no queue. So
//       take_due() returns an entry at most once for each insertion, and never early.
//
// What it costs: an insertion takes one comparison. So does a move to a later time, however many entries there are.
// take_due(), remove() and a move to an earlier time take O(log n) amortized.
//
// Checked by: tests/model/timer_model_test.cpp, tests/model/wait_set_timer_model_test.cpp, and unit tests of coroutines
// and wait_sets.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

namespace tocsin::core {

// Something that has a deadline. It is in at most one queue at a time.
class timer_entry {
protected:
    deadline when_ = deadline::never();
    detail::plain<bool> is_postponed_{
        false};  // of a timer (core/async/timer_thread.hpp). The queue doesn't use it.

private:
    friend class timer_heap;
    friend class timer_queue;

    detail::plain<bool> is_queued_{false};
    detail::plain<bool> has_moved_{false};  // `when_` was moved, and is not earlier than `due_`
    detail::plain<std::int64_t> due_{0};
    // The links of the heap: to the first child, to the next sibling, and to the entry whose first child or next
    // sibling this entry is.
    detail::plain<timer_entry*> child_{nullptr};
    detail::plain<timer_entry*> next_{nullptr};
    detail::plain<timer_entry*> previous_{nullptr};
};

// A pairing heap.
class timer_heap {
public:
    timer_entry* earliest() const noexcept { return root_; }

    void insert(timer_entry& one) noexcept {
        one.child_ = nullptr;
        one.next_ = nullptr;
        one.previous_ = nullptr;
        root_ = meld(root_, &one);
    }

    void remove(timer_entry& one) noexcept {
        timer_entry* const below = meld_all(std::exchange(one.child_, nullptr));
        if (&one == root_) {
            root_ = below;
            return;
        }
        timer_entry& before = *one.previous_;
        (before.child_ == &one ? before.child_ : before.next_) = one.next_;
        if (one.next_ != nullptr) one.next_->previous_ = one.previous_;
        root_ = meld(root_, below);
    }

private:
    static timer_entry* meld(timer_entry* a, timer_entry* b) noexcept {
        if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
        if (b->due_ < a->due_) std::swap(a, b);
        b->next_ = a->child_;
        if (b->next_ != nullptr) b->next_->previous_ = b;
        b->previous_ = a;
        a->child_ = b;
        return a;
    }

    // Melds siblings: first in pairs, from the left; then the pairs, from the right.
    static timer_entry* meld_all(timer_entry* first) noexcept {
        timer_entry* pairs = nullptr;
        while (first != nullptr) {
            timer_entry* const second = std::exchange(first->next_, nullptr);
            timer_entry* const remaining =
                second != nullptr ? std::exchange(second->next_, nullptr) : nullptr;
            timer_entry* const pair = meld(first, second);
            pair->next_ = std::exchange(pairs, pair);
            first = remaining;
        }
        timer_entry* all = nullptr;
        while (pairs != nullptr) {
            timer_entry* const next = std::exchange(pairs->next_, nullptr);
            all = meld(all, pairs);
            pairs = next;
        }
        if (all != nullptr) all->previous_ = nullptr;
        return all;
    }

    detail::plain<timer_entry*> root_{nullptr};
};

class timer_queue {
public:
    using clock = deadline::clock;

    // `which` is steady or system.
    explicit constexpr timer_queue(clock which) noexcept : clock_(which) {}

    // The clock of the queue to which such a deadline belongs.
    static constexpr clock clock_of(const deadline& when) noexcept {
        return when.which() == clock::system ? clock::system : clock::steady;
    }

    // The caller makes sure that the deadline is not `never` and that the entry is in no queue.
    void insert(timer_entry& one, const deadline& when) noexcept {
        one.when_ = when;
        one.is_queued_ = true;
        place(one);
    }
    // Does nothing if the entry is in no queue.
    void remove(timer_entry& one) noexcept {
        if (std::exchange(one.is_queued_, false)) heap_.remove(one);
    }
    // Inserts the entry with this deadline. If the entry is in this queue already, moves it.
    void move(timer_entry& one, const deadline& when) noexcept {
        if (is_queued(one) && one.due_ <= nanoseconds_of(when)) {
            one.when_ = when;
            one.has_moved_ = true;
            return;
        }
        remove(one);
        insert(one, when);
    }
    static bool is_queued(const timer_entry& one) noexcept { return one.is_queued_; }

    // The entry that is due first, or null if there is none.
    timer_entry* first() noexcept {
        timer_entry* one = heap_.earliest();
        for (; one != nullptr && one->has_moved_; one = heap_.earliest()) {
            heap_.remove(*one);
            place(*one);
        }
        return one;
    }
    // When to look again: `never` if there is no entry.
    deadline next() noexcept {
        const timer_entry* const one = first();
        return one != nullptr ? at(one->due_) : deadline::never();
    }
    // Whether the entry is due before `other`, as far as the queue can tell. If `other` is not on the queue's clock,
    // the queue can't compare the two, and returns true only for its first entry.
    bool is_before(const timer_entry& one, const deadline& other) noexcept {
        if (other.which() == clock_) return one.due_ < other.nanoseconds();
        return first() == &one;
    }

    static constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();
    static constexpr std::int64_t at_once = std::numeric_limits<std::int64_t>::min();

    // Whether the entry, which is in the queue, is due before `time`, in nanoseconds on the queue's clock.
    static bool is_due_before(const timer_entry& one, std::int64_t time) noexcept { return one.due_ < time; }
    // When the first entry is due, in nanoseconds on the queue's clock: `no_limit` if there is no entry.
    std::int64_t first_due() noexcept {
        const timer_entry* const one = first();
        if (one == nullptr) return no_limit;
        return one->due_;
    }

    // If the first entry's deadline has passed, takes that entry out of the queue and returns it. Otherwise returns
    // null. An entry that is due after `limit`, in nanoseconds on the queue's clock, stays in the queue.
    timer_entry* take_due(std::int64_t limit = no_limit) noexcept {
        while (timer_entry* const one = first()) {
            if (one->due_ > std::min(now(), limit)) return nullptr;
            heap_.remove(*one);
            if (one->when_.which() != clock::other || one->when_.has_passed()) {
                one->is_queued_ = false;
                return one;
            }
            place(*one);  // the estimate was too early
        }
        return nullptr;
    }

private:
    void place(timer_entry& one) noexcept {
        one.due_ = nanoseconds_of(one.when_);
        one.has_moved_ = false;
        heap_.insert(one);
    }

    std::int64_t now() const noexcept {
        using namespace std::chrono;
        const auto since_epoch = clock_ == clock::steady
                                     ? duration_cast<nanoseconds>(steady_clock::now().time_since_epoch())
                                     : duration_cast<nanoseconds>(system_clock::now().time_since_epoch());
        return since_epoch.count();
    }

    deadline at(std::int64_t nanoseconds) const noexcept {
        const std::chrono::nanoseconds since(nanoseconds);
        using std::chrono::steady_clock;
        using std::chrono::system_clock;
        using on_steady = std::chrono::time_point<steady_clock, std::chrono::nanoseconds>;
        using on_system = std::chrono::time_point<system_clock, std::chrono::nanoseconds>;
        return clock_ == clock::steady ? deadline(on_steady(since)) : deadline(on_system(since));
    }

    std::int64_t nanoseconds_of(const deadline& when) const noexcept {
        if (when.which() == clock_) return when.nanoseconds();
        const std::int64_t from = now();
        return from + std::min(when.longest_sleep(), std::numeric_limits<std::int64_t>::max() - from);
    }

    const clock clock_;
    timer_heap heap_;
};

}  // namespace tocsin::core

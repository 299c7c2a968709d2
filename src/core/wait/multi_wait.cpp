// SPDX-License-Identifier: Apache-2.0
// A wait for several sources: it is queued for each, and the first that is ready ends it, or all together.
//
// State
//   A multi_wait waits for any of its sources, or for all of them (here called an all-wait). It has a waiter
//   (waiter.cpp), and a slot for each source. For a source in the lot, the slot is a node in that source's queue. For a
//   custom source, the slot is an entry in that source's list. A timer, which is a deadline, and a descriptor, which is
//   polled, leave their slots empty.
//   rundown_  (rundown.hpp) Acquired by a thread that looks at another thread's all-wait, so that the wait doesn't
//             return during the look.
//   missing_  How many of an all-wait's timers and custom sources have not become ready yet.
//   looked_to_  The source of an all-wait that a look found unready last, or the first source.
//
// Invariants
//   multi_wait-1  A wait takes only what it is claimed for, and only after this claim. If it is claimed for something
//       that is no source, such as a deadline or a stop, it takes nothing. A source in the lot is taken in three steps:
//       (1) The source is held. It is ready, and stays so while its bucket is locked. (2) A thread tries to claim the
//       wait for the source. (3) The source is taken or, if the claim has failed, given up.
//   multi_wait-2  An all-wait takes all its sources at one instant: a commit first locks all their buckets, holds all
//       sources, and claims the wait. Then it takes all sources before it frees the first bucket. (A source that a set
//       offers to the wait is not held: it is not visible yet.) A thread that finds a source held takes the lock of the
//       source's bucket before it relies on what it sees (event.cpp). So nobody sees one source taken and another not.
//   multi_wait-3  A thread locks several buckets in the order of their indices. (It frees them one after another. So
//       while it still holds the locks of some of these buckets, it may wake a thread that sleeps until the lock of
//       another is free.)
//   multi_wait-4  All nodes and entries are made before the first of them is enlisted, which means queued or listed. A
//       node is enlisted only while the wait is unclaimed, which is checked under the lock of the node's bucket. A
//       commit, which holds all these locks, claims the wait and takes its nodes off their queues. So a committed wait
//       has no node in any queue. A wait for any may be claimed for one of its nodes. The thread that makes this claim
//       has taken the node off its queue before, or is the wait's own thread and has not queued the node.
//   multi_wait-5  While another thread looks at an all-wait, one of these keeps the wait from ending:
//       - a lock that the wait, or the thread that commits it, takes before the wait ends. This is the lock of a queue
//         in which the wait has a node, of a custom source that lists the wait, or of the service that watches its
//         timers.
//       - the wait's rundown, which the other thread has acquired under such a lock.
//       delist() takes the nodes and entries out, and then waits until nobody uses the rundown. The sources exist until
//       then, since the wait has not returned.
//   multi_wait-6  No code of the user runs under a lock of the lot. So under these locks, custom sources and timers are
//       not asked. Each of them is reported ready once, and is then no longer counted in `missing_`.
//   multi_wait-7  A look at an all-wait begins with any source, and follows the list round, from the last source to the
//       first, until it has seen one unready source or all sources. So where it begins changes no answer, only the
//       cost: a look begins where the last one ended, and passes only sources that have become ready since then. So if
//       sources stay ready once they are, the sets of n sources together look at a source at most 4n times, whatever
//       the order of the sets: 2n times at an unready source, which ends a look (a set looks twice at most), n times at
//       a source that a look passes, and n times in the look that finds all of them ready.
//
// No lost wake-up
//   A wait for any joins the queue of each source as core/lot/enrol.hpp says, but claims itself before it takes what it
//   holds. A custom source either lists the wait or says that it is ready, under that source's own lock.
//   An all-wait enlists its nodes, makes a full fence, and looks at all sources. A set() makes its event ready, makes a
//   full fence, and looks at the other sources of each all-wait in the event's queue.
//   - If the last two unready sources are set at the same time, at least one of the two sets sees the other source
//     ready.
//   - If a set() found no node of the wait in its event's queue, the wait sees that event ready, because the wait took
//     the lock of that queue later.
//   Whoever sees all sources ready commits. A commit fails if the wait has ended otherwise, or if one source is
//   unready. In the second case, that source has been taken or reset since it was seen ready. Whoever makes it ready
//   again looks at the wait again.
//   While a set() is still handing an event over, the event is not visible as set. The set() offers the event to
//   all-waits in the order of the queue. If the set() then makes the event visible, it looks at all these waits again.
//
// One pass (satisfy_all_waiters)
//   A set() that has made its event visible looks once at each all-wait in its queue, oldest first, and commits those
//   that look ready. It needs no second look at any of them, whatever else happens:
//   - A wait lacks another source when the set() looks at it. Then the thread that makes that source ready looks at the
//     wait, and sees this event. [all-check]
//   - A commit takes sources that other waits want, too. Then the set() looks at the waits behind the committed one
//     afterwards, and sees that they lack these sources. A wait in front of the committed one lacked another source,
//     which is the first case.
//   - The queue changes while the lock is free. (A commit frees all locks, and the pass frees the lock now and then.)
//     Nodes leave and join the queue, but the pass keeps its place (lot-8). A wait that joins sees the event on its
//     own, because the event is visible. So the pass ends with the last node that was in the queue when the pass began,
//     however many join.
//   - The event is taken or reset. Then later looks see that. Whoever sets the event again makes another pass.
//   - Two threads set the event, or set several events of one wait. Then each thread makes its pass, and both may find
//     the same wait ready. The wait's claim word lets one commit succeed, and the other commit changes nothing.
//   So a set() costs one look for each all-wait in the queue, and a commit for each that looks ready. Each time that it
//   locks the bucket, it makes at most `looks_per_lock` looks (lot.hpp). A commit holds the locks of the wait's own
//   sources, for a few steps per source.
//
// Memory order
//   [all-check]    The full fences described above. Whoever makes a source ready makes a full fence before looking at
//                  the wait. A wait makes a full fence between enlisting its nodes and looking.
//   [all-arrived]  Whoever reports a custom source or timers ready decrements `missing_` with release. A thread that
//                  reads zero from it acquires, and passes what it has acquired on to the waiting thread by [release].
//   Everything else is ordered by the buckets' locks and by [release] in waiter.cpp.
//
// Checked by: tests/model/many_model_test.cpp (P10 and P11 of docs/proofs.md, over one bucket and over two),
// mix_model_test.cpp, first_look_model_test.cpp (multi_wait-2); tests/unit/wait_test.cpp,
// tests/unit/publication_test.cpp, tests/stress/many_stress_test.cpp, proofs/promela/wait_all.pml.
#include "core/wait/multi_wait.hpp"

#include "core/lot/enrol.hpp"
#include "core/lot/resume_queue.hpp"

#include <algorithm>

namespace tocsin::core {
namespace {

wait_key key_of(const source& from) noexcept {
    return {from.object(), static_cast<wait_kind>(from.lot().wait_kind)};
}

}  // namespace

multi_wait::multi_wait(std::span<const source> sources, mode what, wait_slot* slots, std::uint16_t* buckets,
                       resumable* then) noexcept
    : self(then), mode_(what), sources_(sources), slots_(slots), buckets_(buckets) {
    std::uint32_t missing = 0;  // timers and custom sources
    for (std::uint32_t i = 0; i != sources.size(); ++i) {
        const source& each = sources[i];
        switch (each.what()) {
            case source::kind::lot: make_node(i); break;
            case source::kind::custom:
                slots_[i].emplace<custom_entry>(*this, i);
                ++missing;
                break;
            case source::kind::timer: ++missing; break;
            case source::kind::descriptor: break;
        }
    }
    missing_.store(missing, std::memory_order_relaxed);  // no order: no other thread knows of the wait yet
    std::sort(buckets_, buckets_ + bucket_count_);
    bucket_count_ = static_cast<std::uint32_t>(std::unique(buckets_, buckets_ + bucket_count_) - buckets_);
}

void multi_wait::make_node(std::uint32_t i) noexcept {
    const wait_key key = key_of(sources_[i]);
    if (!is_all()) {
        slots_[i].emplace<wait_node>(key, self, true, i, sources_[i].lot().use);
        return;
    }
    slots_[i].emplace<wait_node>(key, static_cast<all_waiter&>(*this), sources_[i].lot().use);
    buckets_[bucket_count_++] = static_cast<std::uint16_t>(key_hash(key).index);
}

multi_wait::progress multi_wait::enlist() noexcept {
    const wait_origin origin = self.is_coroutine() ? wait_origin::of_suspension() : wait_origin::here();
    while (enlisted_ != sources_.size() && !self.is_claimed()) {
        const std::uint32_t i = enlisted_++;
        progress made = progress::waiting;
        if (auto* const node = std::get_if<wait_node>(&slots_[i])) {
            made = enlist_in_lot(*node, sources_[i], origin);
        } else if (auto* const entry = std::get_if<custom_entry>(&slots_[i])) {
            made = enlist_custom(*entry, sources_[i], i, origin);
        }
        if (made != progress::waiting) return made;
    }
    if (!is_all()) return progress::waiting;
    detail::full_fence();  // [all-check]
    return commit_own() ? progress::done : progress::waiting;
}

multi_wait::progress multi_wait::enlist_in_lot(wait_node& node, const source& from,
                                               const wait_origin& origin) noexcept {
    const detail::lot_source& how = from.lot();
    locked_queue queue(node.key);
    if (self.is_claimed()) return progress::waiting;  // multi_wait-4; whoever claimed it releases it
    if (is_all()) {
        enrol(queue, node, how, origin, how.order);
        return progress::waiting;
    }
    if (!hold_or_enrol(queue, node, how, origin)) return progress::waiting;
    const bool mine = self.try_claim(claim::signaled, node.index);
    mine ? how.take_held(from.object()) : how.unhold(from.object());
    return mine ? progress::done : progress::waiting;
}

multi_wait::progress multi_wait::enlist_custom(custom_entry& entry, const source& from, std::uint32_t index,
                                               const wait_origin& origin) noexcept {
    if (from.custom().enlist(from.object(), entry)) {
        entry.diagnosed.enter(from, self, origin);
        return progress::waiting;
    }
    if (is_all()) {
        arrive(1);
        return progress::waiting;
    }
    if (!self.try_claim(claim::signaled, index)) {
        from.custom().delist(from.object(), entry);  // at once: no try follows (channel.cpp)
        return progress::waiting;
    }
    return from.custom().try_take(from.object()) ? progress::done : progress::retry;
}

void multi_wait::delist() noexcept {
    // multi_wait-4: a wait for any that was claimed for a node does not have that node in a queue.
    const bool taken = !is_all() && self.outcome() == claim::signaled;
    const std::uint32_t winner = taken ? self.winner() : none;
    for (std::uint32_t i = 0; i != enlisted_; ++i) {
        const source& each = sources_[i];
        if (auto* const entry = std::get_if<custom_entry>(&slots_[i])) {
            entry->diagnosed.leave();
            each.custom().delist(each.object(), *entry);
        } else if (auto* const node = std::get_if<wait_node>(&slots_[i]);
                   node != nullptr && !committed_ && i != winner) {
            (void)withdraw(*node, each.lot());
        }
    }
    if (is_all()) rundown_.wait_until_unused();
}

bool multi_wait::looks_ready(const wait_node* offered) noexcept {
    if (self.is_claimed() || missing_.load(std::memory_order_acquire) != 0) return false;  // [all-arrived]
    const std::size_t count = sources_.size();
    const std::size_t begin = looked_to_.load(std::memory_order_relaxed);  // only for speed: multi_wait-7
    for (std::size_t looked = 0; looked != count; ++looked) {
        const std::size_t i = (begin + looked) % count;
        const auto* const node = std::get_if<wait_node>(&slots_[i]);
        if (node == nullptr || node == offered) continue;
        if (sources_[i].lot().looks_ready(sources_[i].object())) continue;
        // Only for speed. Written only if it changes, so that setters share the cache line.
        if (looked != 0) looked_to_.store(static_cast<std::uint32_t>(i), std::memory_order_relaxed);
        return false;
    }
    return true;
}

reply multi_wait::on_wake(const wait_node* offered) noexcept {
    if (!looks_ready(offered)) return reply::declined;
    rundown_.acquire();
    return reply::undecided;
}

bool multi_wait::commit(const wait_node* offered) noexcept {
    const bool done = take_everything(offered);
    rundown_.release();  // before the waiter's release, after which the wait may be gone
    if (done) self.release(nullptr);
    return done;
}

bool multi_wait::take_everything(const wait_node* offered) noexcept {
    const signal_deferral inside;
    lock_everything();
    const bool held = hold_everything(offered);
    const bool mine = held && self.try_claim(claim::signaled);
    for (std::size_t i = 0; held && i != sources_.size(); ++i) {
        auto* const node = std::get_if<wait_node>(&slots_[i]);
        if (node == nullptr) continue;
        const detail::lot_source& how = sources_[i].lot();
        void* const object = sources_[i].object();
        if (node != offered) (mine ? how.take_held : how.unhold)(object);
        if (!mine || !node->queued) continue;
        wait_queue queue(node->key);
        (void)withdraw(queue, *node, how);
    }
    if (mine) committed_ = true;
    unlock_everything();
    return mine;
}

// Holds all sources, or none if one of them is not ready.
bool multi_wait::hold_everything(const wait_node* offered) noexcept {
    for (std::size_t i = 0; i != sources_.size(); ++i) {
        const auto* const node = std::get_if<wait_node>(&slots_[i]);
        if (node == nullptr || node == offered || sources_[i].lot().hold(sources_[i].object())) continue;
        while (i-- != 0) {
            const auto* const held = std::get_if<wait_node>(&slots_[i]);
            if (held != nullptr && held != offered) sources_[i].lot().unhold(sources_[i].object());
        }
        return false;
    }
    return true;
}

void multi_wait::lock_everything() noexcept {
    for (std::uint32_t i = 0; i != bucket_count_; ++i) the_lot->at[buckets_[i]].lock.lock();
}

void multi_wait::unlock_everything() noexcept {
    for (std::uint32_t i = 0; i != bucket_count_; ++i) the_lot->at[buckets_[i]].lock.unlock();
}

void multi_wait::arrive(std::uint32_t how_many) noexcept {
    missing_.fetch_sub(how_many, std::memory_order_release);  // [all-arrived]
    detail::full_fence();                                     // [all-check]
}

void multi_wait::add_ready_timers(std::uint32_t how_many) noexcept { arrive(how_many); }

void multi_wait::notify_timers(std::uint32_t how_many) noexcept {
    rundown_.acquire();
    arrive(how_many);
}

bool multi_wait::notify(std::uint32_t index) noexcept {
    if (!is_all()) return self.try_claim(claim::signaled, index);
    rundown_.acquire();
    arrive(1);
    return true;
}

void multi_wait::wake_notified() noexcept {
    if (!is_all()) {
        self.release(nullptr);
    } else if (looks_ready(nullptr)) {
        commit(nullptr);
    } else {
        rundown_.release();
    }
}

void satisfy_all_waiters(const wait_key& key) noexcept {
    const defer_resumes after_all;
    detail::full_fence();  // [all-check]
    queue_cursor looked(key);
    while (!looked.at_end()) {
        all_waiter* const found = locked_queue(key).find_ready_all_waiter(looked);
        if (found != nullptr) found->commit(nullptr);
    }
}

}  // namespace tocsin::core

// State
//   A member is a chooser (lot.hpp): its node stands in the queue of its source from add() to remove(), whether a
//   thread waits or not. Under a lock of its own the set has a list of marked members, which are to be looked at,
//   and the thread that sleeps in it.
//
// Invariants
//   ready_list-1  Whenever the lock of its bucket is free: a member whose source is ready is marked, or the thread that waits
//       is looking at it (and will take that lock). So a wait looks at marked members only, and costs the same
//       however many others there are.
//   ready_list-2  The set takes a source alone only for a thread that sleeps in it, which it claims in the same step: what is
//       taken is reported by that thread's wait, whatever happens to the member. With nobody asleep the member is
//       marked, and the source goes to the next in its queue, or stays ready.
//   ready_list-3  A member whose turn it was goes to the end of its queue: FIFO among all who wait for the source.
//   ready_list-4  The bucket's lock is taken before the set's, never after. So who looks at a marked member takes it off the
//       list, frees the set's lock, and takes the bucket's: meanwhile the member is `watched`, and exists: whoever
//       removes it leaves it to the looker. Its source need not exist any more: that is known by its node, which is
//       in the queue no more.
//   ready_list-5  A sleeper is known to the set from begin_sleep() until it is claimed or end_sleep(), and exists as long: one
//       that is claimed cannot go on before it is released (waiter-2 in waiter.cpp).
//
// No lost wake-up: a set() offers the source under the bucket's lock. If it finds a sleeper, it claims it. If not, it
// marks; begin_sleep(), under the same lock of the set, then finds the mark and doesn't sleep, or came before and
// is found asleep. A sleeper that has been claimed by something else (deadline, stop, another member) is awake,
// and the mark stays for the next wait. A look that comes between the mark and the step that makes the source ready
// waits for the bucket's lock, under which both are done. A look that finds it not ready leaves it unmarked, under
// that lock: who makes it ready next comes later, and marks it again.
//
// Memory order: the locks' [bucket]; what came before a set() is visible by [event-publish] to who finds its source
// ready, and by [release] to who is released for it.
//
// A manual-reset event that stays set is marked as long: each wait reports it. So is one that is set and reset while
// a thread sleeps: that thread is released in the step that sets it.
//
// Checked by: tests/model/wait_set_model_test.cpp (P12), tests/unit/wait_set_test.cpp, tests/stress/wait_set_stress_test.cpp.
#include "core/wait/ready_list.hpp"

#include <algorithm>
#include <limits>

namespace tocsin::core {

member::member(ready_list& list, const source& what, std::uint64_t tag) noexcept
    : list_(list),
      source_(what),
      node_({what.object(), static_cast<wait_kind>(what.lot().wait_kind)}, *this),
      tag_(tag) {}

reply member::on_wake(wait_node&, bool exclusive, release_list& freed) noexcept {
    return list_.deliver(*this, exclusive, freed);
}

reply ready_list::deliver(member& which, bool exclusive, release_list& freed) noexcept {
    const guard here(*this);
    if (!exclusive) make_ready(which);  // it stays ready
    if (sleeper_ != nullptr && sleeper_->waiting.try_claim(claim::signaled)) {
        release_sleeper(freed, &which);
        return reply::accepted;
    }
    make_ready(which);
    return reply::declined;
}

void ready_list::release_sleeper(release_list& freed, const member* by) noexcept {
    if (by != nullptr) {
        sleeper_->by = by;
        sleeper_->tag = by->tag_;
    }
    freed.append(sleeper_->node);
    sleeper_ = nullptr;
}

void ready_list::make_ready(member& which) noexcept {
    if (which.ready_) return;
    which.ready_ = true;
    ready_.append(which);
    ++ready_count_;
}

void ready_list::clear_ready(member& which) noexcept {
    if (!which.ready_) return;
    which.ready_ = false;
    ready_.remove(which);
    --ready_count_;
}

void ready_list::add(member& joining) noexcept {
    const detail::lot_source& how = joining.source_.lot();
    void* const object = joining.source_.object();
    bool ready = false;
    {
        locked_queue queue(joining.node_.key);
        how.park(object, true);
        queue.append(joining.node_);
        ready = how.looks_ready(object);
        if (ready) {
            const guard here(*this);
            make_ready(joining);
        }
    }
    if (ready) wake();
}

void ready_list::set_tag(member& which, std::uint64_t tag) noexcept {
    const guard here(*this);
    which.tag_ = tag;
}

void ready_list::remove(member* leaving) noexcept {
    bool examined = false;
    {
        locked_queue queue(leaving->node_.key);
        queue.remove(leaving->node_);
        if (queue.empty()) leaving->source_.lot().unpark(leaving->source_.object());
        const guard here(*this);
        clear_ready(*leaving);
        examined = leaving->being_examined_;
    }
    if (!examined) delete leaving;
}

void ready_list::wake() noexcept {
    release_list freed;
    {
        const guard here(*this);
        if (sleeper_ != nullptr && sleeper_->waiting.try_claim(claim::signaled))
            release_sleeper(freed, nullptr);
    }
    freed.wake();
}

std::size_t ready_list::take_ready(std::span<ready_item> out, const member* skipped) noexcept {
    std::size_t found = 0;
    // As many as are marked now: some will be marked once more.
    std::size_t looks = std::numeric_limits<std::size_t>::max();
    while (found != out.size()) {
        member* next = nullptr;
        {
            const guard here(*this);
            looks = std::min<std::size_t>(looks, ready_count_);
            if (looks == 0) break;
            --looks;
            next = ready_.first();
            clear_ready(*next);
            if (next == skipped) {
                make_ready(*next);
                continue;
            }
            next->being_examined_ = true;
        }
        if (examine(*next, out[found])) ++found;
    }
    return found;
}

// Takes the member's source if it is ready, and says so. It stays marked if the source stays ready.
bool ready_list::examine(member& which, ready_item& found) noexcept {
    bool ready = false;
    bool gone = false;
    {
        const wait_key key = which.node_.key;
        locked_queue queue(key);
        gone = !which.node_.queued;  // and so may its source be
        const detail::lot_source& how = which.source_.lot();
        void* const object = which.source_.object();
        // No lock is asked for in here: nobody holds the source while we have this one.
        ready = !gone && how.try_take(object);
        const bool still = !gone && how.looks_ready(object);
        const guard here(*this);
        which.being_examined_ = false;
        if (still) make_ready(which);
        found = {which.tag_, readiness::none};
    }
    if (gone) delete &which;
    return ready;
}

bool ready_list::begin_sleep(sleeper& self) noexcept {
    const guard here(*this);
    if (!ready_.empty()) return false;
    sleeper_ = &self;
    return true;
}

void ready_list::end_sleep(sleeper& self) noexcept {
    const guard here(*this);
    if (sleeper_ == &self) sleeper_ = nullptr;
}

}  // namespace tocsin::core

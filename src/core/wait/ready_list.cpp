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

member::member(ready_list& set, const source& what, std::uint64_t tag) noexcept
    : subscriber(false),
      set_(set),
      source_(what),
      place_({what.object(), static_cast<wait_kind>(what.lot().wait_kind)}, *this),
      tag_(tag) {}

subscriber::reply member::on_wake(wait_node&, bool exclusive, release_list& freed) noexcept {
    return set_.offered(*this, exclusive, freed);
}

subscriber::reply ready_list::offered(member& which, bool exclusive, release_list& freed) noexcept {
    const guard here(*this);
    if (!exclusive) mark(which);  // it stays ready
    if (sleeper_ != nullptr && sleeper_->waiting.try_claim(claim::signaled)) {
        release_sleeper(freed, &which);
        return subscriber::reply::accepted;
    }
    mark(which);
    return subscriber::reply::declined;
}

void ready_list::release_sleeper(release_list& freed, const member* by) noexcept {
    if (by != nullptr) {
        sleeper_->by = by;
        sleeper_->tag = by->tag_;
    }
    freed.append(sleeper_->place);
    sleeper_ = nullptr;
}

void ready_list::mark(member& which) noexcept {
    if (which.marked_) return;
    which.marked_ = true;
    which.next_ = nullptr;
    which.previous_ = last_;
    if (last_ != nullptr) {
        last_->next_ = &which;
    } else {
        first_ = &which;
    }
    last_ = &which;
    marked_ = marked_ + 1;
}

void ready_list::unmark(member& which) noexcept {
    if (!which.marked_) return;
    which.marked_ = false;
    if (which.previous_ != nullptr) {
        which.previous_->next_ = which.next_;
    } else {
        first_ = which.next_;
    }
    if (which.next_ != nullptr) {
        which.next_->previous_ = which.previous_;
    } else {
        last_ = which.previous_;
    }
    marked_ = marked_ - 1;
}

void ready_list::add(member& joining) noexcept {
    const detail::lot_source& how = joining.source_.lot();
    void* const object = joining.source_.object();
    bool ready = false;
    {
        locked_queue queue(joining.place_.where);
        how.park(object, true);
        queue.append(joining.place_);
        ready = how.looks_ready(object);
        if (ready) {
            const guard here(*this);
            mark(joining);
        }
    }
    if (ready) rouse();
}

void ready_list::tag(member& which, std::uint64_t tag) noexcept {
    const guard here(*this);
    which.tag_ = tag;
}

void ready_list::remove(member* leaving) noexcept {
    bool watched = false;
    {
        locked_queue queue(leaving->place_.where);
        queue.remove(leaving->place_);
        if (queue.empty()) leaving->source_.lot().unpark(leaving->source_.object());
        const guard here(*this);
        unmark(*leaving);
        watched = leaving->watched_;
    }
    if (!watched) delete leaving;
}

void ready_list::rouse() noexcept {
    release_list freed;
    {
        const guard here(*this);
        if (sleeper_ != nullptr && sleeper_->waiting.try_claim(claim::signaled))
            release_sleeper(freed, nullptr);
    }
    freed.wake();
}

std::size_t ready_list::collect(std::span<ready_item> out, const member* but) noexcept {
    std::size_t found = 0;
    // As many as are marked now: some will be marked once more.
    std::size_t looks = std::numeric_limits<std::size_t>::max();
    while (found != out.size()) {
        member* next = nullptr;
        {
            const guard here(*this);
            looks = std::min<std::size_t>(looks, marked_);
            if (looks == 0) break;
            --looks;
            next = first_;
            unmark(*next);
            if (next == but) {
                mark(*next);
                continue;
            }
            next->watched_ = true;
        }
        if (look_at(*next, out[found])) ++found;
    }
    return found;
}

// Takes the member's source if it is ready, and says so. It stays marked if the source stays ready.
bool ready_list::look_at(member& which, ready_item& found) noexcept {
    bool ready = false;
    bool gone = false;
    {
        const wait_key where = which.place_.where;
        locked_queue queue(where);
        gone = !which.place_.queued;  // and so may its source be
        const detail::lot_source& how = which.source_.lot();
        void* const object = which.source_.object();
        // No lock is asked for in here: nobody holds the source while we have this one.
        ready = !gone && how.try_take(object);
        const bool still = !gone && how.looks_ready(object);
        const guard here(*this);
        which.watched_ = false;
        if (still) mark(which);
        found = {which.tag_, readiness::none};
    }
    if (gone) delete &which;
    return ready;
}

bool ready_list::begin_sleep(sleeper& self) noexcept {
    const guard here(*this);
    if (first_ != nullptr) return false;
    sleeper_ = &self;
    return true;
}

void ready_list::end_sleep(sleeper& self) noexcept {
    const guard here(*this);
    if (sleeper_ == &self) sleeper_ = nullptr;
}

}  // namespace tocsin::core

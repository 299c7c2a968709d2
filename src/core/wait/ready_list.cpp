// State
//   A member is a subscriber (core/lot/subscriber.hpp). Its node is in the queue of its source from add() to remove(),
//   whether a thread waits or not. Under a lock of its own, a ready_list keeps the list of the members that are
//   `ready`, which means that they are to be examined, and the thread that sleeps in it.
//
// Invariants
//   ready_list-1  Whenever the lock of a member's bucket is free: if its source is ready, the member is in the list, or
//       the waiting thread is examining it (and will take that lock). So a wait looks at listed members only, and costs
//       the same however many others there are.
//       legal: a member is in the list although its source is not ready. Cost: one needless look.
//       illegal: a member's source is ready, but the member is neither in the list nor being examined.
//   ready_list-2  It takes an exclusive offer only for a thread that sleeps in it, which it claims in the same step.
//       That thread's wait reports what was taken, whatever happens to the member. If no thread sleeps, the member
//       becomes ready, and the source goes to the next waiter in its queue, or stays ready.
//   ready_list-3  A member that has accepted an offer goes to the end of its queue: FIFO among all that wait for the
//       source.
//   ready_list-4  The bucket's lock is taken before the lock of the ready_list, never after it. So a thread that
//       examines a ready member takes it off the list, frees the lock of the ready_list, and takes the bucket's. While
//       `being_examined`, the member stays allocated: remove() leaves deleting it to the thread that examines it. Its
//       source may already be destroyed; `queued == false` says so.
//   ready_list-5  The ready_list knows a sleeper from begin_sleep() until it is claimed, or until end_sleep(). The
//       sleeper exists at least as long: one that is claimed cannot continue before it is released (waiter-2 in
//       waiter.cpp).
//
// No lost wake-up: a set() offers the source under the bucket's lock. If it finds a sleeper, it claims it. If not, it
// makes the member ready. begin_sleep(), under the same lock of the ready_list, then finds that member and does not
// sleep; or it came before, and the set() found the sleeper. A sleeper that something else has claimed (deadline, stop,
// another member) is awake, and the member stays ready for the next wait. If a look comes after the member was made
// ready but before the step that makes the source ready, it waits for the bucket's lock, under which both are done. A
// look that finds the source not ready leaves the member unlisted, under that lock. Whoever makes the source ready next
// comes later, and lists the member again.
//
// Memory order: the locks' [bucket]. What came before a set() is visible to the thread that finds its source ready by
// [event-publish], and to the thread that is released for it by [release].
//
// A manual-reset event keeps its member ready as long as it is set: each wait reports it. One that is set and reset
// while a thread sleeps is reported as well: that thread is released in the step that sets it.
//
// Checked by: tests/model/wait_set_model_test.cpp (P12), wait_set_poll_model_test.cpp and mix_model_test.cpp;
// tests/unit/wait_set_test.cpp, tests/unit/publication_test.cpp, tests/stress/wait_set_stress_test.cpp.
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
    if (!exclusive) make_ready(which);  // the source stays ready
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
        how.mark_parked(object, true);
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
        if (queue.empty()) leaving->source_.lot().clear_parked(leaving->source_.object());
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
    // At most as many as are ready now, since some will become ready again.
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

// Takes the member's source if it is ready, and returns whether it was. The member stays ready if its source does.
bool ready_list::examine(member& which, ready_item& found) noexcept {
    bool ready = false;
    bool gone = false;
    {
        const wait_key key = which.node_.key;
        locked_queue queue(key);
        gone = !which.node_.queued;  // then its source may be gone as well
        const detail::lot_source& how = which.source_.lot();
        void* const object = which.source_.object();
        // try_take() takes no lock here: nobody holds the source while this thread has its bucket.
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

// SPDX-License-Identifier: Apache-2.0
// The core of wait_set: which members and timers are ready, and the thread that sleeps until one is.
//
// State
//   A source_member is a subscriber (core/lot/subscriber.hpp). Its node is in the queue of its source from add() to
//   remove(), whether a thread waits or not.
//   A ready_list has a lock of its own. This lock guards two things. One is the list of the members that are `ready`,
//   which means that they are to be examined. The other is which thread sleeps in the ready_list.
//   The same lock guards the timers, and two queues (timer_queue.hpp) of the timers that are armed and not ready. One
//   queue is for the steady clock, the other for the system clock. A timer is idle, or armed in one of these queues, or
//   ready. It becomes ready when the waiting thread finds that it is due.
//
// Invariants
//   ready_list-1  Whenever the lock of a member's bucket is free and the member's source is ready, the member is in the
//       list, or the waiting thread is examining it (and will take that lock). So a wait looks only at listed members,
//       and costs the same however many other members there are.
//       legal: a member is in the list although its source is not ready. Cost: one needless look.
//       illegal: a member's source is ready, but the member is neither in the list nor being examined.
//   ready_list-2  A ready_list accepts an exclusive offer only for a thread that sleeps in it. The ready_list claims
//       that thread in the same step. The thread's wait reports what was taken, whatever happens to the member. If no
//       thread sleeps, the member becomes ready and declines the offer. The source then goes to the next waiter in its
//       queue, or stays ready.
//   ready_list-3  A member that has accepted an offer goes to the end of its queue. So the source is handed out in FIFO
//       order among all that wait for it.
//   ready_list-4  A thread that needs the bucket's lock and the lock of the ready_list takes the bucket's lock first.
//       So a thread that examines a ready member takes the member off the list, frees the lock of the ready_list, and
//       then takes the bucket's lock. While a member is `being_examined`, it stays allocated: remove() leaves it to the
//       examining thread to delete the member. The member's source may already be destroyed. In that case, `queued` is
//       false in the member's node.
//   ready_list-5  The ready_list knows a sleeper from begin_sleep() until the sleeper is claimed, or until end_sleep().
//       The sleeper exists at least as long: one that is claimed cannot continue before it is released (waiter-2 in
//       waiter.cpp).
//   ready_list-6  Every change of a timer is one step under the lock: it is armed, moved, made ready, reported or
//       removed. A reported timer is idle, or, if it repeats, armed for its next tick. A ready timer that is armed or
//       moved leaves the list. So each arming is reported at most once, and never after the timer was moved or removed.
//   ready_list-7  A sleeper sleeps at most until its `until`. While the ready_list knows a sleeper, no armed timer
//       needs to end the sleep earlier:
//       - Of the armed timers on the clock of `until`, none is due before `until`.
//       - Of the armed timers on another clock, none is due before `until`, by the clocks as they stood when the sleep
//         began. This also holds for a timer that was armed during the sleep.
//       If a thread arms or moves a timer and this would break the invariant, the thread claims the sleeper in the same
//       step, and the sleeper looks again. The thread can't compare a timer on another clock with `until`. So it claims
//       the sleeper whenever such a timer becomes the first on that clock. (If the timer that `until` comes from is
//       moved to a later time or removed, the sleeper wakes for nothing, and looks again. So it does, once a second, if
//       the wait's own deadline is on a clock of the user.)
//   ready_list-8  A ready_list may have a view, for a loop that polls a flag instead of sleeping here. Whenever the
//       lock is free, one of four things is true. A wait is under way, at the end of which the thread arms the view's
//       alert (alert.hpp) or raises the flag. Or the flag is up. Or a thread is about to raise it. Or the alert is
//       armed, no member is in the list, and no armed timer is due before the view's deadline of the timer's clock.
//       A loop may report only changes. Such a loop sleeps only after a wait that found nothing. So the end of such a
//       wait lowers the flag even if the flag is to stay up, and raises it again.
//       legal: the flag is up although nothing is ready. Cost: a needless wait, which lowers it.
//       illegal: a member is in the list and the flag is down, but no thread is about to raise it and none waits.
//       illegal: a member is in the list, and the last wait found nothing, but no thread has raised the flag since that
//       wait's last look, and none is about to.
//
// No lost wake-up: a set() offers the source under the bucket's lock. If it finds a sleeper, it claims the sleeper. If
// not, it makes the member ready. If begin_sleep() takes the lock of the ready_list after the set(), it finds that
// member, and does not sleep. If begin_sleep() took that lock first, the set() found the sleeper.
// If something else has claimed the sleeper (a deadline, a stop, another member), its thread is awake. The member stays
// ready for the next wait.
// A set() may make the member ready a moment before it makes the source ready. It does both under the bucket's lock. So
// a thread that examines the member in between waits for that lock, and then finds the source ready.
// A thread that examines a member and finds its source not ready leaves the member off the list, under the bucket's
// lock. Whoever makes the source ready next comes later, and lists the member again.
//
// Timers: if a timer is due, begin_sleep() makes it ready, and the thread does not sleep. If none is due, the thread
// sleeps at most until the earliest deadline of the armed timers (ready_list-7). So a timer that is armed before
// begin_sleep() ends the sleep in time. A thread that arms a timer afterwards finds the sleeper, and claims it if
// ready_list-7 requires that.
//
// View: a member that joins the list finds the alert armed or not, both under the lock. If the alert was armed, the
// flag goes up. If it was not, ready_list-8 holds already, unless a wait is under way. At its end, arm_view() lowers
// the flag before it takes the lock and looks at the list. A member that joined before that look makes arm_view() raise
// the flag again. One that joins later finds the alert armed. While a wait is under way, members may join the list
// without an alert, because its arm_view() is still to come. So a set() that claims the sleeper alerts nobody. A view
// declines every exclusive offer: the source goes to the next waiter in its queue, or stays ready.
//
// A timer becomes ready only when a wait looks. It goes behind the members that are ready already. A wait makes at most
// as many timers ready as its caller has room for. So the caller chooses for how many steps the wait holds the lock.
//
// A thread that looks before it sleeps (wait_set.cpp) reads the number of ready members without the lock. That number
// decides only whether the thread takes the lock and looks. Whatever number it reads, begin_sleep() finds what is
// ready.
//
// Memory order: the bucket's lock and the lock of the ready_list order what they guard ([bucket]). What came before a
// set() is visible to the thread that finds the event ready, by [event-publish] (event.cpp). It is also visible to the
// thread that is released for the event, by [release] (waiter.cpp).
//
// A manual-reset event keeps its member ready as long as the event is set, so each wait reports it. If the event is set
// and reset again while a thread sleeps, that thread's wait still reports the event, because the set() claims the
// thread in the same step.
//
// Checked by: tests/model/wait_set_model_test.cpp (P12 of docs/proofs.md), wait_set_timer_model_test.cpp,
// wait_set_poll_model_test.cpp, wait_set_view_model_test.cpp and mix_model_test.cpp; tests/unit/wait_set_test.cpp,
// tests/unit/wait_set_view_test.cpp, tests/unit/wait_timer_test.cpp, tests/unit/publication_test.cpp,
// tests/stress/wait_set_stress_test.cpp.
#include "core/wait/ready_list.hpp"

#include "core/lot/enrol.hpp"
#include "core/sync/happens_before.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>

namespace tocsin::core {

source_member::source_member(ready_list& list, const source& what, std::uint64_t tag) noexcept
    : member(kind::source, tag),
      list_(list),
      source_(what.lot()),
      node_({what.object(), static_cast<wait_kind>(what.lot().wait_kind)}, *this) {}

reply source_member::on_wake(wait_node&, bool exclusive, release_list& freed) noexcept {
    return list_.deliver(*this, exclusive, freed);
}

bool source_member::sleeps(wait_origin& since) const noexcept {
    const ready_list::guard here(list_);
    if (list_.sleeper_ == nullptr) return false;
    since = list_.sleeper_->node.origin;
    return true;
}

reply ready_list::deliver(source_member& which, bool exclusive, release_list& freed) noexcept {
    const guard here(*this);
    if (!exclusive) make_ready(which);  // the source stays ready
    if (sleeper_ != nullptr && sleeper_->waiting.try_claim(claim::signaled)) {
        release_sleeper(freed, &which);
        return reply::accepted;
    }
    alert_view(freed);
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
    set_ready_count(ready_count() + 1);
}

void ready_list::clear_ready(member& which) noexcept {
    if (!which.ready_) return;
    which.ready_ = false;
    ready_.remove(which);
    set_ready_count(ready_count() - 1);
}

std::size_t ready_list::ready_count() const noexcept {
    return ready_count_.load(std::memory_order_relaxed);  // no order: under the lock
}

void ready_list::set_ready_count(std::size_t count) noexcept {
    ready_count_.store(count, std::memory_order_relaxed);  // no order: under the lock; else a guess
}

void ready_list::add(source_member& joining) noexcept {
    const detail::lot_source& how = joining.source_;
    void* const object = joining.object();
    bool ready = false;
    {
        locked_queue queue(joining.node_.key);
        enrol(queue, joining.node_, how);
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

void ready_list::remove(source_member* leaving) noexcept {
    bool examined = false;
    {
        locked_queue queue(leaving->node_.key);
        (void)withdraw(queue, leaving->node_, leaving->source_);
        const guard here(*this);
        clear_ready(*leaving);
        examined = leaving->being_examined_;
    }
    if (!examined) delete leaving;
}

// Claims the thread that sleeps, if there is one, so that it looks again.
void ready_list::claim_sleeper(release_list& freed) noexcept {
    if (sleeper_ != nullptr && sleeper_->waiting.try_claim(claim::signaled)) release_sleeper(freed, nullptr);
}

void ready_list::wake() noexcept {
    release_list freed;
    {
        const guard here(*this);
        claim_sleeper(freed);
        alert_view(freed);
    }
    freed.wake();
}

void ready_list::show_to(view& from_now_on) noexcept {
    const guard here(*this);
    view_ = &from_now_on;
}

bool ready_list::arm_view(bool found_any) noexcept {
    view* to = nullptr;
    {
        const guard here(*this);
        to = view_;
        // Otherwise the flag is up, or will be, and a loop that reports only changes waits again.
        if (found_any && !ready_.empty() && !to->flag.is_armed()) return false;
    }
    to->flag.lower();
    {
        const guard here(*this);
        make_due_ready(1);
        to->flag.arm(ready_.empty());
        if (to->flag.is_armed()) {
            to->steady = steady_timers_.next();
            to->system = system_timers_.next();
            return true;
        }
    }
    to->flag.raise();
    return false;
}

timer_queue& ready_list::queue_for(const deadline& when) noexcept {
    return timer_queue::clock_of(when) == deadline::clock::system ? system_timers_ : steady_timers_;
}

void ready_list::add(timer_member& joining, std::uint64_t tag) noexcept {
    {
        const guard here(*this);
        joining.tag_ = tag;
        joining.list_ = this;
        joining.added_by_ = process_stamp();
        timers_.append(joining);
    }
    const deadline when = joining.when_;
    if (!when.is_never()) arm(joining, when, joining.period_);
}

void ready_list::arm(timer_member& which, const deadline& when, std::int64_t period) noexcept {
    release_list freed;
    {
        const guard here(*this);
        clear_ready(which);
        timer_queue& queue = queue_for(when);
        which.period_ = period;
        if (when.is_never() || which.queue_ != &queue) disarm(which);
        if (!when.is_never()) {
            which.queue_ = &queue;
            queue.move(which, when);
            if (sleeper_ != nullptr && queue.is_before(which, sleeper_->until)) claim_sleeper(freed);
            if (view_ != nullptr &&
                queue.is_before(which, &queue == &steady_timers_ ? view_->steady : view_->system))
                alert_view(freed);
        }
    }
    freed.wake();
}

bool ready_list::is_armed(const timer_member& which) noexcept {
    const guard here(*this);
    return which.ready_ || timer_queue::is_queued(which);
}

std::uint32_t ready_list::ticks(const timer_member& which) noexcept {
    const guard here(*this);
    return which.ticks_;
}

// Called under the lock when a wait reports the timer. If the timer repeats, arms it for its next tick. No thread
// sleeps here now, because only the waiting thread reports.
void ready_list::report(timer_member& which) noexcept {
    which.ticks_ = 1;
    if (which.period_ == 0) return;
    deadline next = which.when_;
    const std::uint64_t ticks = detail::take_ticks(next, which.period_);
    which.ticks_ =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(ticks, std::numeric_limits<std::uint32_t>::max()));
    if (!next.is_never()) which.queue_->insert(which, next);
}

void ready_list::disarm(timer_member& which) noexcept {
    clear_ready(which);
    if (which.queue_ != nullptr) which.queue_->remove(which);
    which.queue_ = nullptr;
    which.when_ = deadline::never();
}

void ready_list::forget(timer_member& leaving) noexcept {
    disarm(leaving);
    timers_.remove(leaving);
    leaving.list_ = nullptr;
}

void ready_list::remove(timer_member& leaving) noexcept {
    const guard here(*this);
    forget(leaving);
}

void ready_list::remove_timers() noexcept {
    const guard here(*this);
    while (timer_member* const each = timers_.first()) forget(*each);
}

void ready_list::make_due_ready(std::size_t max) noexcept {
    for (timer_queue* const queue : {&steady_timers_, &system_timers_}) {
        for (; max != 0; --max) {
            timer_entry* const due = queue->take_due();
            if (due == nullptr) break;
            make_ready(static_cast<timer_member&>(*due));
        }
    }
}

std::size_t ready_list::take_ready(std::span<ready_item> out, const member* skipped) noexcept {
    std::size_t found = 0;
    // Looks at no more members than are ready now, since some of them become ready again.
    std::size_t looks = std::numeric_limits<std::size_t>::max();
    while (found != out.size()) {
        source_member* examined = nullptr;
        {
            const guard here(*this);
            if (looks == std::numeric_limits<std::size_t>::max()) make_due_ready(out.size());
            looks = std::min(looks, ready_count());
            if (looks == 0) break;
            --looks;
            member* const next = ready_.first();
            clear_ready(*next);
            if (next == skipped) {
                make_ready(*next);
                continue;
            }
            if (next->what_ == member::kind::timer) {
                report(static_cast<timer_member&>(*next));
                out[found++] = {next->tag_, readiness::none};
                continue;
            }
            examined = static_cast<source_member*>(next);
            examined->being_examined_ = true;
        }
        if (examine(*examined, out[found])) ++found;
    }
    return found;
}

// Takes the member's source if it is ready, and returns whether it was. The member stays ready if its source does.
bool ready_list::examine(source_member& which, ready_item& found) noexcept {
    bool ready = false;
    bool gone = false;
    {
        const wait_key key = which.node_.key;
        locked_queue queue(key);
        gone = !which.node_.queued;  // then its source may be gone, too
        const detail::lot_source& how = which.source_;
        void* const object = which.object();
        // try_take() takes no lock here: no thread holds the source while this thread has its bucket's lock.
        ready = !gone && how.try_take(object);
        if (ready) order::after(object);
        const bool still = !gone && how.looks_ready(object);
        const guard here(*this);
        which.being_examined_ = false;
        if (still) make_ready(which);
        found = {which.tag_, readiness::none};
    }
    if (gone) delete &which;
    return ready;
}

bool ready_list::begin_sleep(sleeper& self, const deadline& until) noexcept {
    const guard here(*this);
    make_due_ready(1);
    if (!ready_.empty()) return false;
    const bool may_jump =
        until.which() == deadline::clock::other;  // then the sleeper looks at it again in time
    self.until = may_jump ? deadline(std::chrono::nanoseconds(until.longest_sleep())) : until;
    self.until_timer = may_jump;
    for (timer_queue* const queue : {&steady_timers_, &system_timers_}) {
        const deadline next = queue->next();
        if (next.is_never() || next.remaining() >= self.until.remaining()) continue;
        self.until = next;
        self.until_timer = true;
    }
    sleeper_ = &self;
    return true;
}

void ready_list::end_sleep(sleeper& self) noexcept {
    const guard here(*this);
    if (sleeper_ == &self) sleeper_ = nullptr;
}

}  // namespace tocsin::core

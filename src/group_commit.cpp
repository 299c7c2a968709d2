// SPDX-License-Identifier: Apache-2.0
// Group commit: a queue of submitters, one of which leads at a time.
//
// State
//   led       On while a thread leads: it gathers, flushes, or has been told to lead and is about to wake up.
//   queue     The members that wait to be taken into a group, oldest first. A member lives on its submitter's stack and
//             has a waiter that the thread sleeps on (group_commit.hpp).
//   gatherer  The waiter on which a leader sleeps while its group gathers; else null.
//   forming   On while the leader has not taken its group, so that threads that join now may still be its followers.
//   words     The words that members share (core/lot/shared_word.cpp).
//   credit    Whether followers yield before they sleep (core/wait/commit_credit.hpp). No invariant needs it.
//   A group under way has no state here. It is a list of members, the leader first, which only the leader uses.
//
// Invariants
//   group_commit-1  led, forming, queue, words, gatherer and the counts are touched only under the lock. (As for
//       `words`, the lock guards only the choice of a word. Without the lock, threads sleep on a word, wake its
//       sleepers, and take sharers off its count. A follower that has yielded also changes the credit without the
//       lock.) The lock is never held during a flush, a yield, a sleep, a release or a system call to wake. (For how
//       many steps it is held: below.)
//   group_commit-2  At most one thread leads at a time. Whenever the lock is free and the queue is not empty, one
//       thread leads. So every member that waits has a leader that will take it, and no two threads flush at the same
//       time.
//   group_commit-3  A member leaves the queue in one of three ways: a leader takes it into its group, an outgoing
//       leader takes it to be the next leader, or it withdraws. A member that may withdraw (at a deadline or a stop) is
//       claimed when it is taken. From then on, its sleep can end only by its release. If that claim fails, the member
//       is withdrawing: the leader removes it from the queue, and its own thread does the rest. So every submission is
//       either withdrawn or flushed, never both and never neither. (A flush may return members to the queue:
//       group_commit-7.)
//   group_commit-4  A member that was taken is released exactly once: either after the flush that covers it, or when it
//       becomes the leader. Its thread does not continue before that. So nobody is told of a flush that does not cover
//       its submission, and the members of a group under way still exist.
//   group_commit-5  Once a leader has released a member, or a relay's chain with the member in it (core/lot/relay.cpp),
//       the leader does not touch that member. No follower ever touches anything that belongs to its leader.
//   group_commit-6  A follower's `error` is written before the follower is released, and only by the leader of its
//       group.
//   group_commit-7  A flush may leave members to the next group. The critical section that ends the group puts these
//       members back at the front of the queue, in their order, and then chooses the next leader. They are marked
//       `taken`: each has been claimed, or its wait has no other way to end. So a marked member counts as one that may
//       not withdraw, and its next taker does not claim it again.
//   group_commit-8  A member that shares a word is released only through a release_list (core/lot/relay.cpp), as the
//       next leader or with its group. The releaser marks the member, and then wakes all who sleep on its word. The
//       releaser is in its own submit() until it has made that call and has taken the members off the word's count
//       (relay-2). So the engine and its words still exist.
//
// No lost wake-up: a thread joins under the same lock under which a leader looks at the queue. A thread that joins
// behind a leader has seen `led` on. So that leader's last look at the queue is still to come. If the leader has not
// taken the member into its group before that look, it then makes the oldest member of the queue lead. This next leader
// then looks at the queue, too (group_commit-2). If a member is released before its thread sleeps, the sleep ends at
// once (waiter.cpp). The thread that makes a group full notices this under the lock, and claims the gatherer there. If
// there is no gatherer, the leader looks at the group's size under the lock before it sleeps, or does not gather (any
// more). A thread that has yielded then sleeps as if it had not yielded, because the sleep itself checks whether the
// member has been released.
//
// Memory order
//   [bucket]   The tag of any futex_lock; here, of this group_commit's lock. What a submitter did before joining is
//              visible to the flush that takes its member, and what one flush did is visible to the next leader.
//   [release]  What the flush did is visible to the followers when they are released, also along a relay's chain
//              (waiter.cpp).
//
// How long a leader is busy after its flush: it releases its followers as one chain (core/lot/relay.cpp). If few
// members are waiting by then, the next leader is the last in this chain. Otherwise the leader wakes the next leader
// first. If the chain has at most four threads, the leader wakes them all, by one call for those that share a word. If
// it has more, the leader wakes only the delegate of the first batch, however many batches there are. That thread wakes
// the sharers of its batch by one call (shared_word.cpp). (On a machine with many processors, the leader may wake a few
// threads if members with stop tokens break up the batches.) If the sharers' delegate has withdrawn, leads, or is not
// asleep yet, the leader may have to make that call itself.
// How long the lock is held: taking a group is one step if nobody in the queue may withdraw and the whole queue is
// taken. Otherwise the leader takes the members one by one, and claims them where necessary, at one step each. After
// the flush, the leader visits each member that the flush has left to the next group and, if the flush has failed, each
// of its followers. It makes these visits without the lock.
//
// Checked by: tests/model/group_commit_model_test.cpp (P14 of docs/proofs.md), proofs/promela/group_commit.pml,
// tests/unit/group_commit_test.cpp, tests/stress/group_commit_stress_test.cpp, tests/internal/commit_credit_test.cpp.
#include "group_commit.hpp"

#include "core/lot/relay.hpp"
#include "core/sync/counters.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/happens_before.hpp"
#include "core/sync/probe.hpp"
#include "core/sync/user_call_scope.hpp"
#include "core/wait/commit_credit.hpp"
#include "core/wait/diagnosed_wait.hpp"
#include "core/wait/source_list.hpp"
#include "platform/system/continue_cancellation.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/sanitizer.hpp>
#include <tocsin/group_commit.hpp>

#include <algorithm>
#include <bit>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace tocsin::detail {
using std::chrono::steady_clock;

namespace {

// Marks that this thread is in a flush; flushes may be nested. Checked builds use the mark to find a flush that submits
// to its own group_commit.
#if TOCSIN_CHECKED
class own_flush {
public:
    explicit own_flush(const void* whose) noexcept : inside_(core::user_call::flush, whose) {}
    static bool is_of(const void* whose) noexcept {
        return core::user_call_scope::is_inside(core::user_call::flush, whose);
    }

private:
    const core::user_call_scope inside_;
};
#else
struct own_flush {
    explicit own_flush(const void*) noexcept {}
    static constexpr bool is_of(const void*) noexcept { return false; }
};
#endif

// Releases the member that leads next. If it shares a word, the others on this word wake up, too, and sleep again.
void release_alone(member& one) noexcept {
    core::node_list only;
    only.append(one);
    core::release_list(std::move(only), nullptr, false).wake();
}

deadline end_of_gathering(steady_clock::time_point from, std::chrono::nanoseconds longest) noexcept {
    return longest >= steady_clock::time_point::max() - from ? deadline::never() : deadline(from + longest);
}

// ThreadSanitizer does not see the reference count of an exception, which is in the standard library. It reports a race
// between the thread that drops the last reference and all threads that read the exception. So under
// ThreadSanitizer, the exception's memory is never freed.
void keep_for_the_thread_sanitizer(const std::exception_ptr& error) {
    if (core::order::is_watched()) new std::exception_ptr(error);
}

}  // namespace

submission* next_submission(const submission* before) noexcept {
    return member_of(core::node_list::next(*static_cast<const member*>(before)));
}

void leave_from(flushed_group& group, const submission* left) {
    if (left == group.first) {
        detail::throw_or_die(
            std::invalid_argument("tocsin::commit_group: a flush must cover at least one submission"));
    }
    std::size_t count = 0;
    for (const submission* each = group.first; each != left; each = next_submission(each), ++count) {
        if (each == group.end) return;
    }
    group.end = const_cast<submission*>(left);
    group.count = count;
}

flusher::~flusher() = default;

struct commit_engine::state {
    state(std::unique_ptr<flusher> its_flush, const group_commit_options& its_options)
        : flush(std::move(its_flush)), options(its_options) {}

    bool join_or_lead(member& self) noexcept;
    bool lead_if_nobody_does() noexcept {
        const std::lock_guard held(lock);
        return becomes_leader();
    }
    // Under the lock.
    bool becomes_leader() noexcept {
        if (led) return false;
        led = true;
        forming = true;
        return true;
    }
    void yield_until_released(const member& self, const deadline& until) noexcept;
    void withdraw(member& self) noexcept;
    commit_status lead(member& self, const wait_options& how_long);
    core::claim gather(member& self, const wait_options& how_long) noexcept;
    group take_group(member& self) noexcept;
    void run(member& self, group all);
    static group take_left(group& all, const flushed_group& covered) noexcept;
    void fail(member& self, const std::exception_ptr& error) noexcept;
    void settle(member& self, group& all, group left, bool failed, steady_clock::time_point begin) noexcept;
    void pass_on() noexcept;
    member* next_leader() noexcept;

    const std::unique_ptr<flusher> flush;
    const group_commit_options options;
    const core::process_stamp process;

    mutable core::futex_lock lock;
    plain<bool> led{false};
    plain<bool> forming{false};
    member_queue queue;
    plain<core::waiter*> gatherer{nullptr};
    group_commit_statistics counts;
    shared_words words;
    core::commit_credit credit;
};

commit_engine::commit_engine(std::unique_ptr<flusher> flush, const group_commit_options& options)
    : state_(std::make_unique<state>(std::move(flush), options)) {
    if (options.largest_group == 0) {
        detail::throw_or_die(
            std::invalid_argument("tocsin::group_commit: the largest group must be at least 1"));
    }
}

commit_engine::~commit_engine() {
    if (!state_->process.is_of_this_process()) return;
    {
        const std::lock_guard held(state_->lock);
        if (!state_->led && !state_->words.are_used()) return;
    }
    if (platform::is_exiting()) {
        // exit() destroys a static object, and nobody can stop these threads before.
        [[maybe_unused]] const state* const kept = state_.release();
    } else if (TOCSIN_CHECKED != 0) {
        platform::die("tocsin: group_commit destroyed while threads submit to it\n");
    }
}

commit_status commit_engine::submit(const volatile void* object, const limits& how) {
    const wait_options options = options_of(how);
    if (own_flush::is_of(state_.get())) {
        platform::die(
            "tocsin: group_commit: a flush submits to its own group_commit, and would wait for itself\n");
    }
    core::order::before(state_.get());
    if (const core::claim ended = core::ended_before_wait(options); ended != core::claim::open) {
        // As other waits take what is ready although their deadline has passed, this one flushes if nobody leads.
        const bool is_stopped = options.stop != nullptr && options.stop->stop_requested();
        if (is_stopped || !state_->lead_if_nobody_does())
            return core::status_from(ended, commit_status::committed);
        member self(object, options);
        state_->run(self, state_->take_group(self));
        return commit_status::committed;
    }
    member self(object, options);
    if (!state_->join_or_lead(self)) {
        if (self.yields) state_->yield_until_released(self, options.until);
        core::diagnosed_here shown({"group_commit", this}, self.sleeper, core::wait_origin::here());
        const core::claim ended = core::sleep(self.sleeper, options);
        shown.leave();
        if (ended != core::claim::signaled) {
            state_->withdraw(self);
            return core::status_from(ended, commit_status::committed);
        }
        if (!self.leads) {
            if (self.error != nullptr) std::rethrow_exception(self.error);
            return commit_status::committed;
        }
    }
    return state_->lead(self, options);
}

group_commit_statistics commit_engine::statistics() const noexcept {
    const std::lock_guard held(state_->lock);
    group_commit_statistics now = state_->counts;
    now.waiting = state_->queue.size();
    return now;
}

// Returns true if the caller leads.
bool commit_engine::state::join_or_lead(member& self) noexcept {
    core::waiter* full = nullptr;
    (void)platform::thread_urgency(self.joined.time_since_epoch().count());
    {
        const std::lock_guard held(lock);
        if (becomes_leader()) return true;
        words.choose(self, (queue.size() + (forming ? 1 : 0)) % options.largest_group);
        queue.append(self);
        self.yields = self.adaptive && credit.allows();
        if (gatherer != nullptr && queue.size() + 1 >= options.largest_group) {
            if (gatherer->try_claim(core::claim::signaled)) full = gatherer;
            gatherer = nullptr;
        }
    }
    if (full != nullptr) full->release(nullptr);
    return false;
}

// Yields a few times at most.
void commit_engine::state::yield_until_released(const member& self, const deadline& until) noexcept {
    for (unsigned yields = 0; yields != core::commit_credit::max_yields && !self.sleeper.is_released();
         ++yields) {
        if (until.has_passed()) return;
        platform::yield_thread();
    }
    const bool released = self.sleeper.is_released();
    if (released) core::count(core::counter::yielded);
    credit.learn(released);
}

void commit_engine::state::withdraw(member& self) noexcept {
    const std::lock_guard held(lock);
    if (self.queued) queue.remove(self);
    if (core::is_sharer(&self)) self.sleeper.shared().leave_batch(1);  // shared_word-5
    ++counts.withdrawn;
}

commit_status commit_engine::state::lead(member& self, const wait_options& how_long) {
    if (const core::claim how = gather(self, how_long); how != core::claim::signaled) {
        pass_on();
        return core::status_from(how, commit_status::committed);
    }
    run(self, take_group(self));
    return commit_status::committed;
}

// Lets the group gather for as long as the options say. After any result but `signaled`, the leader withdraws.
core::claim commit_engine::state::gather(member& self, const wait_options& how_long) noexcept {
    if (options.longest_gathering <= std::chrono::nanoseconds(0) || self.taken) return core::claim::signaled;
    const deadline end = end_of_gathering(self.joined, options.longest_gathering);
    if (end.has_passed()) return core::claim::signaled;
    const tocsin::source timer(end);
    const core::latest_end first({&timer, 1}, how_long.until);
    core::waiter pause;
    {
        const std::lock_guard held(lock);
        if (queue.size() + 1 >= options.largest_group) return core::claim::signaled;
        gatherer = &pause;
    }
    const core::claim how = core::sleep(pause, {first.when(), how_long.stop, {}});
    if (how == core::claim::signaled) return how;
    {
        const std::lock_guard held(lock);
        gatherer = nullptr;
    }
    const bool is_over = how == core::claim::timed_out && first.timer_that_passed() != core::multi_wait::none;
    return is_over ? core::claim::signaled : how;
}

group commit_engine::state::take_group(member& self) noexcept {
    group taken;
    {
        const std::lock_guard held(lock);
        taken = queue.take(options.largest_group - 1);
        forming = false;
    }
    taken.members.insert_after(nullptr, self);
    ++taken.size;
    return taken;
}

// Flushes for the group that `self` leads, and tells the members the outcome.
void commit_engine::state::run(member& self, group all) {
    const auto begin = steady_clock::now();
    TOCSIN_PROBE(flush, this, all.size);
    flushed_group covered{&self, nullptr, all.size};
    std::exception_ptr error;
    TOCSIN_TRY {
        const own_flush mark(this);
        core::order::after(this);
        flush->flush(covered);
    }
    TOCSIN_CATCH(...) {
        error = std::current_exception();
        if (error == nullptr) {
            // The thread was cancelled. It unwinds with something that is no C++ exception, and must continue to do
            // so. The other members are told of a failure like any other.
            group left = take_left(all, covered);
            fail(self, std::make_exception_ptr(std::runtime_error("tocsin::group_commit: flush cancelled")));
            settle(self, all, std::move(left), true, begin);
            platform::continue_cancellation();
        }
    }
    group left = take_left(all, covered);
    if (error != nullptr) fail(self, error);
    settle(self, all, std::move(left), error != nullptr, begin);
    if (error != nullptr) std::rethrow_exception(error);
}

// Takes out the members that the flush has left to the next group (group_commit-7).
group commit_engine::state::take_left(group& all, const flushed_group& covered) noexcept {
    group left;
    if (covered.end == nullptr) return left;
    left.size = all.size - covered.count;
    all.size = covered.count;
    left.members = all.members.take_from(*static_cast<member*>(covered.end));
    for (core::wait_node* each = left.members.first(); each != nullptr; each = core::node_list::next(*each))
        member_of(each)->taken = true;
    return left;
}

// Gives the followers their group's exception (group_commit-6).
void commit_engine::state::fail(member& self, const std::exception_ptr& error) noexcept {
    keep_for_the_thread_sanitizer(error);
    for (core::wait_node* each = core::node_list::next(self); each != nullptr;
         each = core::node_list::next(*each))
        member_of(each)->error = error;
}

// Ends a group after its flush. The next leader is released first, so that it flushes while this group is still waking
// up. But if few members are waiting by then, the next leader is released last, behind this group in the same chain.
// Then the members of this group that submit again at once join the next leader's group. If the next leader were
// released first, it would flush for few members. The others would have to wait for that flush, again and again.
void commit_engine::state::settle(member& self, group& all, group left, bool failed,
                                  steady_clock::time_point begin) noexcept {
    core::order::before(this);
    const auto end = steady_clock::now();
    TOCSIN_PROBE(group_commit, this, all.size, failed, (end - begin).count(), (begin - self.joined).count());
    member* next;
    {
        const std::lock_guard held(lock);
        ++counts.groups;
        counts.failed += failed ? 1 : 0;
        counts.submissions += all.size;
        counts.largest_group = std::max(counts.largest_group, all.size);
        counts.gathering += begin - self.joined;
        counts.flushing += end - begin;
        credit.learn_flush(end - begin);
        ++counts.sizes[std::min<std::size_t>(std::bit_width(all.size) - 1, counts.sizes.size() - 1)];
        queue.put_back(std::move(left));
        next = next_leader();
        if (next != nullptr && 2 * (queue.size() + 1) < all.size) {
            all.members.append(*std::exchange(next, nullptr));
            all.differs = true;  // perhaps
        }
    }
    if (next != nullptr) release_alone(*next);
    all.members.remove(self);
    core::release_list(std::move(all.members), nullptr, all.differs).wake();
}

// Called by a leader that withdraws before it has taken a group.
void commit_engine::state::pass_on() noexcept {
    member* next;
    {
        const std::lock_guard held(lock);
        ++counts.withdrawn;
        next = next_leader();
    }
    if (next != nullptr) release_alone(*next);
}

// Called under the lock. Returns the member that leads next; the caller must release it. Returns null if nobody leads
// from now on (group_commit-2).
member* commit_engine::state::next_leader() noexcept {
    member* const next = queue.take_first();
    if (next != nullptr) {
        next->leads = true;
        forming = true;
    } else {
        led = false;
    }
    return next;
}

}  // namespace tocsin::detail

// SPDX-License-Identifier: Apache-2.0
// A condition is a queue in the lot, and a word that says whether the queue has nodes.
//
// State: the word is one of these.
//   none         0: nobody is queued.
//   any_lock     1: threads are queued, and nothing is known about their locks.
//   a number     Threads are queued, all by condition_wait(). Each of them joined the queue while it held the plain
//                mutex with this number, and then gives that mutex up. (Plain means that only one thread at a time can
//                hold it, and only once: is_plain_mutex.)
//
// Invariants
//   condition-1  The word changes only under the lock of the condition's bucket. Whenever that lock is free, the word
//       is `none` if and only if the queue is empty. (In the child of a fork, the queue may be empty although the word
//       is not `none`. The next wait puts the word right.)
//   condition-2  A thread queues its node before it gives up the user's lock, and takes that lock back after its node
//       has left the queue.
//   condition-3  A notification takes nodes off the queue in one step, under the bucket's lock: either all nodes, or
//       the oldest node whose wait has not ended otherwise and all nodes in front of it, whose waits have ended.
//   condition-4  A notification does not touch the condition after it has freed the bucket's lock. A thread whose node
//       a notification has taken off does not touch the condition again, however its wait ended. So the condition may
//       be destroyed when every queued thread has been notified.
//   condition-5  If the word is a number, notify_all() releases only the first two threads. The second keeps the nodes
//       behind it. Once that thread has its lock back, it releases the next two, the second of which keeps those behind
//       it, and so on.
//
// No lost wake-up: a thread holds the lock L while it changes what others wait for. A waiting thread W has looked, with
// L held, and has not found the change. So W held L before the changing thread took it. W had queued its node before it
// gave up L (condition-2). So the notification, which comes after the change, finds the word changed, or finds that W's
// node has already left the queue, because W was notified, or because a deadline, a stop or another source has ended
// W's wait. Each of these ends the wait. W then takes L and looks again.
//
// A wait ends in one way only: by a notification, a timeout, a stop or another source. If it can end in several ways,
// each of them has to claim the waiter (waiter.cpp). A notification that finds the waiter claimed tries the next node.
// So a notification is spent only on a wait that reports it.
//
// The turns (condition-5) end, and nobody waits for ever for a turn. Let W be the thread that keeps the other nodes,
// and X the thread of one of these nodes. Both were notified, so neither wait can end otherwise, and both threads need
// the same lock L before they may return. While another thread keeps L from W, it keeps L from X, too, because only one
// thread at a time can hold L. Neither W nor X sleeps with L: each gives it up before it sleeps, and L can't be held
// twice. So X loses nothing by waiting for W. As soon as W has L, it releases the next two threads, before any code of
// the user runs in W. If X is not one of them, the second of them takes W's place in this argument. With different
// locks, W's lock could be held by a thread that waits for X. With a recursive lock, X could still hold the lock
// itself, because a wait gives up only one level. With a shared lock, X might get it while W can't. In these cases the
// word is `any_lock`, and the threads relay before they take their locks (relay.cpp).
//
// Memory order
//   [registered]  notify_one() and notify_all() load the word without the bucket's lock. If a wait must be notified,
//                 then L was taken after the wait gave it up: by the caller, or by a thread whose steps happen before
//                 the caller's. So the wait's access to the word happens before this load, and the load sees what that
//                 access left there, or a later value. A later value is `none` only if the node has left the queue. For
//                 this, the load needs no memory order.
//   [last-look]   Just before a thread notifies, another thread may turn the word to `none`: one that also notifies, or
//                 one whose wait a deadline, a stop or another source has ended. The notifying thread then sees `none`,
//                 and may destroy the condition. The store of `none` releases, and the load acquires. So the other
//                 thread's last access comes before the destruction.
//   [bucket]      The bucket's lock orders all writes of the word.
//   [release]     What came before a notification is visible when the wait ends (waiter.cpp). A thread that keeps nodes
//                 passes this on. It acquires when it is released itself, and its release of the next thread is a
//                 release operation.
//
// Checked by: tests/model/condition_model_test.cpp (P19 of docs/proofs.md), tests/unit/condition_test.cpp,
// tests/stress/condition_stress_test.cpp.
#include "core/lot/lot.hpp"
#include "core/sync/probe.hpp"
#include "core/wait/park.hpp"

#include <tocsin/condition.hpp>
#include <tocsin/detail/exceptions.hpp>

#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

namespace tocsin::detail {
namespace {

constexpr std::uint64_t nobody = 0;

core::wait_key key_of(const condition_word& word) noexcept { return {&word, core::wait_kind::condition}; }

condition_word& condition_at(void* word) noexcept { return *static_cast<condition_word*>(word); }

// Notes in the word that a thread joins the queue. `number` is that of the thread's lock, or `any_lock`.
void mark_parked(condition_word& word, std::uint64_t number, bool is_first) noexcept {
    const std::uint64_t seen = word.load(std::memory_order_relaxed);  // no order: [bucket]
    const std::uint64_t next = is_first || seen == number ? number : lock_reference::any_lock;
    if (next != seen) word.store(next, std::memory_order_relaxed);  // [registered]
}

void mark_empty(condition_word& word) noexcept {
    word.store(nobody, std::memory_order_release);  // [last-look]
}

// A thread's wait for a notification alone.
struct notification_wait : core::own_wait {
    condition_word& word;
    lock_reference& lock;
    const wait_options& options;
    core::wait_node* kept = nullptr;  // the nodes that the thread keeps (condition-5)

    notification_wait(condition_word& of, lock_reference& held, const wait_options& with) noexcept
        : word(of), lock(held), options(with) {}

    core::wait_key learned() const noexcept { return key_of(word); }
    core::wait_node node_for(core::waiter& self) const noexcept {
        return {key_of(word), self, core::can_cancel(options)};
    }
    bool take_or_enrol(core::wait_queue& queue, core::wait_node& node,
                       const core::wait_origin& origin) const noexcept {
        mark_parked(word, lock.number, queue.empty());
        queue.append(node, origin);
        return false;
    }
    void queued() const noexcept { lock.give_up(); }   // condition-2
    void clear() const noexcept { mark_empty(word); }  // condition-4: only if withdraw() found the node
    // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): park() calls what hides the default
    void ended(const core::spinner&, const core::wait_node&, const core::waiter& self, core::claim) noexcept {
        kept = self.kept();
    }
};

void notify(condition_word& word, bool all) noexcept {
    const std::size_t max = all ? static_cast<std::size_t>(-1) : 1;
    std::size_t taken = 0;
    core::release_list freed;
    bool in_turn;
    {
        core::locked_queue queue(key_of(word));
        if (queue.empty()) return;  // condition-4: the condition may be gone
        freed = queue.take(max, taken);
        in_turn = word.load(std::memory_order_relaxed) != lock_reference::any_lock;  // no order: [bucket]
        if (queue.empty()) mark_empty(word);
    }
    TOCSIN_PROBE(notify, &word, core::wait_kind::condition, max, taken);
    if (!in_turn) return freed.wake();
    freed.wake_in_turn();
}

}  // namespace

// Never ready. Only the condition's own wait_any() uses it.
const lot_source condition_lot_source{
    .wait_kind = static_cast<std::uint8_t>(core::wait_kind::condition),
    .try_take = [](void*) noexcept { return false; },
    .looks_ready = [](const void*) noexcept { return false; },
    .hold = [](void*) noexcept { return false; },
    .take_held = nullptr,  // never held
    .unhold = nullptr,
    .mark_parked =
        [](void* word, bool) noexcept {
            mark_parked(condition_at(word), lock_reference::any_lock, false);
            return true;
        },
    .clear_parked = [](void* word) noexcept { mark_empty(condition_at(word)); },
};

void condition_notify_slow(condition_word& word, bool all) noexcept {
    const auto one = [](void* condition) noexcept { notify(condition_at(condition), false); };
    const auto everybody = [](void* condition) noexcept { notify(condition_at(condition), true); };
    if (!core::signal_deferral::defer(all ? +everybody : +one, &word)) notify(word, all);
}

wait_status condition_wait(condition_word& word, lock_reference& lock, const wait_options& options) noexcept {
    notification_wait wait(word, lock, options);
    const core::claim how = core::park(wait, options);
    // So that polling lets other threads have the lock. A wait that was queued has given it up already.
    if (how == core::claim::timed_out && !lock.given_up) lock.give_up();
    lock.take_back();
    if (wait.kept != nullptr) core::release_in_turn(*wait.kept);  // condition-5
    return core::status_from(how, wait_status::signaled);
}

any_result condition_wait_any(lock_reference& lock, std::span<const source> sources, const limits& how) {
    struct at_end {
        lock_reference& lock;
        ~at_end() { lock.take_back(); }
    };
    const at_end takes_back{lock};
    const any_result result = wait_any_slow(sources, how, &lock);
    if (result.status == wait_status::timed_out && !lock.given_up) lock.give_up();  // as in condition_wait()
    return result;
}

any_result condition_wait_any_beside(condition_word& word, lock_reference& lock,
                                     std::span<const source> others, const limits& how) {
    std::vector<source> all;
    all.reserve(others.size() + 1);
    all.push_back(source(&word, condition_source()));
    all.insert(all.end(), others.begin(), others.end());
    return condition_wait_any(lock, all, how);
}

void condition_check_destroyed(const condition_word& word) noexcept {
    if (word.load(std::memory_order_relaxed) == nobody) return;  // no order: may miss the misuse
    core::check_nobody_waits(key_of(word), "condition");         // condition-1
}

void condition_refuse_lock(const condition_word& word) {
    char message[128];
    std::snprintf(message, sizeof message, "tocsin: condition at %p: a wait with a lock that is not held",
                  static_cast<const void*>(&word));
    throw_or_die(std::system_error(std::make_error_code(std::errc::operation_not_permitted), message));
}

}  // namespace tocsin::detail

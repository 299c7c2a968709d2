// SPDX-License-Identifier: Apache-2.0
// How a wait is claimed, and how its thread or coroutine is released.
//
// State
//   claim_   Goes from `open` to `signaled`, `timed_out` or `stopped`, at most once (waiter-1).
//   word_    Begins as `running`. The waiting thread moves it to `sleeping`, `polling` or `suspended`. If the thread
//            shares a word with others (shared_word.cpp), it moves word_ to `running_to_share` before its node is
//            queued, and later to `sharing`. Whoever releases the waiter (waiter-2) moves word_ to `released`, also
//            straight from `running` or `running_to_share`. A thread that polls descriptors stores `polling` plus the
//            number of the doorbell that wakes it.
//   others_or_word_  Either the chain of nodes that the thread releases after its own release, written before word_
//            becomes `released`; or the word that the thread shares with others, written before its node is queued.
//
// What a chain is for, and who passes it on, is the relay's business (relay.cpp). A waiter only carries it.
//
// Invariants
//   waiter-1  claim_ changes from `open` at most once, and this step decides how the wait ends. (A single_wait may
//       begin again: single_wait-3.) If none of a waiter's nodes is cancelable, the wait can end in one way only. Then
//       claim_ stays `open`, which counts as signaled.
//   waiter-2  A waiter is released as follows:
//       - If another thread or the stop callback claimed it, that claimer calls release() exactly once. (Exception: a
//         thread claims a coroutine's waiter in order to destroy the coroutine. Then no thread calls release().)
//       - If a single_wait is withdrawn, the withdrawing thread claims and releases it, or destroys it
//         (single_wait-2).
//       - If its node is not cancelable, whoever took the node off the queue calls release() exactly once.
//       - If the waiting thread claimed its own waiter, no thread calls release(). The waiting thread claims
//         `timed_out`, or `signaled` if it has found a source ready (multi_wait.cpp).
//       Whoever is to call release() may leave the call to a relay or, with a wake_list, to the owner of that list.
//       If the thread shares a word, mark_released() and a wake of that word replace release().
//   waiter-3  After the exchange in release(), the releasing thread uses only the address of the word. There is one
//       exception: if the exchange finds the waiter suspended, the waiter belongs to the releasing thread from then on.
//   waiter-4  A thread's wait ends (relay.cpp) after release(), or after the thread's own successful claim.
//   waiter-5  A thread that shares a word is never given nodes to release. So one member, others_or_word_, holds either
//       a chain or the address of a shared word. The address of a shared word is stored plus 1. The address of a chain
//       that the thread is to keep is stored plus 2. (A node's address is a multiple of 4.) If a waiter shares no word,
//       only the releasing thread writes others_or_word_, and the waiting thread reads it after its release. A waiting
//       thread learns from its state word whether it shares a word.
//
// No lost wake-up: the waiting thread sleeps only while word_ is `sleeping`. It moves word_ from `running` to
// `sleeping` by a compare-and-exchange, and release() exchanges the same word. If release() is first, the
// compare-and-exchange fails, and the thread sees `released`. If the thread is first, release() sees `sleeping` and
// wakes it. The futex compares the word and puts the thread to sleep in one step. The ring of a doorbell is not lost
// either: it ends even a poll that begins later.
// A coroutine suspends in the same way. Either its compare-and-exchange fails and it continues without suspending, or
// release() sees `suspended` and resumes it.
// If a timeout or a stop loses the claim, another thread has released the waiter, or will release it. The waiting
// thread then sleeps on without a deadline, and reports how the wait was claimed.
//
// Memory order
//   [release]  The exchange in release() releases, and the loads of word_ that see `released` acquire. So what the
//              claimer did before (the signal's data, the chain) is visible to the thread.
//   [suspend]  The step to `suspended` releases. The exchange in release() acquires if it reads `suspended`. So what
//              the coroutine did before it suspended is visible to it when it continues in the releasing thread. A
//              coroutine that suspends before its node is queued publishes by the lock of the queue instead.
//   claim_     Its accesses are relaxed: atomicity alone decides, and claim_ publishes nothing. A thread that has won a
//              claim acts on it through word_ or through the bucket's lock.
//
// Checked by: tests/model (event, lot, address, many, await, mix), tests/unit, tests/stress,
// proofs/promela/event_lot.pml.
#include "core/lot/waiter.hpp"

#include "core/lot/resume_queue.hpp"
#include "core/lot/shared_word.hpp"
#include "core/sync/counters.hpp"
#include "core/sync/happens_before.hpp"
#include "core/sync/probe.hpp"
#include "platform/futex/futex.hpp"
#include "platform/futex/sleeper_table.hpp"

namespace tocsin::core {
namespace {

constexpr std::uint32_t running = 0;
constexpr std::uint32_t sleeping = 1;
constexpr std::uint32_t released = 2;
constexpr std::uint32_t suspended = 3;
constexpr std::uint32_t running_to_share = 4;
constexpr std::uint32_t sharing = 5;
constexpr std::uint32_t polling = 6;  // + the number of the doorbell

}  // namespace

bool waiter::try_claim(claim reason, std::uint32_t index) noexcept {
    auto seen = static_cast<std::uint32_t>(claim::open);
    return claim_.compare_exchange_strong(seen, static_cast<std::uint32_t>(reason) + index,
                                          std::memory_order_relaxed);  // no order: atomicity decides
}

void waiter::release_with(std::uintptr_t others) noexcept {
    TOCSIN_PROBE(release, this);
    wake_sample::note_release(*this);
    others_or_word_ = others;
    order::before(this);
    resumable* const then = then_;                                                   // waiter-3
    const std::uint32_t seen = word_.exchange(released, std::memory_order_acq_rel);  // [release] [suspend]
    if (seen == running) return;
    if (seen == suspended) {
        order::after(this);
        return then->resume();
    }
    count(counter::woken);
    seen == sleeping ? platform::futex::wake_one(&word_)  // waiter-3: the address alone
                     : platform::poller::ring_doorbell(seen - polling);
}

void waiter::share(shared_word& word) noexcept {
    others_or_word_ = reinterpret_cast<std::uintptr_t>(&word) + shares;
    word_.store(running_to_share,
                std::memory_order_relaxed);  // [bucket] no other thread knows the waiter yet
}

bool waiter::mark_released() noexcept {
    TOCSIN_PROBE(release, this);
    order::before(this);
    if (word_.exchange(released, std::memory_order_release) != sharing) return false;  // [release]
    count(counter::woken);
    return true;
}

bool waiter::is_asleep() const noexcept {
    const std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: a guess
    return seen != running && seen != released && !is_coroutine();
}

bool waiter::is_released() const noexcept {
    return word_.load(std::memory_order_acquire) == released;  // [release]
}

// Stores how the thread sleeps from now on. Returns false if the waiter has already been released.
bool waiter::enter_state(std::uint32_t how) noexcept {
    std::uint32_t seen = running;
    // A failure acquires, because it may find the waiter released: [release]. A success releases: [suspend].
    while (!word_.compare_exchange_strong(seen, how, std::memory_order_acq_rel, std::memory_order_acquire)) {
        if (seen == released) return false;
    }
    TOCSIN_PROBE(sleep, this, how);
    if ((seen == running || seen == running_to_share) && how != suspended) count(counter::slept);
    return true;
}

bool waiter::suspend() noexcept {
    order::before(this);
    if (enter_state(suspended)) return true;
    order::after(this);  // [release]: it was released before
    return false;
}

void waiter::suspend_unqueued() noexcept {
    // [bucket] Whoever releases the waiter finds its node under the lock under which the node will be queued.
    order::before(this);
    claim_.store(static_cast<std::uint32_t>(claim::open), std::memory_order_relaxed);
    word_.store(suspended, std::memory_order_relaxed);
}

bool waiter::sleep_until_released(const deadline& until, sleep_report* report) noexcept {
    platform::before_sleep(until);
    const std::uint32_t seen =
        word_.load(std::memory_order_relaxed);  // no order: this thread's own, or `released`
    if (seen == running_to_share || seen == sharing) {
        return !enter_state(sharing) ||
               shared().sleep_until([this]() noexcept { return is_released(); }, until);
    }
    sleep_report unread;
    sleep_report& learnt = report != nullptr ? *report : unread;
    if (!enter_state(sleeping)) return learnt.early = true;
    for (bool first = true; !is_released(); first = false) {
        const auto slept = platform::futex::wait(word_, sleeping, until);
        if (slept == platform::sleep_result::timed_out) return false;
        learnt.early = first && slept == platform::sleep_result::differed;
    }
    return true;
}

bool waiter::enter_polling(platform::doorbell_id bell) noexcept { return enter_state(polling + bell); }

bool can_cancel(const detail::wait_options& options) noexcept {
    return !options.until.is_never() || (options.stop != nullptr && options.stop->stop_possible());
}

}  // namespace tocsin::core

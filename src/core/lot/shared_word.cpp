// SPDX-License-Identifier: Apache-2.0
// How one call wakes many threads, while a set still decides for each of them whether it is released.
//
// Threads that wait for the same gate (a manual-reset event) leave its queue together. So many of them may sleep on one
// word. Each still has its own state word (waiter.cpp), which says whether this thread is released. The queue consists
// of batches of about `waiters_per_batch` threads. The first thread of a batch sleeps on a word of its own: it is the
// delegate. All others of the batch share a word: they are sharers.
//
// A set wakes the first delegate alone, and gives it all other nodes (the relay, relay.cpp). Before the delegate's wait
// returns, the delegate does three things:
//   1. It marks each sharer of its batch released.
//   2. It wakes the next delegate, and gives that thread the nodes of the later batches.
//   3. It wakes all who sleep on the word of its batch, with one call.
// So the setter makes one system call, and each batch costs two more. On several processors, the next delegate does its
// step 1 while this one does its step 3. (If the next delegate is not asleep yet, this one releases the next batch,
// too. Up to four waiters are released by the setter itself.)
//
// State
//   wakes_     counts the wake-ups of the word. A gate's word is in a bucket (core/lot/lot.hpp) and exists as long as
//              the lot. A group commit has words of its own (group_commit-8 in group_commit.cpp).
//   sharers_   counts the sharers of the batch that has the word now. Zero: no batch has it.
//   waiter     `sharing` in its state word: the thread sleeps on the shared word, or is about to.
//   node       its kind is `sharer` or `delegate`.
//
// Invariants
//   shared_word-1  A waiter shares a word only if its node leaves the queue in one of two ways. Either the node leaves
//       with all others (take_all), or the waiter's own thread takes it out after a deadline. Nothing releases the
//       waiter alone. So waits for an auto-reset event, for an address, with a stop token or for several sources sleep
//       on words of their own. Exceptions: a group commit takes a sharer out alone if this sharer is to lead. And one
//       of its groups may end in the middle of a batch (shared_word-5). In both cases, the sharers that were taken out
//       are released like any others. So the other sleepers of the word may wake up, and sleep again.
//   shared_word-2  Whether a waiter shares a word is settled before its node is queued, and never changes.
//   shared_word-3  After a thread has marked a sleeping sharer released, it adds 1 to wakes_ in the word that the
//       sharer sleeps on. Then it wakes the sleepers of that word. The marked waiter may be gone by then, but the word
//       still exists.
//   shared_word-4  Sharers come behind a delegate, as follows. This order is for speed alone: the relay releases each
//       node of a chain, whatever the order of the nodes.
//       - A queue: a thread that joins becomes a sharer if the queue's first node is a delegate's and the thread
//         doesn't begin a batch. Otherwise it becomes a delegate. (If the first node is that of a thread that sleeps on
//         its own word for another reason, the joining thread first turns that node into a delegate's.) If the first
//         node is a sharer's, take() never detaches the queue in one step.
//       - A release_list that take() fills node by node: coroutines come first, then delegates and sharers, then all
//         others. If the list has a delegate, no sharer comes before the first delegate. If it has sharers but no
//         delegate, the setter does the delegate's work.
//   shared_word-5  Only sharers of one queue, and of one batch, are counted in a word at the same time. A thread is
//       counted before its node is queued, under the lock of its queue. Either it is the first sharer, and sharers_ was
//       zero. Or it comes behind another sharer, which is still queued, and so still counted. The thread stays counted
//       until one of these has happened:
//       - Whoever released it has made the wake-up call for its batch. From then on the thread doesn't sleep any more.
//       - After its deadline, it has left the queue without being released.
//       A group commit has words that nobody else takes. There, a batch may reach from one group into the next, and a
//       thread may join a batch whose sharers have all left.
//       (In the child of a fork, a thread that forked during a release may subtract sharers that the child has not
//       counted. Then another batch may have the word at the same time, or perhaps no batch ever has it again. Either
//       costs additional calls, and nothing else.)
//   shared_word-6  The threads of a batch are equally urgent: a thread shares a word only if the thread in front of it
//       is as urgent as it is. So a delegate never releases more urgent sharers (relay-4 in relay.cpp).
//
// No lost wake-up: a thread loads wakes_, looks at its state word, and sleeps if wakes_ is still the number that it has
// loaded. A releaser marks the state word, adds 1 to wakes_, and wakes. If the thread's load sees the addition, its
// look sees the mark. So if the look misses the mark, the load came before the addition, and one of these is true:
// - The futex compares wakes_ after the addition. It finds another number, and the thread does not sleep.
// - The thread slept before the addition. The wake that follows the addition wakes it.
// A thread that is marked before it has entered `sharing` sees the mark in its state word and does not sleep. The
// releaser sees that the thread had not entered `sharing`, and need not wake it. (The count wraps around. A thread
// would sleep on if exactly 2^32 wake-ups of this word, or a multiple of that number, came between its load and its
// sleep.)
//
// At a gate, nobody is woken for nothing: a wake-up call reaches only the sleepers of one batch, and these are all
// marked (shared_word-5, shared_word-1). The next batch that has the word begins after that call. If
// wait_queue::begin_batch() finds no free word among those that it looks at, the thread becomes a delegate, which
// sleeps on a word of its own.
//
// Memory order
//   [shared-wake]   the addition to wakes_ releases and its load acquires: whoever sees the addition sees the mark.
//   [shared-batch]  the subtraction from sharers_ releases, and the step from zero acquires. So a thread of the next
//                   batch sees the wakes_ that the last batch left, and doesn't call the futex for nothing.
//   [release]       the mark releases, and the thread's look at its state word acquires (waiter.cpp).
//   [bucket]        a waiter records that it shares a word before its node is queued. Whoever has taken the node off
//                   under the lock reads this record. The relay passes it on by [release].
//
// Fork: in the child nobody sleeps, so wakes_ may have any value. No batch has a word there (table.cpp).
//
// Checked by: tests/model/shared_word_model_test.cpp, event_model_test.cpp and mix_model_test.cpp (P6, P16 of
// docs/proofs.md); tests/internal/shared_word_test.cpp, tests/stress/gate_reset_stress_test.cpp.
#include "core/lot/shared_word.hpp"

namespace tocsin::core {

void shared_word::wake_all() noexcept {
    wakes_.fetch_add(1, std::memory_order_release);  // [shared-wake]
    platform::futex::wake_all(&wakes_);
}

bool shared_word::try_begin_batch() noexcept {
    std::uint32_t seen = 0;
    return sharers_.compare_exchange_strong(seen, 1, std::memory_order_acquire,
                                            std::memory_order_relaxed);  // [shared-batch]
}

}  // namespace tocsin::core

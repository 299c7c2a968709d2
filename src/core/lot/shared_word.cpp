// How one call wakes many threads, while a set still decides for each of them whether it is released.
//
// Threads that wait for the same gate (a manual-reset event) leave its queue together. So they may sleep on one word,
// which belongs to the bucket. Each still has its own state word (waiter.cpp), which says whether this thread is
// released. The first of them sleeps on a word of its own: it is the delegate. A set wakes the delegate alone and gives
// it the other nodes (the relay, relay.cpp). The delegate marks each of them released, and then wakes all who sleep on
// the shared word, with one call, before its own wait returns. So the setter makes one system call, and all others
// together cost one more.
//
// State
//   wakes_     counts the wake-ups of the word. It is in a bucket (core/lot/lot.hpp) and exists as long as the lot.
//   waiter     `sharing` in its state word: the thread sleeps on the shared word, or is about to.
//   node       its kind is `sharer`. A thread's node of kind `waiter` can be the delegate.
//
// Invariants
//   shared_word-1  A waiter shares a word only if its node leaves the queue in one of two ways: with all others
//       (take_all), or taken out by its own thread after a deadline. Nothing releases it alone. So waits for an
//       auto-reset event, for an address, with a stop token or for several sources sleep on words of their own.
//   shared_word-2  A waiter knows whether it shares a word before its node is queued, and never changes it.
//   shared_word-3  If a thread has marked a sleeping sharer released, it afterwards adds 1 to wakes_ in the word that
//       the sharer sleeps on, and wakes the sleepers of that word. The marked waiter may be gone by then. The word is
//       not.
//   shared_word-4  A thread that joins a queue shares the word if the queue has a delegate in front. If the delegate's
//       deadline has passed, and a sharer has become the first, those that join are delegates. A queue that leaves in
//       one step has a delegate in front. In a release_list that take() fills node by node, coroutines come first, then
//       a delegate, then all sharers, then everybody else. If this list has sharers but no delegate, the setter does
//       the delegate's work. This order is for speed alone: the relay releases each node of a chain, in whatever order
//       they are.
//
// No lost wake-up: a thread loads wakes_, then looks at its state word, then sleeps if wakes_ is still the number that
// it has loaded. A releaser marks the state word, then adds 1 to wakes_, then wakes. If the thread's look misses the
// mark, its load came before the addition, because a load that sees the addition also sees the mark. Then the futex
// finds another number and doesn't sleep; or the thread slept before the addition, and the wake that follows wakes it.
// A thread that is marked before it has entered `sharing` sees that in its state word and doesn't sleep. The releaser
// sees the same, and need not wake it. (The count wraps around. A thread would sleep on if it stood still between its
// load and its sleep while 2^32 wake-ups of this word passed, or a multiple.)
//
// Strangers: keys with the same bucket and the same first three bits of their paths share the word. A wake for one of
// them wakes the sleepers of all. Each of these looks at its own state word and sleeps again.
//
// Memory order
//   [shared-wake]  the addition to wakes_ releases and its load acquires: whoever sees the addition sees the mark.
//   [release]      the mark releases, and the thread's look at its state word acquires (waiter.cpp).
//   [bucket]       that a waiter shares a word is written before its node is queued, and read by whoever has taken the
//                  node off under the lock; the relay passes it on by [release].
//
// Fork: in the child nobody sleeps, so wakes_ may have any value.
//
// Checked by: tests/model/shared_word_model_test.cpp, event_model_test.cpp and mix_model_test.cpp (P6, P16 of
// docs/proofs.md); tests/internal/shared_word_test.cpp, tests/stress/gate_reset_stress_test.cpp.
#include "core/lot/shared_word.hpp"

#include "core/lot/lot.hpp"

namespace tocsin::core {

void shared_word::wake_all() noexcept {
    wakes_.fetch_add(1, std::memory_order_release);  // [shared-wake]
    platform::futex::wake_all(&wakes_);
}

bool is_sharer(const wait_node* node) noexcept {
    return node != nullptr && node->what == wait_node::kind::sharer;
}

bool is_delegate(const wait_node& node) noexcept {
    return node.what == wait_node::kind::waiter && !node.owner->is_coroutine();
}

wait_node* release_sharers(wait_node& first) noexcept {
    shared_word& word = first.owner->shared();
    bool asleep = false;
    wait_node* each = &first;
    while (is_sharer(each) && &each->owner->shared() == &word) {
        wait_node* const next = wait_list::next(*each);  // relay-1
        if (each->owner->mark_released()) asleep = true;
        each = next;
    }
    if (asleep) word.wake_all();  // shared_word-3
    return each;
}

void wait_queue::append_to_share(wait_node& last) noexcept {
    if (!empty() && is_delegate(*first())) {  // shared_word-4
        last.what = wait_node::kind::sharer;
        last.owner->share(bucket_.word_of(path_));
    }
    append(last);
}

}  // namespace tocsin::core

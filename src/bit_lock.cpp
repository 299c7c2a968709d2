// SPDX-License-Identifier: Apache-2.0
// The half of bit_lock.hpp that waits and wakes. word_lock.hpp is built on bit_lock.hpp.
//
// State: a bit of a word that the user owns, and a queue in the lot. The bit is on while a thread holds the lock.
// The queue's key is the address of the word together with the number of the bit. A waiter's node has a mark, `woken`.
// An unlock() that is to wake the node's thread turns the mark on. The mark stays on while that thread is on its way to
// look at the bit. The node also has the time at which the mark was turned on, and a count of the unlocks that woke a
// more urgent thread instead.
//
// Invariants
//   bit_lock-1  Each bit has a key of its own. So a wake for one bit is never spent on a waiter for another bit, nor on
//       an address wait of the user on the same word.
//   bit_lock-2  After its read-modify-write, unlock() uses only the word's address: the next holder may destroy the
//       word.
//   bit_lock-3  A node stays in the queue from the first time its thread parks until that thread has the lock or gives
//       up. A thread that was woken and finds the lock taken clears the mark, and in the same step moves its node to
//       the end, unless the lock's threads keep their places (lock_word::keeps_place). Marks change under the bucket's
//       lock.
//   bit_lock-4  An unlock() wakes nobody only if it finds the queue empty, or finds a marked node. The marked thread
//       does one of these:
//       - It clears the mark under the bucket's lock, and looks at the lock's bit before it frees the bucket's lock. If
//         the lock's bit is on, the thread sleeps in the queue again.
//       - It gives up. Then it looks at the lock's bit after its node has left the queue.
//       - It gets the lock without clearing the mark. Then its node leaves the queue before the thread can unlock.
//   bit_lock-5  One wake is in flight, with two exceptions. An unlock() wakes a thread that is more urgent than each
//       thread that is on its way. And it does not count a thread that has been on its way for `overdue` or longer.
//
// No lost wake-up: for a thread that parks for the first time, the reasons are those for address waits (address.cpp).
// The lock's bit is the value, and the read-modify-write of unlock() is the change. Once the thread has parked, the
// filter bit stays on, because the node stays in the queue.
// An unlock() that finds a mark may wake nobody. It has found the mark under the bucket's lock. There are three cases:
// - The marked thread has the lock's bit, or gets it before it next takes the bucket's lock. Then its own unlock() is
//   still to come, finds the mark gone, and wakes a thread of the queue, or finds another mark.
// - The marked thread next takes the bucket's lock, to clear the mark or to remove its node. Then it looks at the bit
//   (bit_lock-4), and takes it if it is off. Its own unlock() is then still to come, as in the first case.
// - It does the same, but finds the bit on, because another thread has taken the lock since. Then the unlock() of that
//   thread is still to come. That unlock() finds the mark gone, and wakes a thread of the queue, or finds another mark.
// A thread may time out just before an unlock() marks its node. Then the mark is on, but this unlock() can't claim the
// thread's waiter, and does not release it. The thread still counts as one that is on its way, because it looks at the
// bit after its node has left the queue.
//
// Why only one wake is in flight: if threads keep the lock for long, a woken thread often finds it taken again. If each
// unlock() woke another thread, all waiters would run, fail and sleep again in turn.
//
// What happens while the woken thread gets no processor (docs/priorities.md). Let S be that thread, and U another one
// that sleeps while the lock is free.
// - U is more urgent than S. Whoever unlocked last has woken U, too (bit_lock-5). This holds if U is among the first
//   `max_looks` threads of the queue, unless the first of the queue had been passed over `max_passes` times (below).
// - U is not more urgent. Then what keeps S from a processor would mostly keep U from it, too. If that is not so (S is
//   stopped, or has used up its group's quota), the next unlock() wakes U, once S has been on its way for `overdue`.
// A thread is woken instead of an older one only if it is more urgent. A real-time thread always goes first. Any other
// goes first at most `max_passes` times, and then the first of the queue is woken: the system also gives the less
// urgent one a share of the processors.
//
// Why a thread that was woken for nothing goes to the end: it was the last to go to sleep, so a wake reaches it soon,
// often on an idle processor. If this thread stayed in front, each unlock() would wake it, and most of these wakes
// would be for nothing again. This was measured with locks held for 10 us by 4 to 16 threads. When such a thread stayed
// in front, one thread's use of the lock took 1.08 to 1.11 times as long as with std::mutex. Now it takes 0.96 to
// 1.00 times as long. The price is fairness, which std::mutex does not have either: of 16 threads, one may get a
// thousandth of its share.
//
// A lock whose threads keep their places (win32/src/shared_lock.hpp) may refuse itself to an `arrival` although it is
// free, if a marked thread is on its way. It refuses itself to no other thread while it is free. An arrival is
// `preferred` if it is a real-time thread, or if it finds marked threads of which each is overdue.
//
// Memory order
//   [lock-release]  The read-modify-write of unlock() releases; the one that takes the lock acquires.
//   [wake-check]    The read-modify-write of unlock() and its look at the filter, both sequentially consistent, pair
//                   with the fence of prepare_wait() (address.cpp).
//   [bucket]        The bucket's lock orders the marks.
//
// Checked by: tests/model/lock_model_test.cpp, tests/unit/{word,bit}_lock_test.cpp, tests/stress/.
#include "core/lot/lot.hpp"
#include "core/sync/lock_owners.hpp"
#include "core/sync/probe.hpp"
#include "core/wait/spinner.hpp"
#include "platform/system/system.hpp"

#include <tocsin/bit_lock.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

namespace tocsin::detail {
namespace {

core::wait_key key_of(const void* word, unsigned bit) noexcept {
    return {word, static_cast<core::wait_kind>(static_cast<unsigned>(core::wait_kind::lock_bit_0) + bit)};
}

// How long a woken thread is waited for, in ticks of the steady clock. Twice as long as a recent_time() may be old.
constexpr std::int64_t overdue =
    std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::milliseconds(20)).count();
// How often the first thread of a queue is passed over for more urgent ones that are not real-time threads.
constexpr std::uint8_t max_passes = 16;
// How many nodes of a queue an unlock looks at, if its threads differ in urgency.
constexpr std::uint32_t max_looks = 64;

struct lock_node : core::wait_node {
    lock_node(const core::wait_key& of, core::waiter& who) noexcept : wait_node(of, who, true) {}
    plain<bool> woken{false};
    plain<std::uint8_t> passes{0};    // how often a more urgent thread was woken instead
    plain<std::int64_t> woken_at{0};  // if the mark is on: the recent_time() of that
};

lock_node* behind(const lock_node& node) noexcept {
    return static_cast<lock_node*>(core::node_list::next(node));
}

// Whether the node's thread is on its way, and may still be waited for.
bool is_awaited(const lock_node& node, std::int64_t now) noexcept {
    return node.woken && now - node.woken_at < overdue;
}

// Whether threads are on their way, and none of them is still waited for.
bool only_overdue(const core::wait_queue& queue, std::int64_t now) noexcept {
    bool any = false;
    const auto* each = static_cast<lock_node*>(queue.first());
    for (std::uint32_t looks = 0; each != nullptr && looks != max_looks; ++looks, each = behind(*each)) {
        if (is_awaited(*each, now)) return false;
        any |= each->woken;
    }
    return any;
}

// One thread's wait for a lock. Its queue holds lock_nodes only (bit_lock-1).
class lock_wait {
public:
    explicit lock_wait(const lock_word& lock) noexcept
        : lock_(lock), node_(key_of(lock.word, lock.bit), *sleeper_) {}
    lock_wait(const lock_wait&) = delete;
    lock_wait& operator=(const lock_wait&) = delete;

    const core::wait_key& key() const noexcept { return node_.key; }
    bool take() const noexcept { return lock_.take(lock_.word, lock_.bit, who_, false); }

    // Takes the lock and returns true, or prepares to sleep and returns false.
    bool take_or_park() noexcept {
        core::locked_queue queue(key());
        const bool was_parked = node_.queued;
        if (!was_parked) queue.prepare_wait();
        node_.woken = false;  // bit_lock-4
        if (take_before_sleep(queue)) {
            queue.remove(node_);
            return true;
        }
        sleeper_.emplace();  // a waiter can be released only once
        if (was_parked && lock_.keeps_place) return false;
        const auto origin = was_parked ? node_.origin : core::wait_origin::here();
        queue.remove(node_);
        queue.append(node_, origin);
        return false;
    }

    // Returns false if the deadline passed before anybody woke the thread.
    bool sleep(core::spinner& looking, const deadline& until) noexcept {
        // NOLINTNEXTLINE(bugprone-unchecked-optional-access): there always is one
        const bool released = looking.sleep(*sleeper_, until) == core::claim::signaled;
        if (released) who_ = lock_taker::woken;
        return released;
    }

    void leave() noexcept {
        if (node_.queued) core::locked_queue(key()).remove(node_);
    }

private:
    bool take_before_sleep(const core::wait_queue& queue) const noexcept {
        return lock_.take(lock_.word, lock_.bit, taker_in(queue), true);
    }
    lock_taker taker_in(const core::wait_queue& queue) const noexcept {
        if (!lock_.keeps_place || who_ != lock_taker::arrival) return who_;
        const std::int64_t now = platform::recent_time();
        const bool is_preferred =
            platform::thread_urgency(now) >= platform::real_time_urgency || only_overdue(queue, now);
        return is_preferred ? lock_taker::preferred : who_;
    }

    const lock_word& lock_;
    lock_taker who_ = lock_taker::arrival;
    std::optional<core::waiter> sleeper_{std::in_place};
    lock_node node_;
};

// For a queue in which all threads are equally urgent.
lock_node* oldest_to_wake(lock_node& first, std::int64_t now) noexcept {
    lock_node* each = &first;
    for (std::uint32_t looks = 0; each != nullptr && looks != max_looks; ++looks, each = behind(*each)) {
        if (!each->woken) return each;
        if (is_awaited(*each, now)) return nullptr;
    }
    return nullptr;
}

// For a queue in which threads may differ in urgency.
lock_node* most_urgent_to_wake(core::wait_queue& queue, lock_node& first, std::int64_t now) noexcept {
    lock_node* chosen = nullptr;
    int awaited = -1;  // the greatest urgency of those that are on their way
    bool differ = false;
    lock_node* each = &first;
    for (std::uint32_t looks = 0; each != nullptr && looks != max_looks; ++looks, each = behind(*each)) {
        differ |= each->urgency != first.urgency;
        const int urgency = static_cast<int>(each->urgency);
        if (each->woken) {
            if (is_awaited(*each, now) && urgency > awaited) awaited = urgency;
        } else if (chosen == nullptr || each->urgency > chosen->urgency) {
            chosen = each;
        }
    }
    if (!differ && each == nullptr) queue.set_equal_in_urgency();
    if (chosen == nullptr || static_cast<int>(chosen->urgency) <= awaited) return nullptr;
    if (chosen == &first || first.woken) return chosen;
    if (chosen->urgency >= platform::real_time_urgency || first.passes != max_passes) {
        if (first.passes != max_passes) first.passes = static_cast<std::uint8_t>(first.passes + 1);
        return chosen;
    }
    first.passes = 0;
    return &first;
}

// Called under the bucket's lock. Returns the waiter that unlock() must release, or null.
core::waiter* next_to_wake(core::wait_queue& queue) noexcept {
    auto* const first = static_cast<lock_node*>(queue.first());
    if (first == nullptr) return nullptr;
    const std::int64_t now = platform::recent_time();
    lock_node* const next =
        queue.differs_in_urgency() ? most_urgent_to_wake(queue, *first, now) : oldest_to_wake(*first, now);
    if (next == nullptr) return nullptr;
    next->woken = true;
    next->woken_at = now;
    return next->owner->try_claim(core::claim::signaled) ? next->owner : nullptr;
}

// Out of line, so that an unlock that finds nobody stays short.
#if defined(_MSC_VER)
__declspec(noinline)
#else
[[gnu::noinline]]
#endif
void wake_next(const core::wait_key& key, [[maybe_unused]] const void* word,
               [[maybe_unused]] unsigned bit) noexcept {
    core::waiter* next;
    {
        core::locked_queue queue(key);
        next = next_to_wake(queue);
    }
    TOCSIN_PROBE(unlock, word, bit, next);
    if (next != nullptr) next->release(nullptr);
}

}  // namespace

bool lock_slow(const lock_word& lock, const deadline& until, spin_policy spin) noexcept {
    const wait_options options{until, nullptr, spin};
    lock_wait self(lock);
    const auto take = [&]() noexcept { return self.take(); };
    bool taken = false;
    while (!taken && !until.has_passed()) {
        core::spinner looking(self.key(), options);
        taken = looking.before_parking(take) || looking.while_parked(take) || self.take_or_park();
        if (taken) break;
        if (!self.sleep(looking, until)) break;
        taken = take();
    }
    self.leave();
    return taken || take();  // bit_lock-4
}

void unlock_wake(const void* word, unsigned bit) noexcept {
    const core::wait_key key = key_of(word, bit);
    if (core::may_be_waited_on(key)) wake_next(key, word, bit);  // [wake-check]
}

#if defined(TOCSIN_MODEL)
void note_taken(const void*, unsigned) noexcept {}  // nobody reads it there
void note_freed(const void*, unsigned) noexcept {}
#else
void note_taken(const void* word, unsigned bit) noexcept { core::enter_lock_owner(word, bit); }
void note_freed(const void* word, unsigned bit) noexcept { core::remove_lock_owner(word, bit); }
#endif

void unlocked_twice(const void* word, unsigned bit) noexcept {
    char message[128];
    std::snprintf(message, sizeof message,
                  "tocsin: lock at %p, bit %u, unlocked although it was not locked\n", word, bit);
    platform::die(message);
}

}  // namespace tocsin::detail

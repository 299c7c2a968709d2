// SPDX-License-Identifier: Apache-2.0
// The pool of doorbells, and the part of a doorbell that is the same on every system.
//
// State
//   While a doorbell is open, it has an object of the system that can be polled: an event counter, a pipe or a kernel
//   event. The thread that waits for the doorbell, the *sleeper*, sleeps in a poll of this object. To *strike* the
//   object is to make it ready by one system call, which wakes the sleeper.
//   Every doorbell, open or closed, has a word `ring_state`. It says whether the doorbell is *rung*, and it holds a
//   count of answers. To *answer* is to move `ring_state` from rung back to not rung, which raises that count by one. A
//   ring moves `ring_state` to rung; if `ring_state` was not rung before, the ringer then strikes the object. The
//   strike is *even* if the count of answers is even, otherwise *odd*.
//   The pool is a fixed table of doorbells. The doorbells that nobody has are in two stacks of indices: the open ones
//   in `idle`, the closed ones in `closed`. Each thread may keep one doorbell for its next wait.
//
// Invariants
//   doorbells-1  Except in a close (doorbells-3), the thread that moves `ring_state` from not rung to rung strikes the
//       object, once. No other thread strikes it. So a ring costs one system call, or none while an earlier ring is
//       unanswered.
//   doorbells-2  Only the doorbell's owner (the thread or poll set that has taken it) answers, and only after it has
//       seen the object struck. So a ring is never answered before its strike: the strike that the owner sees always
//       belongs to the latest ring that moved `ring_state` to rung.
//   doorbells-3  The thread that has moved `ring_state` to rung may use the descriptors until it has struck, so they
//       must stay open until then. The owner closes a doorbell in these steps:
//       - It tries to move `ring_state` from not rung to rung, as a ringer does. If it succeeds, it closes the
//         descriptors instead of striking.
//       - If the doorbell is rung already, the owner checks whether the object has been struck. If so, the owner
//         answers and repeats the first step once.
//       - If the object has not been struck, or if the repeated step fails, a strike may still come. So the doorbell
//         stays open and goes to the idle ones, however many there are.
//       A closed doorbell stays rung, so a later ring makes no system call. A thread that opens the doorbell again
//       first stores the new descriptors. Then it moves `ring_state` to not rung, with an even count of answers,
//       because the first strike of a new object is an even one.
//   doorbells-4  A doorbell's number consists of its index and a count: how many forks had happened when the number was
//       given. A child process counts one fork more than its parent, so a number from the parent names no doorbell in
//       the child. The count is kept modulo 131,071, so every number is less than no_doorbell, the greatest
//       doorbell_id.
//   doorbells-5  Every doorbell that has been made is taken by one thread or one poll set, or is kept by a thread, or
//       is in one of the stacks. At most `max_idle` doorbells are idle, apart from those that could not be closed
//       because a strike might still come (doorbells-3). The next owner of a doorbell that could not be closed answers
//       its ring.
//
// Because of doorbells-2, the object need not be reset between two strikes. linux.cpp uses this: there the object is an
// event counter, and its strikes alternate. An even strike fills the counter, which becomes readable. An odd strike
// empties it, and it becomes writable. The sleeper polls for the condition that the next strike makes true. So it never
// has to read the counter, and a wake-up costs two system calls in all: the strike and the poll.
//
// No lost wake-up: a ring that finds `ring_state` rung makes no system call. It relies on the earlier ring that moved
// `ring_state` to rung. That ringer has struck the object or is about to strike it, and the strike ends the sleep. The
// sleeper's answer comes after both rings, because the later ring found the earlier one unanswered. So, after its
// answer, the sleeper sees what the later ringer did before its ring [doorbell-ring]. A ringer that is delayed between
// moving `ring_state` and striking delays everybody who relies on its strike. Between these two steps there is only the
// entry into the system (in a checked build, also the check of the descriptors).
//
// Memory order
//   [doorbell-ring]  ring(), answer() and a close() that succeeds are read-modify-writes of one word, `ring_state`. Of
//                    any two of these calls, the thread that makes the later one sees what came before the earlier one.
//   [doorbell-made]  A thread that strikes finds the descriptors, and `identity`, which says what they referred to when
//                    they were stored. A thread strikes only if it finds two things: a `ring_state` that is not rung,
//                    and a descriptor. Whoever opens a doorbell stores one of the two last. If the doorbell was closed,
//                    its `ring_state` is rung, and is what is stored last. If the doorbell is new, its `ring_state` is
//                    not rung, and the descriptor by which others strike is what is stored last.
//   [doorbell-free]  The stacks: a thread that pops a doorbell sees what came before the push. Each stack counts its
//                    changes in the word that holds its top. So a compare-exchange of that word fails if the stack has
//                    changed, even if the same doorbell is on top again.
//
// A late ring, that is, a ring of a doorbell that was given back, reaches at worst the next owner of its number, even
// if the doorbell was closed in between.
//
// A program may close descriptors that it did not open (closefrom). Then the system may give the number of a doorbell's
// descriptor to one of the program's own files. So a checked build compares, before each strike and each sleep, what
// the descriptor refers to with what the library opened. (Before a sleep in a kqueue it does not, and Windows gives
// nothing to compare.) Every build compares them before it closes a doorbell. On Linux the comparison can't tell an
// event counter from another event counter, an epoll instance or a timer.
//
// Several copies of the library in a process use the pool of the first copy (shared_table.hpp). A thread may keep one
// doorbell in each copy. A copy that is unloaded closes the idle doorbells of its own pool. Nobody has any other
// doorbell of that pool at that time:
// - A thread that keeps a doorbell in a copy keeps that copy loaded until the thread ends.
// - A copy that uses the pool of another copy keeps the other copy loaded.
//
// Checked by: tests/model/doorbell_model_test.cpp and doorbell_pool_model_test.cpp (P9), over every backend by
// tests/internal/doorbell_test.cpp, and by tests/copies.
#include "platform/poller/doorbells.hpp"

#include "platform/system/system.hpp"

#include <cerrno>
#include <new>
#include <utility>

namespace tocsin::platform {
namespace {

// The doorbell that a thread keeps between its waits. `kept` has no destructor, so the thread can use it until its very
// end. `ending` below has a destructor, which gives the doorbell up: afterwards the thread keeps none.
struct kept_doorbell {
    doorbell_id bell;
    std::uint8_t pool;  // the number of its pool; 0: none is kept
    bool ended;
};
constinit thread_local kept_doorbell kept{};

// The pools whose doorbells threads keep; a pool's number is its index here plus 1. A thread keeps the number and not a
// pointer, because a number takes less of the scarce thread-local memory (shared_table/thread_slots.hpp).
constinit detail::atomic<doorbell_pool*> pools[2]{};

doorbell_pool* pool_of(std::uint8_t number) noexcept {
    return pools[number - 1].load(std::memory_order_relaxed);  // no order: an address of static storage
}

// Returns the pool's number. A new pool gets the next free number. Returns 0 if no number is free (in tests).
std::uint8_t number_of(doorbell_pool* pool) noexcept {
    std::uint8_t number = 0;
    for (auto& each : pools) {
        ++number;
        doorbell_pool* seen = nullptr;
        // no order: an address of static storage
        if (each.compare_exchange_strong(seen, pool, std::memory_order_relaxed) || seen == pool)
            return number;
    }
    return 0;
}

struct thread_end {
    bool awaited = false;
    ~thread_end() {
        kept.ended = true;
        if (const std::uint8_t pool = std::exchange(kept.pool, std::uint8_t{0}))
            pool_of(pool)->release(kept.bell);
    }
};
thread_local thread_end ending;

// On Windows threads keep no doorbell. With some compilers there (MinGW-w64 with GCC 12), the storage of thread-local
// objects is freed before the objects are destroyed, so a doorbell that a thread kept would be lost. So on Windows
// every wait that needs a doorbell takes it from the pool and gives it back, each with two read-modify-writes.
#if defined(_WIN32)
constexpr bool threads_keep_one = false;
#else
constexpr bool threads_keep_one = true;
#endif

constexpr std::uint64_t changed_once = std::uint64_t{1} << 32;
constexpr std::uint64_t changes = ~std::uint64_t{0} << 32;  // the part of a top that counts the changes

}  // namespace

doorbell_id doorbell_pool::take_kept() noexcept {
    if (kept.pool == 0 || pool_of(kept.pool) != this) return no_doorbell;
    kept.pool = 0;
    return find(kept.bell) != nullptr ? kept.bell : no_doorbell;
}

doorbell_id doorbell_pool::number_of(doorbell_id index) const noexcept {
    return forks_.load(std::memory_order_relaxed) * max + index;  // no order: see forget()
}

void doorbell_pool::give_back(doorbell_id bell) noexcept {
    if (!threads_keep_one || kept.ended || kept.pool != 0) return release(bell);
    const std::uint8_t pool = platform::number_of(this);
    if (pool == 0) return release(bell);
    ending.awaited = true;  // constructs `ending`, so that its destructor runs at the thread's end
    kept.bell = bell;
    kept.pool = pool;
}

doorbell_id doorbell_stack::pop(const doorbell* all) noexcept {
    std::uint64_t top = top_.load(std::memory_order_acquire);  // [doorbell-free]
    for (;;) {
        const auto first = static_cast<doorbell_id>(top);
        if (first == 0) return no_doorbell;
        // no order: if another thread pops it first, the exchange fails
        const doorbell_id next = all[first - 1].next_.load(std::memory_order_relaxed);
        const std::uint64_t popped = ((top & changes) + changed_once) | next;
        // [doorbell-free]
        if (top_.compare_exchange_weak(top, popped, std::memory_order_acquire)) return first - 1;
    }
}

void doorbell_stack::push(doorbell* all, doorbell_id index) noexcept {
    std::uint64_t top = top_.load(std::memory_order_relaxed);  // no order: the exchange gives it
    std::uint64_t pushed;
    do {
        // no order: the exchange gives it
        all[index].next_.store(static_cast<doorbell_id>(top), std::memory_order_relaxed);
        pushed = ((top & changes) + changed_once) | (index + 1);
    } while (!top_.compare_exchange_weak(top, pushed, std::memory_order_release));  // [doorbell-free]
}

doorbell_id doorbell_pool::take_idle() noexcept {
    const doorbell_id index = idle_.pop(at_);
    if (index == no_doorbell) return no_doorbell;
    idle_count_.fetch_sub(1, std::memory_order_relaxed);  // no order: a number
    return number_of(index);
}

void doorbell_pool::release(doorbell_id bell) noexcept {
    if (find(bell) == nullptr) return;  // the bell of a poll set that was opened before a fork
    const doorbell_id index = bell % max;
    const bool enough =
        idle_count_.fetch_add(1, std::memory_order_relaxed) >= max_idle;  // no order: a number
    if (!enough || !close(index)) return idle_.push(at_, index);
    idle_count_.fetch_sub(1, std::memory_order_relaxed);  // no order: a number
}

// Returns false if the doorbell stays open because a strike may still come (doorbells-3).
bool doorbell_pool::close(doorbell_id index) noexcept {
    doorbell& bell = at_[index];
    if (!bell.state_.close()) {
        const auto answers =
            answer_if_struck_.load(std::memory_order_relaxed);  // no order: set when the copy was loaded
        if (answers == nullptr || !bell.is_as_opened() || !answers(bell) || !bell.state_.close())
            return false;
    }
    close_ends(bell);
    closed_.push(at_, index);
    return true;
}

void doorbell_pool::close_idle() noexcept {
    for (doorbell_id bell = take_idle(); bell != no_doorbell; bell = take_idle()) {
        (void)close(bell % max);  // if this fails, it stays open: a thread may be about to strike it
    }
}

taken_doorbell doorbell_pool::open(const int (&ends)[2]) noexcept {
    doorbell_id index = closed_.pop(at_);
    const bool is_new = index == no_doorbell;
    if (is_new) {
        index = made_.load(std::memory_order_relaxed);  // no order: a number
        do {
            if (index == max) {
                if (ends[1] != ends[0]) close_descriptor(ends[1]);
                close_descriptor(ends[0]);
                return {no_doorbell, EMFILE};
            }
            // no order: a number
        } while (!made_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
    }
    doorbell& made = at_[index];
    made.wait_end_.store(ends[1] + 1, std::memory_order_release);  // [doorbell-made]
    // no order: the store of the ring end gives it
    made.identity_.store(doorbell::identity_of(ends[0], ends[1]), std::memory_order_relaxed);
    made.ring_end_.store(ends[0] + 1, std::memory_order_release);  // [doorbell-made]
    if (!is_new) made.state_.reopen();
    return {number_of(index), 0};
}

void doorbell_pool::forget() noexcept {
    const doorbell_id made = made_.load(std::memory_order_relaxed);  // no order: the only thread
    for (doorbell_id index = 0; index != made; ++index) {
        close_ends(at_[index]);
        new (&at_[index]) doorbell;
    }
    idle_.clear();
    closed_.clear();
    idle_count_.store(0, std::memory_order_relaxed);  // no order: the only thread
    made_.store(0, std::memory_order_relaxed);        // no order: the only thread
    // no order: the only thread
    forks_.store((forks_.load(std::memory_order_relaxed) + 1) % max_forks, std::memory_order_relaxed);
}

// Forgets the descriptors before it closes them. Otherwise a child that is forked between the two steps would later
// close whatever gets the numbers of these descriptors next. Closes nothing if the program has already closed the
// descriptors, because something else may have got their numbers.
void doorbell_pool::close_ends(doorbell& bell) noexcept {
    const bool is_ours = bell.is_as_opened();
    const int ring_end = doorbell::descriptor(bell.ring_end_);
    const int wait_end = doorbell::descriptor(bell.wait_end_);
    bell.ring_end_.store(0, std::memory_order_relaxed);  // no order: nobody may use it (doorbells-3)
    bell.wait_end_.store(0, std::memory_order_relaxed);  // no order: the doorbell has no owner
    bell.identity_.store(0, std::memory_order_relaxed);  // no order: nobody may use it
    if (!is_ours) return;
    if (wait_end >= 0 && wait_end != ring_end) close_descriptor(wait_end);
    if (ring_end >= 0) close_descriptor(ring_end);
}

void die_of_closed_doorbell() noexcept {
    die("tocsin: the program closed a descriptor that tocsin opened and on which a thread waits; "
        "the thread's wake-ups are lost.\n");
}

}  // namespace tocsin::platform

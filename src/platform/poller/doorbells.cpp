// State
//   A doorbell is a word `turn` (rung or not, and how many rings were answered) and an object of the system that can be
//   polled. There is a fixed table of them; the unused ones form a stack by their numbers. Each thread keeps one back
//   for itself.
//
// Invariants
//   doorbells-1  Whoever moves `turn` from not rung to rung, and nobody else, strikes the object, once. So a ring costs
//       one system call, and none while the last one is unanswered.
//   doorbells-2  Only the sleeper answers, after it has seen the object struck. So no strike is ever late: the object's
//       state belongs to the current turn.
//   doorbells-3  A doorbell, once made, keeps its number and its descriptors for the life of the process.
//   doorbells-4  A number also says after how many forks it was given, so those of a parent name nothing in its child.
//       Forks (one child's child after the other) are counted in a ring of 131,071, so that no number is no_doorbell.
//   doorbells-5  A doorbell is taken by one thread or one poll set, or is in the stack, or is kept by a thread.
//
// Because of doorbells-2 the object need not be put back. On Linux it is an event counter whose strikes take turns: an
// even one fills it (it becomes readable), an odd one empties it (it becomes writable). The sleeper polls for the one
// that comes next. So it never has to read, and a wake-up is two system calls in all.
//
// No lost wake-up: a ring that finds `rung` set makes no call. The strike of the thread that set it has been made or is
// about to be made; it ends the sleep, and is answered after both rings. What the second ringer did before its ring is
// visible to the sleeper after its answer [doorbell-ring]. A ringer that is delayed between its two steps delays
// everybody who relies on it. Between them there is only the entry into the system.
//
// Memory order
//   [doorbell-ring]  ring() and answer() are read-modify-writes of one word: of any two, the later sees what came
//                    before the earlier.
//   [doorbell-made]  a doorbell's word is ready before its descriptor is there.
//   [doorbell-free]  the stack: a doorbell is pushed before it is popped. The number of changes, counted with the top,
//                    keeps an old top from being taken for a new one.
//
// Several copies of the library in a process use the table of the first (shared_table.hpp); a thread keeps one doorbell
// for each copy.
//
// Checked by: tests/model/doorbell_model_test.cpp and doorbell_pool_model_test.cpp (P9), and over every backend by
// tests/internal/doorbell_test.cpp.
#include "platform/poller/doorbells.hpp"

#include "platform/system/system.hpp"

#include <cerrno>
#include <new>

namespace tocsin::platform {
namespace {

// What a thread keeps between its waits. It has no destructor, so that it can be used until the very end of the thread;
// `ending` has one, and once that has run, nothing is kept any more.
struct kept_doorbell {
    doorbell_pool* pool;
    doorbell_id bell;
    bool ended;
};
constinit thread_local kept_doorbell kept{};

struct thread_end {
    bool awaited = false;
    ~thread_end() {
        kept.ended = true;
        if (doorbell_pool* const pool = kept.pool) {
            kept.pool = nullptr;
            pool->release(kept.bell);
        }
    }
};
thread_local thread_end ending;

// Not on Windows, where some compilers destroy a thread's objects after they have freed their storage (MinGW-w64 with
// GCC 12): what such a thread kept would be lost. Taking one from the pool costs one exchange there.
#if defined(_WIN32)
constexpr bool threads_keep_one = false;
#else
constexpr bool threads_keep_one = true;
#endif

constexpr std::uint64_t changed_once = std::uint64_t{1} << 32;

}  // namespace

doorbell_id doorbell_pool::take_kept() noexcept {
    if (kept.pool != this) return no_doorbell;
    kept.pool = nullptr;
    return find(kept.bell) != nullptr ? kept.bell : no_doorbell;
}

doorbell_id doorbell_pool::number_of(doorbell_id index) const noexcept {
    return forks_.load(std::memory_order_relaxed) * most + index;  // no order: see forget()
}

void doorbell_pool::give_back(doorbell_id bell) noexcept {
    if (!threads_keep_one || kept.ended || kept.pool != nullptr) return release(bell);
    ending.awaited = true;  // makes it, so that its destructor runs at the thread's end
    kept.bell = bell;
    kept.pool = this;
}

doorbell_id doorbell_pool::pop() noexcept {
    std::uint64_t top = free_.load(std::memory_order_acquire);  // [doorbell-free]
    for (;;) {
        const auto first = static_cast<doorbell_id>(top);
        if (first == 0) return no_doorbell;
        // no order: if another thread pops it first, the exchange fails
        const doorbell_id next = at_[first - 1].next_free_.load(std::memory_order_relaxed);
        const std::uint64_t popped = ((top & ~(changed_once - 1)) + changed_once) | next;
        // [doorbell-free]
        if (free_.compare_exchange_weak(top, popped, std::memory_order_acquire)) return number_of(first - 1);
    }
}

void doorbell_pool::release(doorbell_id bell) noexcept {
    doorbell* const freed = find(bell);
    if (freed == nullptr) return;                               // of a poll set from before a fork
    std::uint64_t top = free_.load(std::memory_order_relaxed);  // no order: the exchange gives it
    std::uint64_t pushed;
    do {
        // no order: the exchange gives it
        freed->next_free_.store(static_cast<doorbell_id>(top), std::memory_order_relaxed);
        pushed = ((top & ~(changed_once - 1)) + changed_once) | (bell % most + 1);
    } while (!free_.compare_exchange_weak(top, pushed, std::memory_order_release));  // [doorbell-free]
}

taken_doorbell doorbell_pool::add(const int (&ends)[2]) noexcept {
    doorbell_id index = made_.load(std::memory_order_relaxed);  // no order: a number
    do {
        if (index == most) {
            close_ends(ends[0], ends[1]);
            return {no_doorbell, EMFILE};
        }
        // no order: a number
    } while (!made_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
    doorbell& made = at_[index];
    made.wait_end_.store(ends[1] + 1, std::memory_order_release);  // [doorbell-made]
    made.ring_end_.store(ends[0] + 1, std::memory_order_release);  // [doorbell-made]
    return {number_of(index), 0};
}

void doorbell_pool::forget() noexcept {
    const doorbell_id made = made_.load(std::memory_order_relaxed);  // no order: the only thread
    for (doorbell_id index = 0; index != made; ++index) {
        close_ends(doorbell::descriptor(at_[index].ring_end_), at_[index].wait_end());
        new (&at_[index]) doorbell;
    }
    free_.store(0, std::memory_order_relaxed);  // no order: the only thread
    made_.store(0, std::memory_order_relaxed);  // no order: the only thread
    // no order: the only thread
    forks_.store((forks_.load(std::memory_order_relaxed) + 1) % most_forks, std::memory_order_relaxed);
}

void doorbell_pool::close_ends(int ring_end, int wait_end) noexcept {
    if (wait_end != ring_end) close_descriptor(wait_end);
    close_descriptor(ring_end);
}

void die_of_closed_doorbell() noexcept {
    die("tocsin: the program closed a descriptor that tocsin opened and on which a thread waits; "
        "the thread's wake-ups are lost.\n");
}

}  // namespace tocsin::platform

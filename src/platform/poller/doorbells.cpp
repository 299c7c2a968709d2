// State
//   A doorbell is a word `turn` (rung or not, and how many rings were answered) and, while it is open, an object of the
//   system that can be polled. There is a fixed table of them; those that nobody has form two stacks by their numbers,
//   the open ones (`idle`) and the closed ones. Each thread keeps one back for itself.
//
// Invariants
//   doorbells-1  Whoever moves `turn` from not rung to rung, and nobody else, strikes the object, once. So a ring costs
//       one system call, and none while the last one is unanswered.
//   doorbells-2  Only the sleeper answers, after it has seen the object struck. So no strike is ever late: the object's
//       state belongs to the current turn.
//   doorbells-3  Who may strike, may use the descriptors. So a doorbell is closed by a thread that has moved `turn` to
//       rung like a ringer, and that closes the descriptors instead of striking. It stays rung while it is closed, so
//       every later ring makes no call. If it is rung already, the closing thread looks for the strike and answers it.
//       A strike that is still to come keeps the doorbell open: then it goes to the idle ones, however many there are.
//       Whoever opens it again moves `turn` to not rung, with the parity of a new object, after its descriptors are
//       there.
//   doorbells-4  A number also says after how many forks it was given, so those of a parent name nothing in its child.
//       Forks (one child's child after the other) are counted in a ring of 131,071, so that no number is no_doorbell.
//   doorbells-5  A doorbell is taken by one thread or one poll set, or is in one of the stacks, or is kept by a thread.
//       At most `most_idle` stay open that nobody has, except for those that were rung and not yet struck when they
//       were to be closed. The next thread that needs one takes it and answers.
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
//   [doorbell-made]  a new doorbell's word is ready before its descriptors are there; those of one that is opened again
//                    are there before its word says that it may be struck.
//   [doorbell-free]  the stacks: a doorbell is pushed before it is popped. The number of changes, counted with the top,
//                    keeps an old top from being taken for a new one.
//
// A ring that comes late reaches at worst the next owner of the number, even if the doorbell was closed in between.
//
// A program that closes descriptors which it did not open (closefrom) may get a doorbell's number for a file of its
// own. A checked build notices: it compares what the number is with what was opened, before each strike and each sleep.
// Every build does so before it closes a doorbell. That can't tell two event counters (Linux) from each other, nor an
// event counter from an epoll instance or a timer.
//
// Several copies of the library in a process use the table of the first (shared_table.hpp); a thread keeps one doorbell
// for each copy. A copy that is unloaded closes the idle doorbells of its table. Nobody has any others then: a thread
// that keeps one keeps the copy loaded until it ends, and so does a copy that uses the table.
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

// What a thread keeps between its waits. It has no destructor, so that it can be used until the very end of the thread;
// `ending` has one, and once that has run, nothing is kept any more.
struct kept_doorbell {
    doorbell_id bell;
    std::uint8_t pool;  // the number of its pool; 0: none is kept
    bool ended;
};
constinit thread_local kept_doorbell kept{};

// The pools whose doorbells threads keep, by their numbers from 1 on. A thread-local number takes less than a pointer
// of what is scarce (shared_table/thread_slots.hpp).
constinit detail::atomic<doorbell_pool*> pools[2]{};

doorbell_pool* pool_of(std::uint8_t number) noexcept {
    return pools[number - 1].load(std::memory_order_relaxed);  // no order: an address of static storage
}

// 0: there are more pools than numbers (in tests).
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

// Not on Windows, where some compilers destroy a thread's objects after they have freed their storage (MinGW-w64 with
// GCC 12): what such a thread kept would be lost. Taking one from the pool costs one exchange there.
#if defined(_WIN32)
constexpr bool threads_keep_one = false;
#else
constexpr bool threads_keep_one = true;
#endif

constexpr std::uint64_t changed_once = std::uint64_t{1} << 32;
constexpr std::uint64_t changes = ~std::uint64_t{0} << 32;  // the part of a top that counts them

}  // namespace

doorbell_id doorbell_pool::take_kept() noexcept {
    if (kept.pool == 0 || pool_of(kept.pool) != this) return no_doorbell;
    kept.pool = 0;
    return find(kept.bell) != nullptr ? kept.bell : no_doorbell;
}

doorbell_id doorbell_pool::number_of(doorbell_id index) const noexcept {
    return forks_.load(std::memory_order_relaxed) * most + index;  // no order: see forget()
}

void doorbell_pool::give_back(doorbell_id bell) noexcept {
    if (!threads_keep_one || kept.ended || kept.pool != 0) return release(bell);
    const std::uint8_t pool = platform::number_of(this);
    if (pool == 0) return release(bell);
    ending.awaited = true;  // makes it, so that its destructor runs at the thread's end
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
    if (find(bell) == nullptr) return;  // of a poll set from before a fork
    const doorbell_id index = bell % most;
    const bool enough =
        idle_count_.fetch_add(1, std::memory_order_relaxed) >= most_idle;  // no order: a number
    if (!enough || !close(index)) return idle_.push(at_, index);
    idle_count_.fetch_sub(1, std::memory_order_relaxed);  // no order: a number
}

// False: a strike is still to come.
bool doorbell_pool::close(doorbell_id index) noexcept {
    doorbell& bell = at_[index];
    if (!bell.turn_.close()) {
        const auto answers =
            answer_if_struck_.load(std::memory_order_relaxed);  // no order: while it is loaded
        if (answers == nullptr || !bell.is_as_opened() || !answers(bell) || !bell.turn_.close()) return false;
    }
    close_ends(bell);
    closed_.push(at_, index);
    return true;
}

void doorbell_pool::close_idle() noexcept {
    for (doorbell_id bell = take_idle(); bell != no_doorbell; bell = take_idle()) {
        (void)close(bell % most);  // else it stays open: a thread may still be about to strike it
    }
}

taken_doorbell doorbell_pool::open(const int (&ends)[2]) noexcept {
    doorbell_id index = closed_.pop(at_);
    const bool is_new = index == no_doorbell;
    if (is_new) {
        index = made_.load(std::memory_order_relaxed);  // no order: a number
        do {
            if (index == most) {
                if (ends[1] != ends[0]) close_descriptor(ends[1]);
                close_descriptor(ends[0]);
                return {no_doorbell, EMFILE};
            }
            // no order: a number
        } while (!made_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
    }
    doorbell& made = at_[index];
    made.wait_end_.store(ends[1] + 1, std::memory_order_release);  // [doorbell-made]
    // no order: the ring end's gives it
    made.identity_.store(doorbell::identity_of(ends[0], ends[1]), std::memory_order_relaxed);
    made.ring_end_.store(ends[0] + 1, std::memory_order_release);  // [doorbell-made]
    if (!is_new) made.turn_.reopen();
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
    forks_.store((forks_.load(std::memory_order_relaxed) + 1) % most_forks, std::memory_order_relaxed);
}

// Forgets them first: a child that is forked in between must not close what gets their numbers next. Nor may this, if
// the program has closed them.
void doorbell_pool::close_ends(doorbell& bell) noexcept {
    const bool is_ours = bell.is_as_opened();
    const int ring_end = doorbell::descriptor(bell.ring_end_);
    const int wait_end = doorbell::descriptor(bell.wait_end_);
    bell.ring_end_.store(0, std::memory_order_relaxed);  // no order: nobody may use it (doorbells-3)
    bell.wait_end_.store(0, std::memory_order_relaxed);  // no order: it has no owner
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

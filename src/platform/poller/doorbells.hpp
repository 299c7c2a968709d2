// The pool of doorbells under every poller (poller.hpp), and the part of a doorbell that is the same on every system.
// The argument: doorbells.cpp.
#pragma once

#include "platform/poller/poller.hpp"
#include "platform/system/layout_hash.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/sanitizer.hpp>

#include <cstddef>
#include <cstdint>

extern "C" void __tsan_acquire(void* address);  // NOLINT(bugprone-reserved-identifier): ThreadSanitizer's own
extern "C" void __tsan_release(void* address);  // NOLINT(bugprone-reserved-identifier): ThreadSanitizer's own

namespace tocsin::platform {

// The word that says who strikes the object, and how.
class doorbell_turn {
public:
    // Whether the coming ring is an even one: the first, the third and so on. For the sleeper.
    bool even() const noexcept {
        return is_even(turn_.load(std::memory_order_relaxed));  // no order: only the sleeper changes it
    }
    // The sleeper has seen the object struck.
    void answer() noexcept {
        turn_.fetch_add(rung, std::memory_order_acq_rel);  // [doorbell-ring] the carry counts the answer
    }

    // `strike(even)` makes the object ready.
    template <class Strike>
    void ring(Strike strike) noexcept {
        const std::uint32_t before = turn_.fetch_or(rung, std::memory_order_acq_rel);  // [doorbell-ring]
        if ((before & rung) == 0) strike(is_even(before));
    }

    // Takes the right to strike, so that nobody else strikes; false if somebody has it. Until reopen().
    bool close() noexcept {
        std::uint32_t seen = turn_.load(std::memory_order_relaxed);  // no order: the exchange decides
        return (seen & rung) == 0 &&
               turn_.compare_exchange_strong(seen, seen | rung,
                                             std::memory_order_acq_rel,   // [doorbell-ring]
                                             std::memory_order_relaxed);  // no order: it stays open
    }
    // With a new object, which has not been struck.
    void reopen() noexcept {
        std::uint32_t next =
            turn_.load(std::memory_order_relaxed) + rung;  // no order: nobody else changes it
        if (!is_even(next)) next += 2 * rung;
        turn_.store(next, std::memory_order_release);  // [doorbell-made]
    }

private:
    static constexpr std::uint32_t rung = 1;
    static bool is_even(std::uint32_t turn) noexcept { return (turn & 2) == 0; }

    detail::atomic<std::uint32_t> turn_{0};  // the lowest bit: rung; above it: how many rings were answered
};

// A poll or a ring found that the program has closed a descriptor of a doorbell: wake-ups are lost.
[[noreturn]] void die_of_closed_doorbell() noexcept;

// A turn, and an object of the system that can be polled, if it is open.
class doorbell {
public:
    // What the sleeper polls; and whether it waits for an even strike.
    int wait_end() const noexcept { return descriptor(wait_end_); }
    bool even() const noexcept { return turn_.even(); }

    void answer() noexcept {
        turn_.answer();
        if constexpr (detail::thread_sanitizer) __tsan_acquire(&turn_);
    }

    // `strike(descriptor, even)` makes the object ready.
    template <class Strike>
    void ring(Strike strike) noexcept {
        if (descriptor(ring_end_) < 0) return;  // never made, or closed
        turn_.ring([&](bool even) {
            check();
            // The answer comes after the strike, which ThreadSanitizer cannot see: the system orders the two.
            if constexpr (detail::thread_sanitizer) __tsan_release(&turn_);
            strike(descriptor(ring_end_), even);  // doorbells-3: while this thread may strike, it stays open
        });
    }

    // In a checked build, stops the program if its descriptors are not those that the library opened any more.
    void check() const noexcept {
#if TOCSIN_CHECKED
        if (!is_as_opened()) die_of_closed_doorbell();
#endif
    }

private:
    friend class doorbell_pool;
    friend class doorbell_stack;
    friend constexpr std::uint64_t doorbells_layout();
    using descriptor_field = detail::atomic<int>;  // one more than the descriptor; 0: none

    static int descriptor(const descriptor_field& field) noexcept {
        return field.load(std::memory_order_acquire) - 1;  // [doorbell-made]
    }
    static std::uint32_t identity_of(int ring_end, int wait_end) noexcept {
        const std::uint32_t first = descriptor_identity(ring_end);
        return ring_end == wait_end ? first : first * 31 + descriptor_identity(wait_end);
    }
    bool is_as_opened() const noexcept {
        const std::uint32_t known =
            identity_.load(std::memory_order_relaxed);  // no order: [doorbell-made] gives it
        return known == 0 || known == identity_of(descriptor(ring_end_), descriptor(wait_end_));
    }

    doorbell_turn turn_;
    descriptor_field ring_end_{0};
    descriptor_field wait_end_{0};
    detail::atomic<std::uint32_t> identity_{0};  // of its descriptors when they were opened; 0: not known
    detail::atomic<doorbell_id> next_{0};        // in its stack
};

// Doorbells of a pool that nobody has, by their indices.
class doorbell_stack {
public:
    // No index: no_doorbell.
    doorbell_id pop(const doorbell* all) noexcept;
    void push(doorbell* all, doorbell_id index) noexcept;
    void clear() noexcept { top_.store(0, std::memory_order_relaxed); }  // no order: the only thread

private:
    // Lower half: 1 more than the first one; upper half: the number of changes.
    detail::atomic<std::uint64_t> top_{0};
};

class doorbell_pool {
public:
    // More threads than a Linux system usually allows to a process.
    static constexpr doorbell_id most = 32'768;
    // So many doorbells that nobody has stay open (and those that are being struck while their thread ends).
    static constexpr std::uint32_t most_idle = 8;
    // How many forks, each in the child of the one before, the numbers tell apart.
    static constexpr doorbell_id most_forks = no_doorbell / most;

    // A number says which doorbell, and after how many forks it was given: one from before a fork is nobody's.
    doorbell& operator[](doorbell_id bell) noexcept { return at_[bell % most]; }
    doorbell* find(doorbell_id bell) noexcept {
        const doorbell_id forks = forks_.load(std::memory_order_relaxed);  // no order: see forget()
        return bell / most == forks ? &at_[bell % most] : nullptr;
    }

    // The one that the thread kept, else `acquire`.
    template <class Make>
    taken_doorbell take(Make make) noexcept {
        const doorbell_id kept = take_kept();
        return kept != no_doorbell ? taken_doorbell{kept, 0} : acquire(make);
    }
    // The thread keeps it if it keeps none yet, else `release`.
    void give_back(doorbell_id bell) noexcept;

    // An open one from the pool, else one made anew: `make(ends)` returns an error, or 0 and gives two descriptors (may
    // be the same), where to ring and where to wait.
    template <class Make>
    taken_doorbell acquire(Make make) noexcept {
        if (const doorbell_id idle = take_idle(); idle != no_doorbell) return {idle, 0};
        int ends[2] = {-1, -1};
        const int error = make(ends);
        return error != 0 ? taken_doorbell{no_doorbell, error} : open(ends);
    }
    // It stays open for the next one, or is closed if enough are.
    void release(doorbell_id bell) noexcept;

    // Closes those that nobody has. For a copy of the library that is unloaded.
    void close_idle() noexcept;

    template <class Strike>
    void ring(doorbell_id bell, Strike strike) noexcept {
        if (doorbell* const found = find(bell)) found->ring(strike);
    }

    // In the child of a fork.
    void forget() noexcept;

private:
    friend class pool_owner;
    friend constexpr std::uint64_t doorbells_layout();

    doorbell_id take_kept() noexcept;
    doorbell_id take_idle() noexcept;
    doorbell_id number_of(doorbell_id index) const noexcept;
    taken_doorbell open(const int (&ends)[2]) noexcept;
    bool close(doorbell_id index) noexcept;
    static void close_ends(doorbell& bell) noexcept;

    doorbell_stack idle_;    // open
    doorbell_stack closed_;  // to be opened again
    detail::atomic<bool (*)(doorbell&) noexcept> answer_if_struck_{nullptr};
    detail::atomic<std::uint32_t> idle_count_{0};  // at least as many as are in `idle_`
    detail::atomic<doorbell_id> made_{0};
    detail::atomic<doorbell_id> forks_{0};
    doorbell at_[most];
};

// Beside a pool, which is never destroyed itself.
class pool_owner {
public:
    // `answer_if_struck(bell)` looks without sleeping, and returns whether it has answered the bell.
    pool_owner(doorbell_pool& pool, bool (*answer_if_struck)(doorbell&) noexcept) noexcept : pool_(pool) {
        pool_.answer_if_struck_.store(answer_if_struck,
                                      std::memory_order_relaxed);  // no order: while it is loaded
    }
    ~pool_owner() { pool_.close_idle(); }
    pool_owner(const pool_owner&) = delete;
    pool_owner& operator=(const pool_owner&) = delete;

private:
    doorbell_pool& pool_;
};

// What copies of the library share of all this (platform/shared_table/layout.hpp).
constexpr std::uint64_t doorbells_layout() {
    layout_hash all("doorbells");
    all.add<doorbell>({TOCSIN_MEMBER(doorbell, turn_), TOCSIN_MEMBER(doorbell, ring_end_),
                       TOCSIN_MEMBER(doorbell, wait_end_), TOCSIN_MEMBER(doorbell, identity_),
                       TOCSIN_MEMBER(doorbell, next_)});
    all.add<doorbell_pool>({TOCSIN_MEMBER(doorbell_pool, idle_), TOCSIN_MEMBER(doorbell_pool, closed_),
                            TOCSIN_MEMBER(doorbell_pool, answer_if_struck_),
                            TOCSIN_MEMBER(doorbell_pool, idle_count_), TOCSIN_MEMBER(doorbell_pool, made_),
                            TOCSIN_MEMBER(doorbell_pool, forks_), TOCSIN_MEMBER(doorbell_pool, at_)});
    return all.value();
}

}  // namespace tocsin::platform

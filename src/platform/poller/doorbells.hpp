// SPDX-License-Identifier: Apache-2.0
// The pool of doorbells under every poller (poller.hpp), and the part of a doorbell that is the same on every system. A
// doorbell has an object of the system, for example a pipe. A thread that waits for the doorbell polls the object. A
// ring *strikes* the object (makes it ready) unless an earlier ring is unanswered. The thread *answers* once it has
// seen the object struck. Why it is correct: doorbells.cpp.
#pragma once

#include "platform/poller/poller.hpp"
#include "platform/system/layout_hash.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/sanitizer.hpp>

#include <cstddef>
#include <cstdint>

// Functions of ThreadSanitizer.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace tocsin::platform {

// A doorbell's word. It decides which thread strikes the object, and whether the strike is an even or an odd one.
class ring_state {
public:
    // Whether the next strike is an even one, that is, whether an even number of rings has been answered. So the first
    // strike is even. Only the owner calls this.
    bool even() const noexcept {
        return is_even(word_.load(std::memory_order_relaxed));  // no order: only the owner changes the count
    }
    // Called by the owner after it has seen the object struck.
    void answer() noexcept {
        word_.fetch_add(rung, std::memory_order_acq_rel);  // [doorbell-ring] clears `rung`; the carry counts
    }

    // Calls `strike(even)`, which makes the object ready, unless an earlier ring is unanswered.
    template <class Strike>
    void ring(Strike strike) noexcept {
        const std::uint32_t before = word_.fetch_or(rung, std::memory_order_acq_rel);  // [doorbell-ring]
        if ((before & rung) == 0) strike(is_even(before));
    }

    // Takes the right to strike until reopen(), so that no other thread strikes. Returns false if the doorbell is rung
    // already.
    bool close() noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange decides
        return (seen & rung) == 0 &&
               word_.compare_exchange_strong(seen, seen | rung,
                                             std::memory_order_acq_rel,   // [doorbell-ring]
                                             std::memory_order_relaxed);  // no order: the bell stays open
    }
    // Called after a closed doorbell has got a new object, which has not been struck yet.
    void reopen() noexcept {
        std::uint32_t next =
            word_.load(std::memory_order_relaxed) + rung;  // no order: nobody else changes it
        if (!is_even(next)) next += 2 * rung;
        word_.store(next, std::memory_order_release);  // [doorbell-made]
    }

private:
    static constexpr std::uint32_t rung = 1;
    static bool is_even(std::uint32_t word) noexcept { return (word & 2) == 0; }

    detail::atomic<std::uint32_t> word_{0};  // lowest bit: rung; the bits above: how many answers
};

// Called when a poll or a ring finds that the program has closed a descriptor of a doorbell, so that wake-ups are lost.
[[noreturn]] void die_of_closed_doorbell() noexcept;

// A doorbell: its ring_state and, while it is open, the descriptors of its object.
class doorbell {
public:
    // The descriptor that the sleeper polls.
    int wait_end() const noexcept { return descriptor(wait_end_); }
    // Whether the sleeper waits for an even strike.
    bool even() const noexcept { return state_.even(); }

    void answer() noexcept {
        state_.answer();
        if constexpr (detail::thread_sanitizer) __tsan_acquire(&state_);
    }

    // As ring_state::ring, with `strike(descriptor, even)`.
    template <class Strike>
    void ring(Strike strike) noexcept {
        if (descriptor(ring_end_) < 0) return;  // never made, or closed
        state_.ring([&](bool even) {
            check();
            // The system orders the answer after the strike. ThreadSanitizer cannot see that, so this tells it.
            if constexpr (detail::thread_sanitizer) __tsan_release(&state_);
            strike(descriptor(ring_end_), even);  // doorbells-3: the descriptor stays open until the strike
        });
    }

    // In a checked build, stops the program if the descriptors no longer refer to what the library opened.
    void check() const noexcept {
#if TOCSIN_CHECKED
        if (!is_as_opened()) die_of_closed_doorbell();
#endif
    }

private:
    friend class doorbell_pool;
    friend class doorbell_stack;
    friend constexpr std::uint64_t doorbells_layout();
    using descriptor_field = detail::atomic<int>;  // the descriptor plus 1; 0: none

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

    ring_state state_;
    descriptor_field ring_end_{0};
    descriptor_field wait_end_{0};
    detail::atomic<std::uint32_t> identity_{0};  // what the descriptors referred to when opened; 0: not known
    detail::atomic<doorbell_id> next_{0};        // the doorbell below in the stack: its index plus 1; 0: none
};

// A stack of a pool's doorbells that nobody has, by their indices.
class doorbell_stack {
public:
    // Returns an index, or no_doorbell if the stack is empty.
    doorbell_id pop(const doorbell* all) noexcept;
    void push(doorbell* all, doorbell_id index) noexcept;
    void clear() noexcept { top_.store(0, std::memory_order_relaxed); }  // no order: the only thread

private:
    // The lower half is the index of the topmost doorbell plus 1; 0: none. The upper half counts the changes.
    detail::atomic<std::uint64_t> top_{0};
};

class doorbell_pool {
public:
    // The size of the table. A Linux system usually allows a process fewer threads than that.
    static constexpr doorbell_id max = 32'768;
    // At most this many doorbells that nobody has stay open, apart from those that could not be closed (doorbells-3).
    static constexpr std::uint32_t max_idle = 8;
    // Numbers tell this many forks apart in one line of descent: parent, child, grandchild ...
    static constexpr doorbell_id max_forks = no_doorbell / max;

    // A doorbell's number holds its index, and how many forks had happened when the number was given. A number from
    // before a fork names no doorbell in the child (doorbells-4).
    doorbell& operator[](doorbell_id bell) noexcept { return at_[bell % max]; }
    doorbell* find(doorbell_id bell) noexcept {
        const doorbell_id forks = forks_.load(std::memory_order_relaxed);  // no order: see forget()
        return bell / max == forks ? &at_[bell % max] : nullptr;
    }

    // Returns the doorbell that the thread kept. If it kept none, acquires one.
    template <class Make>
    taken_doorbell take(Make make) noexcept {
        const doorbell_id kept = take_kept();
        return kept != no_doorbell ? taken_doorbell{kept, 0} : acquire(make);
    }
    // The thread keeps the doorbell if it can and keeps none yet. Otherwise the doorbell is released.
    void give_back(doorbell_id bell) noexcept;

    // Takes an open doorbell from the pool. If there is none, opens one with `make(ends)`. `make` either returns an
    // error, or sets `ends` to the descriptor to ring and the descriptor to wait on (they may be the same) and returns
    // 0.
    template <class Make>
    taken_doorbell acquire(Make make) noexcept {
        if (const doorbell_id idle = take_idle(); idle != no_doorbell) return {idle, 0};
        int ends[2] = {-1, -1};
        const int error = make(ends);
        return error != 0 ? taken_doorbell{no_doorbell, error} : open(ends);
    }
    // Puts the doorbell back. It stays open for its next owner, or is closed if enough idle ones are open.
    void release(doorbell_id bell) noexcept;

    // Closes the doorbells that nobody has. Called when the pool's copy of the library is unloaded.
    void close_idle() noexcept;

    template <class Strike>
    void ring(doorbell_id bell, Strike strike) noexcept {
        if (doorbell* const found = find(bell)) found->ring(strike);
    }

    // Called in the child of a fork: closes and forgets all doorbells.
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
    detail::atomic<std::uint32_t> idle_count_{0};  // at least the number of doorbells in `idle_`
    detail::atomic<doorbell_id> made_{0};
    detail::atomic<doorbell_id> forks_{0};
    doorbell at_[max];
};

// Closes a pool's idle doorbells when its copy of the library is unloaded. The pool itself is never destroyed.
class pool_owner {
public:
    // `answer_if_struck(bell)` looks, without sleeping, whether the bell's object is struck. If so, it answers the bell
    // and returns true.
    pool_owner(doorbell_pool& pool, bool (*answer_if_struck)(doorbell&) noexcept) noexcept : pool_(pool) {
        pool_.answer_if_struck_.store(answer_if_struck,
                                      std::memory_order_relaxed);  // no order: the copy is being loaded
    }
    ~pool_owner() { pool_.close_idle(); }
    pool_owner(const pool_owner&) = delete;
    pool_owner& operator=(const pool_owner&) = delete;

private:
    doorbell_pool& pool_;
};

// A number for the layout of the doorbells, which copies of the library share (platform/shared_table/layout.hpp).
constexpr std::uint64_t doorbells_layout() {
    layout_hash all("doorbells");
    all.add<doorbell>({TOCSIN_MEMBER(doorbell, state_), TOCSIN_MEMBER(doorbell, ring_end_),
                       TOCSIN_MEMBER(doorbell, wait_end_), TOCSIN_MEMBER(doorbell, identity_),
                       TOCSIN_MEMBER(doorbell, next_)});
    all.add<doorbell_pool>({TOCSIN_MEMBER(doorbell_pool, idle_), TOCSIN_MEMBER(doorbell_pool, closed_),
                            TOCSIN_MEMBER(doorbell_pool, answer_if_struck_),
                            TOCSIN_MEMBER(doorbell_pool, idle_count_), TOCSIN_MEMBER(doorbell_pool, made_),
                            TOCSIN_MEMBER(doorbell_pool, forks_), TOCSIN_MEMBER(doorbell_pool, at_)});
    return all.value();
}

}  // namespace tocsin::platform

// The pool of doorbells under every poller (poller.hpp), and the part of a doorbell that is the same on every system.
// The argument: doorbells.cpp.
#pragma once

#include "platform/poller/poller.hpp"

#include <tocsin/detail/atomic.hpp>

#include <cstddef>
#include <cstdint>

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

private:
    static constexpr std::uint32_t rung = 1;
    static bool is_even(std::uint32_t turn) noexcept { return (turn & 2) == 0; }

    detail::atomic<std::uint32_t> turn_{0};  // the lowest bit: rung; above it: how many rings were answered
};

// A turn, and an object of the system that can be polled.
class doorbell {
public:
    // What the sleeper polls; and whether it waits for an even strike.
    int wait_end() const noexcept { return descriptor(wait_end_); }
    bool even() const noexcept { return turn_.even(); }

    void answer() noexcept { turn_.answer(); }

    // `strike(descriptor, even)` makes the object ready.
    template <class Strike>
    void ring(Strike strike) noexcept {
        const int end = descriptor(ring_end_);
        if (end >= 0) turn_.ring([&](bool even) { strike(end, even); });
    }

private:
    friend class doorbell_pool;
    using descriptor_field = detail::atomic<int>;  // one more than the descriptor; 0: none

    static int descriptor(const descriptor_field& field) noexcept {
        return field.load(std::memory_order_acquire) - 1;  // [doorbell-made]
    }

    doorbell_turn turn_;
    descriptor_field ring_end_{0};
    descriptor_field wait_end_{0};
    detail::atomic<doorbell_id> next_free_{0};
};

class doorbell_pool {
public:
    // More threads than a Linux system usually allows to a process.
    static constexpr doorbell_id most = 32'768;
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

    // One from the pool, else a new one: `make(ends)` returns an error, or 0 and gives two descriptors (may be the
    // same), where to ring and where to wait.
    template <class Make>
    taken_doorbell acquire(Make make) noexcept {
        if (const doorbell_id free = pop(); free != no_doorbell) return {free, 0};
        int ends[2] = {-1, -1};
        const int error = make(ends);
        return error != 0 ? taken_doorbell{no_doorbell, error} : add(ends);
    }
    void release(doorbell_id bell) noexcept;

    template <class Strike>
    void ring(doorbell_id bell, Strike strike) noexcept {
        if (doorbell* const found = find(bell)) found->ring(strike);
    }

    // In the child of a fork.
    void forget() noexcept;

private:
    doorbell_id take_kept() noexcept;
    doorbell_id pop() noexcept;
    doorbell_id number_of(doorbell_id index) const noexcept;
    taken_doorbell add(const int (&ends)[2]) noexcept;
    static void close_ends(int ring_end, int wait_end) noexcept;

    // Lower half: 1 more than the first free one; upper half: the number of changes.
    detail::atomic<std::uint64_t> free_{0};
    detail::atomic<doorbell_id> made_{0};
    detail::atomic<doorbell_id> forks_{0};
    doorbell at_[most];
};

// A poll found a doorbell's descriptor closed: the program closed what the library opened, and wake-ups are lost.
[[noreturn]] void die_of_closed_doorbell() noexcept;

}  // namespace tocsin::platform

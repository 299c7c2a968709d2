// SPDX-License-Identifier: Apache-2.0
// A reader/writer lock in one word. Its threads sleep and wake as those of a bit lock do (src/bit_lock.cpp).
//
// State: the word holds
//   taken       Bit 0, on while threads have the lock: one thread exclusively, or all readers together. All threads
//               that wait for the lock sleep in the queue of this bit, in the order in which they came.
//   writer      A thread that wants the lock exclusively found it taken, and sleeps in the queue.
//   reader      The same for a thread that wants to read.
//   passes      How many arrivals have taken the free lock since `writer` or `reader` was turned on, or since a thread
//               of the queue took the lock.
//   count       How many readers have the lock.
//
// Invariants
//   shared_lock-1  A thread has the lock exclusively from the step that turns `taken` on to the unlock of bit 0.
//       Readers have it together: the first reader turns `taken` on, and the last frees bit 0. Any other reader joins
//       only by a step that finds the count above zero.
//   shared_lock-2  No reader joins the others while `writer` is on. A writer turns the bit on when it sleeps, and a
//       writer that takes the lock turns it off. So readers don't pass a writer that sleeps. (Exception: if several
//       writers sleep and one has had the lock, readers may pass the others until the next of these has been woken and
//       has looked at the word. Whoever unlocks or reads wakes threads of the queue in their order, so it will be.)
//   shared_lock-3  The reader that counts down to zero frees bit 0 in a second step. Between the two, a new reader
//       finds the count at zero, and waits.
//   shared_lock-4  A step that turns `writer` or `reader` on finds the lock taken. Its thread holds the queue's lock,
//       and then sleeps in the queue. A thread that has slept leaves the queue only when it takes the lock, and then it
//       turns its bit off and sets `passes` to zero. It takes the lock only once it was woken.
//   shared_lock-5  Any thread may take the free lock, whoever sleeps: so nobody who can run waits for a thread that
//       was woken and gets no processor. Each arrival that does so while `writer` or `reader` is on counts as a pass.
//       After `max_passes`, a free lock is left to the threads that were woken. Only a preferred arrival
//       (src/bit_lock.cpp) takes it even then: a real-time thread, or one that comes 20 ms after the wake.
//   shared_lock-6  A reader that has slept, or has found the lock free while others sleep, wakes the next thread of the
//       queue as an unlock does, unless `writer` is on. So readers that sleep are released one by another, and none of
//       them has to wait until the lock is free.
//
// If one thread holds the lock exclusively and nobody waits, the word is 1.
//
// No lost wake-up. bit_lock.cpp argues it for threads that sleep only while the lock is taken, and that take a free
// lock when they were woken. Two cases are left.
// - A reader sleeps because `writer` is on. Readers have the lock, so an unlock is to come: only a writer turns the bit
//   off, and no writer takes the lock while readers have it.
// - An arrival sleeps although the lock is free, because there have been `max_passes`. Then another thread sleeps, or
//   is on its way: the one that turned `writer` or `reader` on (shared_lock-4). It did so while the lock was taken, so
//   the last unlock came later, and takes the queue's lock later. That unlock finds the thread in the queue, and so has
//   marked a thread, or has found a marked one, or is still to look, and then also finds the arrival. A marked thread
//   that finds the lock free takes it. It unlocks it later, and finds the arrival in the queue.
// A reader that sleeps while readers have the lock, and no `writer` is on, sleeps behind a thread that was woken: if
// that is a reader, it joins, and wakes the next (shared_lock-6). If it is a writer, it turns `writer` on, and then an
// unlock is to come.
//
// Fairness. A thread that unlocks and locks at once, over and over, passes the others `max_passes` times at most once
// the first of the queue has turned its bit on. Then it goes to sleep at the end of the queue, unless it is preferred.
// The threads of the queue keep their places, and each unlock wakes the first, unless a more urgent one is woken
// (bit_lock.cpp has the bound).
//
// Memory order
//   [shared-lock] Each step that takes the lock acquires, and is a read-modify-write, as all other steps are. So a
//                   reader that joins acquires from the last exclusive holder's unlock, too ([lock-release] in
//                   bit_lock.cpp). Leaving the readers releases, and acquires from those who left before. So the last
//                   reader's unlock of bit 0 passes on what all readers did.
//
// Checked by: tests/model/win32_model_test.cpp (P24 of docs/proofs.md), win32/tests/unit/locks_test.cpp,
// win32/tests/unit/priorities_test.cpp.
#pragma once

#include <tocsin/bit_lock.hpp>
#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::win32 {

class shared_lock {
public:
    using word = detail::atomic<std::uint32_t>;

    // The parts of the word.
    static constexpr std::uint32_t taken_bit = 0b001;
    static constexpr std::uint32_t writer_bit = 0b010;
    static constexpr std::uint32_t reader_bit = 0b100;
    static constexpr std::uint32_t pass = 0b1000;
    static constexpr std::uint32_t max_passes = 7;
    static constexpr std::uint32_t one = pass * (max_passes + 1);  // of the count

    explicit shared_lock(word& in) noexcept : word_(in) {}

    // May fail although the lock is free, if it is left to threads that were woken.
    bool try_lock() noexcept {
        std::uint32_t seen = 0;
        // [lock-release] acquires what the last holder wrote.
        if (word_.compare_exchange_strong(seen, taken_bit, std::memory_order_acquire,
                                          std::memory_order_relaxed)) [[likely]]
            return true;
        return (seen & taken_bit) == 0 && take<writer_bit>(&word_, 0, detail::lock_taker::arrival, false);
    }
    void lock(spin_policy spin = {}) noexcept {
        if (!try_lock()) wait(take<writer_bit>, spin);
    }
    void unlock() noexcept { taken().unlock(); }

    // May fail although there are only readers, if a thread that waits for exclusive use was there first. See also
    // try_lock().
    bool try_lock_shared() noexcept {
        if (join_idle()) [[likely]]
            return true;
        if (!take<reader_bit>(&word_, 0, detail::lock_taker::arrival, false)) return false;
        wake_next_reader();
        return true;
    }
    void lock_shared(spin_policy spin = {}) noexcept {
        if (try_lock_shared()) return;
        wait(take<reader_bit>, spin);
        wake_next_reader();
    }
    void unlock_shared() noexcept {
        // [shared-lock] releases this thread's reads, and acquires the others' if it is the last.
        if (word_.fetch_sub(one, std::memory_order_acq_rel) < 2 * one) taken().unlock();
    }

private:
    static constexpr std::uint32_t waiting_bits = writer_bit | reader_bit;
    static constexpr std::uint32_t passes = pass * max_passes;

    bit_lock<std::uint32_t> taken() noexcept { return {word_, 0}; }

    void wait(decltype(detail::lock_word::take) with, spin_policy spin) noexcept {
        (void)detail::lock_slow({&word_, 0, with, true}, deadline::never(), spin);
    }

    // For readers, if nobody waits.
    bool join_idle() noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange decides
        while (seen == 0 || ((seen & waiting_bits) == 0 && seen >= one)) {
            // [shared-lock] [lock-release] acquires what the last exclusive holder wrote.
            if (word_.compare_exchange_weak(seen, (seen | taken_bit) + one, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return true;
        }
        return false;
    }

    void wake_next_reader() noexcept {
        // No order: while this thread reads, nobody turns the bit off.
        if ((word_.load(std::memory_order_relaxed) & writer_bit) == 0) detail::unlock_wake(&word_, 0);
    }

    // The word after it was taken, for `Kind` of thread.
    template <std::uint32_t Kind>
    static std::uint32_t taken_by(detail::lock_taker who, std::uint32_t seen) noexcept {
        const std::uint32_t next = (seen | taken_bit) + (Kind == reader_bit ? one : 0);
        if (who == detail::lock_taker::woken) return next & ~(Kind | passes);  // shared_lock-4
        const bool passes_others =
            who == detail::lock_taker::arrival && (seen & taken_bit) == 0 && (seen & waiting_bits) != 0;
        return next + (passes_others ? pass : 0);
    }

    // Takes the lock exclusively (`writer_bit`) or as a reader. See detail::lock_word.
    template <std::uint32_t Kind>
    static bool take(void* of, unsigned, detail::lock_taker who, bool parks) noexcept {
        auto& bits = *static_cast<word*>(of);
        std::uint32_t seen = bits.load(std::memory_order_relaxed);  // no order: the exchange decides
        for (;;) {
            const bool is_free = (seen & taken_bit) == 0;
            if (is_free && who == detail::lock_taker::arrival && (seen & passes) == passes) return false;
            const bool may_join = Kind == reader_bit && seen >= one && (seen & writer_bit) == 0;
            const bool takes = is_free || may_join;
            if (!takes && (!parks || (seen & Kind) != 0)) return false;
            // [shared-lock] [lock-release] acquires what the last holder wrote.
            if (bits.compare_exchange_weak(seen, takes ? taken_by<Kind>(who, seen) : seen | Kind,
                                           std::memory_order_acquire, std::memory_order_relaxed))
                return takes;
        }
    }

    word& word_;
};

}  // namespace tocsin::win32

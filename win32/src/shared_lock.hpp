// SPDX-License-Identifier: Apache-2.0
// A reader/writer lock in one word, made of two bit locks (include/tocsin/bit_lock.hpp) and a count.
//
// State: the word holds
//   taken       A bit lock. Its holder has the lock: one thread exclusively, or all readers together.
//   queue_lock  A bit lock. A thread that does not get the lock at once takes this first, and keeps it until it has the
//               lock.
//   count       How many readers have the lock.
//
// Invariants
//   shared_lock-1  A thread has the lock exclusively from the step that takes `taken` to the unlock of `taken`. Readers
//       have it together: the first reader takes `taken`, and the last frees it. A reader joins only by a step that
//       finds the count above zero, or while it has taken `taken` itself.
//   shared_lock-2  Only the holder of the queue_lock waits for `taken`. So at most one thread waits for `taken`, and
//       all others wait for the queue_lock. While the queue_lock is free, no thread waits for `taken`. A thread that
//       arrives while another holds the queue_lock waits for it, even if it could join the readers. So readers don't
//       pass a thread that waits for exclusive use. (Exception: while the queue_lock is free, because a thread that was
//       woken has not taken it yet, readers may pass those that wait for it.)
//   shared_lock-3  The reader that counts down to zero frees `taken` in a second step. Between the two, a new reader
//       finds the count at zero, and waits for `taken`.
//
// If one thread holds the lock exclusively and nobody waits, the word is 1.
//
// Memory order
//   [shared-lock] Joining the readers acquires, and leaving them releases. Each is a read-modify-write. So the last
//                   reader's unlock of `taken` passes on what all readers did ([lock-release] in bit_lock.hpp). A
//                   reader that joins sees what the first reader saw, because it acquires from the step by which the
//                   first reader joined.
//
// Checked by: tests/model/win32_model_test.cpp (P24 of docs/proofs.md), tests/win32_unit/locks_test.cpp.
#pragma once

#include <tocsin/bit_lock.hpp>
#include <tocsin/detail/atomic.hpp>

#include <cstdint>
#include <mutex>

namespace tocsin::win32 {

class shared_lock {
public:
    using word = detail::atomic<std::uint32_t>;

    explicit shared_lock(word& in) noexcept : word_(in) {}

    bool try_lock() noexcept {
        std::uint32_t seen = 0;
        // [lock-release] acquires what the last holder wrote.
        return word_.compare_exchange_strong(seen, taken_bit, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }
    void lock(spin_policy spin = {}) noexcept {
        if (try_lock()) return;
        queue_lock().lock(spin);
        taken().lock(spin);
        queue_lock().unlock();
    }
    void unlock() noexcept { taken().unlock(); }

    // May fail although there are only readers, while another thread is still acquiring the lock for shared use.
    bool try_lock_shared() noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange decides
        while (seen == 0 || ((seen & queue_lock_bit) == 0 && seen >= one)) {
            // [shared-lock] [lock-release] acquires what the last exclusive holder wrote.
            if (word_.compare_exchange_weak(seen, (seen | taken_bit) + one, std::memory_order_acq_rel,
                                            std::memory_order_relaxed))
                return true;
        }
        return false;
    }
    void lock_shared(spin_policy spin = {}) noexcept {
        if (try_lock_shared()) return;
        queue_lock().lock(spin);
        if (!join()) {
            taken().lock(spin);
            word_.fetch_add(one, std::memory_order_acq_rel);  // [shared-lock]
        }
        queue_lock().unlock();
    }
    void unlock_shared() noexcept {
        // [shared-lock] releases this thread's reads, and acquires the others' if it is the last.
        if (word_.fetch_sub(one, std::memory_order_acq_rel) < 2 * one) taken().unlock();
    }

private:
    static constexpr std::uint32_t taken_bit = 0b01;
    static constexpr std::uint32_t queue_lock_bit = 0b10;
    static constexpr std::uint32_t one = 0b100;

    bit_lock<std::uint32_t> taken() noexcept { return {word_, 0}; }
    bit_lock<std::uint32_t> queue_lock() noexcept { return {word_, 1}; }

    // For the holder of the queue_lock. False: there are no readers to join.
    bool join() noexcept {
        std::uint32_t seen = word_.load(std::memory_order_relaxed);  // no order: the exchange decides
        while (seen >= one) {
            // [shared-lock]
            if (word_.compare_exchange_weak(seen, seen + one, std::memory_order_acq_rel,
                                            std::memory_order_relaxed))
                return true;
        }
        return false;
    }

    word& word_;
};

}  // namespace tocsin::win32

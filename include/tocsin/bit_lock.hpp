// SPDX-License-Identifier: Apache-2.0
// A lock in one bit of a word of yours. The other bits remain yours.
//
//     std::atomic<std::uint32_t> flags{0};
//     tocsin::bit_lock guard(flags, 31);
//     std::unique_lock held(guard);
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/exceptions.hpp>
#include <tocsin/spin.hpp>

#include <climits>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace tocsin {
namespace detail {

// Which thread tries to take a lock.
enum class lock_taker : std::uint8_t {
    arrival,
    preferred,  // an arrival that need not wait for those that sleep (bit_lock.cpp)
    woken,      // has slept in the lock's queue
};

// The lock's word without its type.
struct lock_word {
    void* word;
    unsigned bit;
    // Tries to take the lock, and returns whether it did. If `parks`, the caller holds the lock of the queue, and
    // sleeps in the queue unless it takes the lock.
    bool (*take)(void* word, unsigned bit, lock_taker who, bool parks) noexcept;
    // Whether a thread that was woken and did not get the lock keeps its place in the queue.
    bool keeps_place = false;
};

TOCSIN_API bool lock_slow(const lock_word& lock, const deadline& until, spin_policy spin) noexcept;
TOCSIN_API void unlock_wake(const void* word, unsigned bit) noexcept;
// Checked builds: notes which thread has the lock (diagnose.hpp), after it was taken and before it is freed. On Linux,
// a thread that doesn't know its number yet is noted by a nickname, because its number would cost a system call.
TOCSIN_API void note_taken(const void* word, unsigned bit) noexcept;
TOCSIN_API void note_freed(const void* word, unsigned bit) noexcept;
[[noreturn]] TOCSIN_API void unlocked_twice(const void* word, unsigned bit) noexcept;

}  // namespace detail

// A lock in one bit of a word. A bit_lock is only a handle: any number of handles may refer to the same bit. Meets the
// requirements Lockable and TimedLockable. `Word` is an unsigned integer of 1, 2, 4 or 8 bytes.
// - Make handles where you use them, which costs nothing if the bit is a constant. A handle kept beside its word lies
//   in the cache line that the threads compete for. Each lock() then first fetches the handle. With two threads, this
//   made a use of the lock up to twice as long (Intel Xeon).
// - Not recursive.
// - Not fair, as std::mutex is not: a thread that arrives while the lock is free may take it before a thread that was
//   just woken. The woken thread then goes to the end of the queue.
// - One wake is in flight at a time: while a woken thread is on its way to the lock, an unlock wakes nobody else. There
//   are two exceptions. A thread that is more urgent than those on their way is woken at once. And once a woken thread
//   has been on its way for 20 ms, an unlock wakes another (docs/priorities.md).
// - Each bit of a word is a lock of its own: an unlock never wakes a thread that waits for another bit.
// - Do not destroy the word while another thread holds, takes or waits for the lock. A thread that has the lock may
//   destroy the word even before the previous holder's unlock() has returned.
template <class Word>
class bit_lock {
    static_assert(std::is_unsigned_v<Word> && sizeof(Word) <= 8,
                  "tocsin: a bit lock needs an unsigned integer of 1, 2, 4 or 8 bytes");

public:
    using word_type = detail::atomic<Word>;

    // Throws std::invalid_argument if the word has no such bit.
    constexpr bit_lock(word_type& word TOCSIN_LIFETIMEBOUND, unsigned bit) : word_(&word), bit_(bit) {
        if (bit >= sizeof(Word) * CHAR_BIT) {
            detail::throw_or_die(std::invalid_argument("tocsin::bit_lock: the word has no such bit"));
        }
    }

    // Blocks until the caller has the lock. Cost: one load and one read-modify-write if the lock is free.
    void lock(spin_policy spin = {}) noexcept {
        if (!try_lock()) (void)detail::lock_slow(erased(), deadline::never(), spin);
    }

    // Takes the lock if it is free, without blocking, and returns whether it did. Cost: one load, and one
    // read-modify-write if the lock is free.
    [[nodiscard]] bool try_lock() noexcept { return take(word_, bit_, detail::lock_taker::arrival, false); }

    // These block until the caller has the lock (true) or the deadline has passed (false). deadline.hpp says what a
    // deadline is.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> longest,
                                    spin_policy spin = {}) noexcept {
        return try_lock_until(longest, spin);
    }
    [[nodiscard]] bool try_lock_until(const deadline& until, spin_policy spin = {}) noexcept {
        return try_lock() || detail::lock_slow(erased(), until, spin);
    }

    // Frees the lock. What the caller did before is visible to the thread that takes the lock next. Checked builds stop
    // the program if the lock was not held. Cost: one read-modify-write and one load. If threads wait for this bit,
    // also a short lock, and a wake unless a woken thread is already on its way.
    void unlock() noexcept {
#if TOCSIN_CHECKED
        if (!is_taken(word_, bit_)) detail::unlocked_twice(word_, bit_);
        detail::note_freed(word_, bit_);
#endif
        const void* const address = word_;
        // [lock-release] releases; the next holder acquires. [wake-check]
        word_->fetch_and(static_cast<Word>(~mask(bit_)), std::memory_order_seq_cst);
        detail::unlock_wake(address, bit_);  // by the address alone: the word may be gone
    }

    // Which bit of which word the handle refers to.
    const word_type* word() const noexcept { return word_; }
    unsigned bit() const noexcept { return bit_; }

private:
    static constexpr Word mask(unsigned bit) noexcept { return static_cast<Word>(Word{1} << bit); }

    static bool take(void* word, unsigned bit, detail::lock_taker, bool) noexcept {
        auto& bits = *static_cast<word_type*>(word);
        Word seen = bits.load(std::memory_order_relaxed);  // no order: the exchange decides
        while ((seen & mask(bit)) == 0) {
            // [lock-release] acquires what the last holder wrote.
            if (bits.compare_exchange_weak(seen, static_cast<Word>(seen | mask(bit)),
                                           std::memory_order_acquire, std::memory_order_relaxed)) {
#if TOCSIN_CHECKED
                detail::note_taken(word, bit);
#endif
                return true;
            }
        }
        return false;
    }

    static bool is_taken(const void* word, unsigned bit) noexcept {
        // No order: only a checked build asks, and about a bit that the caller holds.
        return (static_cast<const word_type*>(word)->load(std::memory_order_relaxed) & mask(bit)) != 0;
    }

    detail::lock_word erased() const noexcept { return {word_, bit_, take}; }

    word_type* word_;
    unsigned bit_;
};

template <class Atomic>
bit_lock(Atomic&, unsigned) -> bit_lock<typename Atomic::value_type>;

}  // namespace tocsin

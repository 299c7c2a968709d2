// SPDX-License-Identifier: Apache-2.0
// A lock of 1, 2, 4 or 8 bytes: constant-initialized, trivially destructible, without heap memory.
//
//     tocsin::word_lock<> mutex;             // four bytes
//     std::scoped_lock held(mutex);
#pragma once

#include <tocsin/bit_lock.hpp>

#include <cstdint>

namespace tocsin {

// A bit_lock in a word of its own. It meets the requirements Lockable and TimedLockable. bit_lock.hpp says what its
// members do.
template <class Word = std::uint32_t>
class word_lock {
public:
    constexpr word_lock() noexcept = default;
    word_lock(const word_lock&) = delete;
    word_lock& operator=(const word_lock&) = delete;

    // These do what the members of bit_lock with the same names do.
    void lock(spin_policy spin = {}) noexcept { bit().lock(spin); }
    [[nodiscard]] bool try_lock() noexcept { return bit().try_lock(); }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> longest,
                                    spin_policy spin = {}) noexcept {
        return bit().try_lock_until(longest, spin);
    }
    [[nodiscard]] bool try_lock_until(const deadline& until, spin_policy spin = {}) noexcept {
        return bit().try_lock_until(until, spin);
    }
    void unlock() noexcept { bit().unlock(); }

private:
    bit_lock<Word> bit() noexcept TOCSIN_LIFETIMEBOUND { return bit_lock<Word>(word_, 0); }

    detail::atomic<Word> word_{0};
};

}  // namespace tocsin

// SPDX-License-Identifier: Apache-2.0
// Records, in checked builds, which thread has which bit lock, so that diagnose.hpp and a debugger can show deadlocks.
// A lock itself does not know its owner: its whole state is one bit of a word. Why it is correct: lock_owners.cpp.
#pragma once

#include "platform/system/system.hpp"

#include <cstdint>

namespace tocsin::core {

void enter_lock_owner(const void* word, unsigned bit) noexcept;
// Puts the calling thread's number into its entries, in place of its nickname.
void name_lock_owner(std::uint64_t nickname, std::uint64_t number) noexcept;
void remove_lock_owner(const void* word, unsigned bit) noexcept;
// The thread's number, or 0 if it is not known.
std::uint64_t lock_owner(const void* word, unsigned bit) noexcept;

// The calling thread's number, for a wait that it parks.
inline std::uint64_t number_of_waiting_thread() noexcept {
    const platform::learnt_number self = platform::learn_thread_number();
#if !defined(TOCSIN_MODEL)
    if (self.nickname != 0) name_lock_owner(self.nickname, self.number);
#endif
    return self.number;
}

// For debuggers (core/wait/debugger_layout.cpp).
struct held_bit {
    const void* word = nullptr;
    std::uint64_t thread = 0;  // its number; or a nickname, from platform::nicknames_from on
    std::uint32_t bit = 0;
};
inline constexpr unsigned max_held_bits = 1024;
extern held_bit held_bits[max_held_bits];
extern std::uint32_t held_bits_in_use;  // the first so many entries are in use

}  // namespace tocsin::core

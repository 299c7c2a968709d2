// SPDX-License-Identifier: Apache-2.0
// The explorer's futex. It gives a woken thread no knowledge of memory. Such knowledge must come from the atomics, as
// the contract of a real futex says.
#pragma once

#include "atomic.hpp"

#include <cstdint>
#include <source_location>
#include <vector>

namespace tocsin::model {

enum class futex_result { differed, woken, timed_out, spurious };

// Sleeps if the newest value of the word is `expected`. Within the budgets of options, a deadline may pass and the
// call may return spuriously at any time.
futex_result futex_wait(const atomic<std::uint32_t>* word, std::uint32_t expected, bool may_time_out = false,
                        std::source_location where = std::source_location::current());

// Wakes by the address alone, in order of arrival; the word may no longer exist. Returns how many it woke.
unsigned futex_wake(const void* address, unsigned count = 1,
                    std::source_location where = std::source_location::current());

// As a kernel that has changed the word: wakes one of those who sleep on it, whichever, and all of them see its newest
// value from then on.
void futex_wake_any_and_show(const void* at, unsigned size,
                             std::source_location where = std::source_location::current());

// An atomic of four or eight bytes, and the value of its lower four.
struct futex_place {
    const void* atomic;
    unsigned size;
    std::uint32_t expected;
};

// Sleeps if the newest values of all words are the expected ones, until a wake on one of them. Otherwise as
// futex_wait().
futex_result futex_wait_any(const std::vector<futex_place>& words, bool may_time_out = false,
                            std::source_location where = std::source_location::current());

// Turns the bits on and wakes all who sleep on the word, in one step.
void futex_wake_op(const atomic<std::uint32_t>* word, std::uint32_t bits,
                   std::source_location where = std::source_location::current());

}  // namespace tocsin::model

// SPDX-License-Identifier: Apache-2.0
// The explorer's futex. It gives a woken thread no knowledge of memory. Such knowledge must come from the atomics, as
// the contract of a real futex says.
#pragma once

#include "atomic.hpp"

#include <cstdint>
#include <source_location>

namespace tocsin::model {

enum class futex_result { differed, woken, timed_out, spurious };

// Sleeps if the newest value of the word is `expected`. Within the budgets of options, a deadline may pass and the
// call may return spuriously at any time.
futex_result futex_wait(const atomic<std::uint32_t>* word, std::uint32_t expected, bool may_time_out = false,
                        std::source_location where = std::source_location::current());

// Wakes by the address alone, in order of arrival; the word may no longer exist. Returns how many it woke.
unsigned futex_wake(const void* address, unsigned count = 1,
                    std::source_location where = std::source_location::current());

}  // namespace tocsin::model

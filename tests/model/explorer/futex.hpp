// The explorer's futex. It gives a woken thread no knowledge of memory; that must
// come from the atomics, as on a real system by contract.
#pragma once

#include "atomic.hpp"

#include <cstdint>
#include <source_location>

namespace tocsin::model {

enum class futex_result { differed, woken, timed_out, spurious };

// Sleeps if the newest value of the word is `expected`. A deadline may pass at any
// time, a return for no reason happen at any time, within the budgets of options.
futex_result futex_wait(const atomic<std::uint32_t>* word, std::uint32_t expected, bool may_time_out = false,
                        std::source_location where = std::source_location::current());

// Wakes by the address alone, in order of arrival; the word may be gone. Returns
// how many it woke.
unsigned futex_wake(const void* address, unsigned count = 1,
                    std::source_location where = std::source_location::current());

}  // namespace tocsin::model

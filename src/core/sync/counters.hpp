// SPDX-License-Identifier: Apache-2.0
// Counts what the waits of the process have done (spin.hpp). Unless the counters are compiled in, they cost nothing.
#pragma once

#include <tocsin/detail/config.hpp>

namespace tocsin::core {

enum class counter : unsigned { spun, yielded, slept, woken };

#if TOCSIN_COUNTERS
void count(counter which) noexcept;
#else
constexpr void count(counter) noexcept {}
#endif

}  // namespace tocsin::core

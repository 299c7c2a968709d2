// SPDX-License-Identifier: Apache-2.0
// Counters of what waits have done (spin.hpp). Unless they are compiled in, they cost nothing.
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

// Counters of what waits did (spin.hpp). They cost nothing unless they are compiled in.
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

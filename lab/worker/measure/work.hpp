// SPDX-License-Identifier: Apache-2.0
// Work that takes about as long as requested and touches no memory.
#pragma once

#include "clock.hpp"
#include "keep.hpp"

#include <algorithm>
#include <cstdint>

namespace lab {

// A chain of multiplications, each of which needs the result of the one before: a unit takes one to two nanoseconds.
inline void work(std::uint64_t units) noexcept {
    std::uint64_t chain = units;
    for (std::uint64_t i = 0; i < units; ++i) {
        chain = chain * 6364136223846793005u + 1442695040888963407u;
        keep(chain);
    }
}

// How many units this machine, at its fastest, does in this time.
inline std::uint64_t work_units(std::int64_t nanoseconds) noexcept {
    constexpr std::uint64_t probe = 20'000;
    std::int64_t best = INT64_MAX;
    for (int attempt = 0; attempt < 10; ++attempt) {
        const std::int64_t start = now();
        work(probe);
        best = std::min(best, std::max<std::int64_t>(now() - start, 1));
    }
    return std::max<std::uint64_t>(
        probe * static_cast<std::uint64_t>(nanoseconds) / static_cast<std::uint64_t>(best), 1);
}

// A small, seeded source of varied numbers: splitmix64.
class dice {
public:
    explicit dice(std::uint64_t seed) noexcept : state_(seed) {}
    std::uint64_t next() noexcept {
        std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15u;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
        return mixed ^ (mixed >> 31);
    }
    // Below `limit`, as evenly as benchmarks need.
    std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }

private:
    std::uint64_t state_;
};

}  // namespace lab

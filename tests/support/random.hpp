// SPDX-License-Identifier: Apache-2.0
// Random choices that can be repeated: the seed is printed, and TOCSIN_SEED sets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace support {

// The seed of this run; the first call prints it.
inline std::uint64_t seed() {
    static const std::uint64_t chosen = [] {
        const char* wanted = std::getenv("TOCSIN_SEED");
        const std::uint64_t value =
            wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device{}();
        std::printf("TOCSIN_SEED=%llu\n", static_cast<unsigned long long>(value));
        std::fflush(stdout);
        return value;
    }();
    return chosen;
}

// The generator splitmix64. Each thread has its own generator, made from the run's seed and a number of the thread.
class random_source {
public:
    explicit random_source(std::uint64_t number) : state_(seed() ^ (number * 0x9e3779b97f4a7c15ULL)) {}

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }
    bool one_in(std::size_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

}  // namespace support

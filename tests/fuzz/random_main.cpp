// SPDX-License-Identifier: Apache-2.0
// Runs random programs for some seconds, where there is no libFuzzer.
//
//     tocsin_fuzz [seconds]          TOCSIN_SEED makes the same programs again
#include "random.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** texts) {
    const double seconds = count > 1 ? std::strtod(texts[1], nullptr) : 5;
    if (count > 2 || !(seconds > 0)) {
        std::fprintf(stderr, "usage: %s [seconds]\n", texts[0]);
        return 2;
    }
    support::random_source random(1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    long programs = 0;
    for (; std::chrono::steady_clock::now() < end; ++programs) {
        std::vector<std::uint8_t> input(10 + random.below(300));
        for (auto& each : input) each = static_cast<std::uint8_t>(random.next());
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    std::printf("%ld programs agree with the reference\n", programs);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Does something every 5 ms: on a grid that does not drift, without a burst after a delay.
#include <tocsin/event.hpp>
#include <tocsin/ticker.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

int main() {
    using namespace std::chrono_literals;
    tocsin::manual_reset_event shutdown;

    const auto begin = std::chrono::steady_clock::now();
    tocsin::ticker tick(begin + 5ms, 5ms);
    std::uint64_t drawn = 0;
    std::uint64_t missed = 0;
    while (tocsin::wait_any(shutdown, tick).index == 1) {
        ++drawn;
        missed += tick.ticks() - 1;  // one report stands for all ticks that have passed
        if (drawn == 2) std::this_thread::sleep_for(23ms);  // something takes long
        if (drawn == 5) shutdown.set();
    }
    const std::uint64_t passed = (std::chrono::steady_clock::now() - begin) / 5ms;
    std::printf("%llu drawn, %llu missed\n", static_cast<unsigned long long>(drawn),
                static_cast<unsigned long long>(missed));
    return drawn == 5 && missed >= 3 && drawn + missed <= passed ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// Tests wait for facts and not for time: "two threads are parked on this event", say (facts.hpp). If a fact does not
// become true within patience(), the program ends and prints the fact's name.
#pragma once

#include "sanitizer.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace support {

using namespace std::chrono_literals;

// How long a fact may take before it counts as a hang. TOCSIN_TEST_PATIENCE sets the seconds.
inline std::chrono::seconds patience() {
    if (const char* wanted = std::getenv("TOCSIN_TEST_PATIENCE")) {
        return std::chrono::seconds(std::strtol(wanted, nullptr, 10));
    }
    return rounds(1, 2) * 40s;
}

[[noreturn]] inline void give_up(const std::string& what) {
    std::fprintf(stderr, "HANG: %s\n", what.c_str());
    std::fflush(stderr);
    std::abort();
}

[[noreturn]] inline void sleep_for_ever() {
    for (;;) std::this_thread::sleep_for(1h);
}

// Looks again and again, at first without sleeping, until the fact holds.
template <class Fact>
void until(const char* what, Fact holds) {
    const auto begin = std::chrono::steady_clock::now();
    for (int looks = 0; !holds(); ++looks) {
        // Beside other busy programs, each yield may take milliseconds.
        if (looks < 200 && std::chrono::steady_clock::now() - begin < 1ms) {
            std::this_thread::yield();
            continue;
        }
        std::this_thread::sleep_for(50us);
        if (std::chrono::steady_clock::now() - begin > patience()) give_up(what);
    }
}

}  // namespace support

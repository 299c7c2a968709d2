// SPDX-License-Identifier: Apache-2.0
// Hears of waits that take too long, while they still wait.
#include <tocsin/event.hpp>
#include <tocsin/watchdog.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

int main() {
    using namespace std::chrono_literals;
    tocsin::manual_reset_event answer;
    tocsin::name_address(&answer, "the answer");
    const auto watchdog = tocsin::report_waits_longer_than(50ms, [&](const tocsin::parked_wait& wait) {
        std::printf("%s '%s': thread %llu has waited for more than 50 ms\n", wait.type, wait.name.c_str(),
                    static_cast<unsigned long long>(wait.thread));
        if (wait.address == &answer) answer.set();  // a real program writes a log, or a core dump
    });
    std::thread waiting([&] { answer.wait(); });
    waiting.join();
    tocsin::name_address(&answer, "");
    return 0;
}

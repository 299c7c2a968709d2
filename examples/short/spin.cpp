// SPDX-License-Identifier: Apache-2.0
// Trades CPU time for latency: one thread spins before it sleeps, the other sleeps at once.
#include <tocsin/event.hpp>
#include <tocsin/spin.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

int main() {
    using namespace std::chrono_literals;
    tocsin::auto_reset_event ask;
    tocsin::auto_reset_event answer;
    int answers = 0;

    std::thread server([&] {
        for (int i = 0; i != 1000; ++i) {
            ask.wait(tocsin::spin_policy::fixed(20us));  // keeps its core busy, and reacts sooner
            answer.set();
        }
    });
    for (int i = 0; i != 1000; ++i) {
        ask.set();
        answer.wait(tocsin::spin_policy::none());
        ++answers;
    }
    server.join();

    tocsin::set_spin_policy(tocsin::spin_policy::none());  // from now on, for waits that name no policy
    std::printf("%d answers\n", answers);
    return answers == 1000 ? 0 : 1;
}

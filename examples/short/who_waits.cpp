// SPDX-License-Identifier: Apache-2.0
// Shows which threads wait on what, right now.
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

int main() {
    using namespace std::chrono_literals;
    tocsin::manual_reset_event gate;
    tocsin::name_address(&gate, "the gate");
    std::thread waiting([&] { gate.wait(); });
    std::string text;
    while (text.find("the gate") == std::string::npos) {  // until the thread has gone to sleep
        std::this_thread::sleep_for(1ms);
        text = tocsin::describe_parked_waits();
    }
    std::fputs(text.c_str(), stdout);
    gate.set();
    waiting.join();
    tocsin::name_address(&gate, "");
    return 0;
}

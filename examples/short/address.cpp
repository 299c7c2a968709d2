// SPDX-License-Identifier: Apache-2.0
// Sleeps until a variable changes. The change and the wake are one call.
#include <tocsin/address.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

int main() {
    std::atomic<std::uint8_t> phase{0};
    int result = 0;
    std::thread worker([&] {
        tocsin::wait_on_address(&phase, std::uint8_t{0});  // sleeps while phase is 0
        result *= 2;
        tocsin::store(&phase, std::uint8_t{2}, tocsin::wake_all);
    });
    result = 21;
    tocsin::store(&phase, std::uint8_t{1}, tocsin::wake_all);
    tocsin::wait_on_address(&phase, std::uint8_t{1});
    worker.join();
    std::printf("phase %d, result %d\n", phase.load(), result);
    return phase == 2 && result == 42 ? 0 : 1;
}

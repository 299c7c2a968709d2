// SPDX-License-Identifier: Apache-2.0
// tocsin's side of idle_wait.hpp.
#include "idle_wait.hpp"

#include <tocsin/address.hpp>

int main(int count, char** arguments) {
    using namespace reproduction;
    return run(
        count, arguments, [](double) { return outcome{.note = "the peer is idle_wait_libcxx.cpp"}; },
        [](double seconds) {
            return wait_idly(seconds, "wait_until_changed",
                             [](std::atomic<std::int32_t>& on) { (void)tocsin::wait_until_changed(&on, 0); });
        });
}

// SPDX-License-Identifier: Apache-2.0
// The side of libc++ of idle_wait.hpp. clang builds it, without tocsin.
#include "idle_wait.hpp"

int main(int count, char** arguments) {
    using namespace reproduction;
    const auto with_libcxx = [](double seconds) {
        const std::string version = "libc++ " + std::to_string(_LIBCPP_VERSION / 10'000) + "." +
                                    std::to_string(_LIBCPP_VERSION / 100 % 100) + "." +
                                    std::to_string(_LIBCPP_VERSION % 100);
        return wait_idly(seconds, version, [](std::atomic<std::int32_t>& on) { on.wait(0); });
    };
    return run(count, arguments, with_libcxx,
               [](double) { return outcome{.note = "tocsin's side is idle_wait.cpp"}; });
}

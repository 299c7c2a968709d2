// SPDX-License-Identifier: Apache-2.0
// What libc++ implements itself instead of taking it from the system: its waits on atomics, and what is made of them.
#pragma once

#include "semaphores.hpp"
#include "standard.hpp"

namespace lab {

// A copy of the `info` of its equivalent in the other standard library.
constexpr contestant_info as_libcxx(contestant_info info, std::string_view name, std::string_view label) {
    info.name = name;
    info.label = label;
    info.included_from = tier::full;
    return info;
}

struct libcxx_atomic : std_atomic {
    static constexpr contestant_info info =
        as_libcxx(std_atomic::info, "libcxx_atomic", "libc++ atomic wait");
};
struct libcxx_binary_semaphore : std_binary_semaphore {
    static constexpr contestant_info info =
        as_libcxx(std_binary_semaphore::info, "libcxx_binary_semaphore", "libc++ binary_semaphore");
};
struct libcxx_counting_semaphore : std_counting_semaphore {
    static constexpr contestant_info info =
        as_libcxx(std_counting_semaphore::info, "libcxx_counting_semaphore", "libc++ counting_semaphore");
    using own_lock = semaphore_as_lock<std::counting_semaphore<>>;
};
struct libcxx_latch : std_latch {
    static constexpr contestant_info info = as_libcxx(std_latch::info, "libcxx_latch", "libc++ latch");
};

}  // namespace lab

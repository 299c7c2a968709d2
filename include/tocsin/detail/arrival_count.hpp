// SPDX-License-Identifier: Apache-2.0
// The numbers that a latch and a barrier can count with, and what happens if they are given any other number.
#pragma once

#include <tocsin/detail/misuse.hpp>

#include <cstddef>
#include <cstdint>

namespace tocsin::detail {

inline constexpr std::ptrdiff_t max_arrivals = 0x3fff'ffff;

// Refuses a number below `least` or above max_arrivals. In a constant expression, such a number does not compile.
constexpr std::uint32_t checked_arrivals(const char* type, const void* object, std::ptrdiff_t number,
                                         std::ptrdiff_t least) noexcept {
    if (number < least || number > max_arrivals) [[unlikely]]
        die_of_misuse(type, object, number < least ? "the number is too small" : "the number is too great");
    return static_cast<std::uint32_t>(number);
}

}  // namespace tocsin::detail

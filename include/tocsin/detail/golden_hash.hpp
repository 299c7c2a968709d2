// SPDX-License-Identifier: Apache-2.0
// A hash for tables of addresses. The lot's table has another one, with a secret (src/core/lot/key_hash.hpp).
#pragma once

#include <cstdint>

namespace tocsin::detail {

// Multiplies by 2^64 divided by the golden ratio. The upper bits of the product spread consecutive and aligned
// addresses evenly over the buckets of a table, and far apart from each other.
constexpr std::uint64_t golden_hash(std::uint64_t number) noexcept { return number * 0x9E37'79B9'7F4A'7C15u; }

}  // namespace tocsin::detail

// The hash of every table in the library.
#pragma once

#include <cstdint>

namespace tocsin::detail {

// Multiplies by 2^64 divided by the golden ratio: consecutive and aligned addresses end far apart in the upper bits,
// and spread evenly over the buckets.
constexpr std::uint64_t golden_hash(std::uint64_t number) noexcept { return number * 0x9E37'79B9'7F4A'7C15u; }

}  // namespace tocsin::detail

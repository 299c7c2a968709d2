// The hash of every table in the library.
#pragma once

#include <cstdint>

namespace tocsin::detail {

// Multiplies by 2^64 divided by the golden ratio. In the upper bits, consecutive and aligned addresses then end far
// apart, and spread evenly over the buckets.
constexpr std::uint64_t golden_hash(std::uint64_t number) noexcept { return number * 0x9E37'79B9'7F4A'7C15u; }

}  // namespace tocsin::detail

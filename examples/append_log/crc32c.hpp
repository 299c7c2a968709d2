// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), the checksum of iSCSI and ext4: RFC 3720, appendix B.4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace append_log {

inline constexpr auto crc32c_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte != table.size(); ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit != 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
        table[byte] = value;
    }
    return table;
}();

// The checksum of `bytes`. For several pieces in a row, pass the result so far.
constexpr std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t so_far = 0) noexcept {
    std::uint32_t value = ~so_far;
    for (const std::byte each : bytes) {
        value = (value >> 8) ^ crc32c_table[(value ^ static_cast<std::uint32_t>(each)) & 0xFF];
    }
    return ~value;
}

}  // namespace append_log

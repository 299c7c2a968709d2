// SPDX-License-Identifier: Apache-2.0
// The hash of a key, which says where the lot has the key's queue. Why nobody outside can choose addresses that meet in
// one bucket: lot.cpp.
#pragma once

#include "core/lot/wait_node.hpp"

#include <cstddef>
#include <cstdint>

namespace tocsin::core {

#if !defined(TOCSIN_BUCKET_BITS)
#define TOCSIN_BUCKET_BITS 12
#endif
inline constexpr unsigned bucket_bits = TOCSIN_BUCKET_BITS;

// The multiplier of the hash: odd, and a secret of the process. All copies of the library that share a table have the
// same multiplier (table.cpp).
extern std::uint64_t hash_multiplier;

// Makes a multiplier of a random number. With it, arrays whose members are 8, 16, 24 ... 512 bytes apart, or a page, do
// not crowd into few buckets: table.cpp.
std::uint64_t multiplier_from(std::uint64_t random) noexcept;

// The index of a key's bucket, and the key's path in that bucket's tree of queues. The first `filter_bits` bits of the
// path are also the index of the key's bit in the bucket's filter.
struct key_hash {
    static constexpr unsigned filter_bits = 6;

    explicit key_hash(const wait_key& key) noexcept {
        const std::uint64_t mixed =
            (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(key.address)) +
             (static_cast<std::uint64_t>(key.what) << 56)) *
            hash_multiplier;
        index = static_cast<std::size_t>((mixed >> 1) >> (63 - bucket_bits));
        path = mixed << bucket_bits;
    }

    std::uint64_t filter_bit() const noexcept { return filter_bit_of(path); }
    static std::uint64_t filter_bit_of(std::uint64_t path) noexcept {
        return std::uint64_t{1} << (path >> (64 - filter_bits));
    }

    std::size_t index;
    std::uint64_t path;
};

}  // namespace tocsin::core

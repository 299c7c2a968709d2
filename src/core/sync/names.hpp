// SPDX-License-Identifier: Apache-2.0
// The names that users give to addresses (diagnose.hpp), in a form that a debugger can read as well.
#pragma once

#include <tocsin/detail/golden_hash.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tocsin::core {

// The members are in the order in which tools/gdb/tocsin_gdb.py reads them.
struct name_entry {
    name_entry* next;
    const void* address;
    std::unique_ptr<char[]> text;  // ends with a zero
};

// A hash table: each chain has the entries of the addresses that hash to it. A lock in diagnose.cpp guards the table.
// The table is never freed, since threads may wait after main, and other threads may ask about these waits.
inline constexpr unsigned name_chain_bits = 8;
inline constinit name_entry* name_chains[std::size_t{1} << name_chain_bits]{};

inline name_entry*& name_chain_of(const void* address) noexcept {
    return name_chains[detail::golden_hash(reinterpret_cast<std::uintptr_t>(address)) >>
                       (64 - name_chain_bits)];
}

}  // namespace tocsin::core

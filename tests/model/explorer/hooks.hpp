// SPDX-License-Identifier: Apache-2.0
// The narrow interface between the atomics' templates and the engine. Outside an exploration `exploring` is false,
// and an atomic is an ordinary variable.
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>

namespace tocsin::model::detail {

using word = std::uint64_t;
using source = std::source_location;
enum class rmw { exchange, add, subtract, bit_or, bit_and, bit_xor };

inline bool exploring = false;

word load(const void* address, unsigned size, std::memory_order order, source where);
void store(void* address, unsigned size, word value, std::memory_order order, source where);
word read_modify_write(void* address, unsigned size, rmw kind, word operand, std::memory_order order,
                       source where);
bool compare_exchange(void* address, unsigned size, word& expected, word desired, std::memory_order success,
                      std::memory_order failure, bool weak, source where);
void fence(std::memory_order order, source where);
void relax(source where);

void constructed(const void* address, unsigned size, word value);
void destroyed(const void* address, unsigned size);
void forgotten(const void* address, unsigned size);
void plain_constructed(const void* address, unsigned size);
void plain_destroyed(const void* address, unsigned size);
void plain_read(const void* address, unsigned size, source where);
void plain_written(const void* address, unsigned size, source where);

}  // namespace tocsin::model::detail

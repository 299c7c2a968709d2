// SPDX-License-Identifier: Apache-2.0
// How often this program has allocated so far. Replaces the global operator new, so only one source of a program may
// include it.
#pragma once

#include "forms_of_new.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace support {

inline std::atomic<long> allocations_made{0};
inline long allocations() { return allocations_made.load(); }

}  // namespace support

[[gnu::noinline]] void* operator new(std::size_t size) {
    support::allocations_made.fetch_add(1, std::memory_order_relaxed);
    if (void* const memory = std::malloc(size != 0 ? size : 1)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }

// SPDX-License-Identifier: Apache-2.0
// How often this program has allocated so far. Replaces the global operator new, so only one source of a program may
// include it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace support {

inline std::atomic<long> allocations_made{0};
inline long allocations() { return allocations_made.load(); }

namespace detail {
inline void* try_to_allocate(std::size_t size) noexcept {
    allocations_made.fetch_add(1, std::memory_order_relaxed);
    return std::malloc(size != 0 ? size : 1);
}
inline void* allocate(std::size_t size) {
    void* const memory = try_to_allocate(size);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
}  // namespace detail

}  // namespace support

// Not inlined: if GCC 12 inlines only one operator of a pair, down to malloc or free, it warns of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) { return support::detail::allocate(size); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return support::detail::allocate(size); }
// Replaced, too, because AddressSanitizer has forms of its own for these two, which do not call the operators above.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return support::detail::try_to_allocate(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return support::detail::try_to_allocate(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

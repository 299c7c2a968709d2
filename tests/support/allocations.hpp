// How often this program has allocated so far. Replaces the global operator new: for one source of a program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace support {

inline std::atomic<long> allocations_made{0};
inline long allocations() { return allocations_made.load(); }

namespace detail {
inline void* allocate(std::size_t size) {
    allocations_made.fetch_add(1, std::memory_order_relaxed);
    void* const place = std::malloc(size != 0 ? size : 1);
    if (place == nullptr) throw std::bad_alloc();
    return place;
}
}  // namespace detail

}  // namespace support

// Out of line: GCC 12 takes malloc and free, once inlined beside the other of the pair, for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) { return support::detail::allocate(size); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return support::detail::allocate(size); }
[[gnu::noinline]] void operator delete(void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete[](void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, std::size_t) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete[](void* place, std::size_t) noexcept { std::free(place); }

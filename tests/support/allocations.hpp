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
inline void* try_to_allocate(std::size_t size) noexcept {
    allocations_made.fetch_add(1, std::memory_order_relaxed);
    return std::malloc(size != 0 ? size : 1);
}
inline void* allocate(std::size_t size) {
    void* const place = try_to_allocate(size);
    if (place == nullptr) throw std::bad_alloc();
    return place;
}
}  // namespace detail

}  // namespace support

// Out of line: GCC 12 takes malloc and free, once inlined beside the other of the pair, for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) { return support::detail::allocate(size); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return support::detail::allocate(size); }
// AddressSanitizer has its own of the kind that does not throw, which don't call the others.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return support::detail::try_to_allocate(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return support::detail::try_to_allocate(size);
}
[[gnu::noinline]] void operator delete(void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete[](void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, std::size_t) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete[](void* place, std::size_t) noexcept { std::free(place); }

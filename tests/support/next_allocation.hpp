// SPDX-License-Identifier: Apache-2.0
// Does something at the next allocation of a thread, or at each: at moments that are inside a call of the library.
// Replaces the global operator new, so only one source of a program may include it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace support {

// What the calling thread's next allocation calls, once.
inline thread_local void (*at_next_allocation)() = nullptr;
// What each allocation of any thread calls.
inline std::atomic<void (*)()> at_each_allocation = nullptr;

}  // namespace support

// (Not inlined: with only one of a pair inlined, the compiler warns of a mismatch.)
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (const auto act = std::exchange(support::at_next_allocation, nullptr)) act();
    if (const auto act = support::at_each_allocation.load()) act();
    if (void* const made = std::malloc(size)) return made;
    throw std::bad_alloc();
}
// AddressSanitizer has a form of its own for this one, which does not call the operator above.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* gone) noexcept { std::free(gone); }
[[gnu::noinline]] void operator delete(void* gone, std::size_t) noexcept { std::free(gone); }

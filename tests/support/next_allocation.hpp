// SPDX-License-Identifier: Apache-2.0
// Does something at the next allocation of a thread, or at each: at moments that are inside a call of the library.
// Replaces the global operator new, so only one source of a program may include it.
#pragma once

#include "forms_of_new.hpp"

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

[[gnu::noinline]] void* operator new(std::size_t size) {
    if (const auto act = std::exchange(support::at_next_allocation, nullptr)) act();
    if (const auto act = support::at_each_allocation.load()) act();
    if (void* const made = std::malloc(size)) return made;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* gone) noexcept { std::free(gone); }

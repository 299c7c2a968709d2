// SPDX-License-Identifier: Apache-2.0
// The other forms of the global operator new and delete, for a program that replaces `operator new(std::size_t)` and
// `operator delete(void*)`: by the standard they call these two. AddressSanitizer's own forms do not. It then reports
// memory that its `new` has made and the `delete` of the program frees. Only one source of a program may include this.
//
// Not inlined, as those two must not be: if GCC 12 inlines only one operator of a pair, down to malloc or free, it
// warns of a mismatch.
#pragma once

#include <cstddef>
#include <new>

[[gnu::noinline]] void* operator new[](std::size_t size) { return ::operator new(size); }
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    try {
        return ::operator new(size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return ::operator new(size, std::nothrow);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept { ::operator delete(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { ::operator delete(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { ::operator delete(memory); }

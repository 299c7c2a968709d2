// SPDX-License-Identifier: Apache-2.0
// Memory that can be unmapped while its address is still in use.
#pragma once

#include "posix.hpp"

#include <cstddef>

#if defined(_WIN32)
#include "windows_threads.hpp"
#elif defined(__EMSCRIPTEN__)
#include <cstdlib>
#include <cstring>
#endif

namespace support {

#if TOCSIN_ON_POSIX

inline std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// Reserves addresses without memory behind them. Null if there are none.
inline void* reserve_pages(std::size_t size) {
    void* const first = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return first != MAP_FAILED ? first : nullptr;
}
// Map zeroed memory at reserved addresses, and unmap it.
inline void map_pages(void* first, std::size_t size) { mprotect(first, size, PROT_READ | PROT_WRITE); }
inline void unmap_pages(void* first, std::size_t size) { munmap(first, size); }
// Releases the addresses, whether mapped or not.
inline void release_pages(void*, void* remaining, std::size_t size) { munmap(remaining, size); }

#elif defined(__EMSCRIPTEN__)

// WebAssembly can't unmap memory: these functions overwrite it instead.
inline std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
inline void* reserve_pages(std::size_t size) { return std::aligned_alloc(page_size(), size); }
inline void map_pages(void* first, std::size_t size) { std::memset(first, 0, size); }
inline void unmap_pages(void* first, std::size_t size) { std::memset(first, 0xA5, size); }
inline void release_pages(void* first, void*, std::size_t) { std::free(first); }

#else

inline std::size_t page_size() {
    SYSTEM_INFO found;
    GetSystemInfo(&found);
    return found.dwPageSize;
}

inline void* reserve_pages(std::size_t size) {
    return VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS);
}
inline void map_pages(void* first, std::size_t size) {
    VirtualAlloc(first, size, MEM_COMMIT, PAGE_READWRITE);
}
inline void unmap_pages(void* first, std::size_t size) {
    DWORD before = 0;
    VirtualProtect(first, size, PAGE_NOACCESS, &before);
    VirtualFree(first, size, MEM_DECOMMIT);
}
inline void release_pages(void* first, void*, std::size_t) { VirtualFree(first, 0, MEM_RELEASE); }

#endif

}  // namespace support

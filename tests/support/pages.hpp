// Memory that can be taken away while somebody still has its address.
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

// Addresses without memory; null if there are none.
inline void* reserve_pages(std::size_t size) {
    void* const place = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return place != MAP_FAILED ? place : nullptr;
}
// Puts zeroed memory there, and takes it away.
inline void map_pages(void* place, std::size_t size) { mprotect(place, size, PROT_READ | PROT_WRITE); }
inline void unmap_pages(void* place, std::size_t size) { munmap(place, size); }
// Gives the addresses back, of which some may have been unmapped.
inline void release_pages(void*, void* rest, std::size_t size) { munmap(rest, size); }

#elif defined(__EMSCRIPTEN__)

// Memory is never taken away there: what is unmapped holds something else.
inline std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
inline void* reserve_pages(std::size_t size) { return std::aligned_alloc(page_size(), size); }
inline void map_pages(void* place, std::size_t size) { std::memset(place, 0, size); }
inline void unmap_pages(void* place, std::size_t size) { std::memset(place, 0xA5, size); }
inline void release_pages(void* place, void*, std::size_t) { std::free(place); }

#else

inline std::size_t page_size() {
    SYSTEM_INFO found;
    GetSystemInfo(&found);
    return found.dwPageSize;
}

inline void* reserve_pages(std::size_t size) {
    return VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS);
}
inline void map_pages(void* place, std::size_t size) {
    VirtualAlloc(place, size, MEM_COMMIT, PAGE_READWRITE);
}
inline void unmap_pages(void* place, std::size_t size) {
    DWORD before = 0;
    VirtualProtect(place, size, PAGE_NOACCESS, &before);
    VirtualFree(place, size, MEM_DECOMMIT);
}
inline void release_pages(void* place, void*, std::size_t) { VirtualFree(place, 0, MEM_RELEASE); }

#endif

}  // namespace support

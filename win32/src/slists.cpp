// SPDX-License-Identifier: Apache-2.0
// Singly linked lists, under a bit lock (include/tocsin/bit_lock.hpp) in their header. A list without a lock would have
// to read entries that another thread has popped and freed, which only Windows can.
//
// Memory order: [lock-release] of the bit lock orders everything. The depth is also read without it.
//
// Checked by: win32/tests/interlocked_test.cpp.
#include "object.hpp"

#include <tocsin/bit_lock.hpp>

#include <atomic>
#include <mutex>

namespace tocsin::win32 {
namespace {

bit_lock<std::uint32_t> lock_of(PSLIST_HEADER list) noexcept {
    void* const word = static_cast<void*>(&list->State.Lock);
    return {*static_cast<detail::atomic<std::uint32_t>*>(word), 0};
}

// Changes the list, and returns the entry that was its first.
template <class Change>
PSLIST_ENTRY change(PSLIST_HEADER list, Change with) noexcept {
    bit_lock<std::uint32_t> lock = lock_of(list);
    const std::lock_guard held(lock);
    const PSLIST_ENTRY first = list->State.First;
    const int added = with(first);
    std::atomic_ref depth(list->State.Depth);
    // no order: a count
    depth.store(static_cast<std::uint16_t>(depth.load(std::memory_order_relaxed) + added),
                std::memory_order_relaxed);  // no order: the same
    return first;
}

PSLIST_ENTRY push(PSLIST_HEADER list, PSLIST_ENTRY first, PSLIST_ENTRY last, ULONG count) noexcept {
    return change(list, [&](PSLIST_ENTRY before) {
        last->Next = before;
        list->State.First = first;
        return static_cast<int>(count);
    });
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

VOID InitializeSListHead(PSLIST_HEADER list) { list->State = {nullptr, 0, 0, 0}; }
PSLIST_ENTRY InterlockedPushEntrySList(PSLIST_HEADER list, PSLIST_ENTRY entry) {
    return push(list, entry, entry, 1);
}
PSLIST_ENTRY InterlockedPushListSListEx(PSLIST_HEADER list, PSLIST_ENTRY first, PSLIST_ENTRY last,
                                        ULONG count) {
    return push(list, first, last, count);
}
PSLIST_ENTRY InterlockedPopEntrySList(PSLIST_HEADER list) {
    return change(list, [&](PSLIST_ENTRY first) {
        if (first == nullptr) return 0;
        list->State.First = first->Next;
        return -1;
    });
}
PSLIST_ENTRY InterlockedFlushSList(PSLIST_HEADER list) {
    return change(list, [&](PSLIST_ENTRY) {
        list->State.First = nullptr;
        return -static_cast<int>(list->State.Depth);
    });
}
USHORT QueryDepthSList(PSLIST_HEADER list) {
    return std::atomic_ref(list->State.Depth).load(std::memory_order_relaxed);  // no order: a count
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// The handles that a thread has used last. A call that finds its handle here changes no memory that threads share
// before it comes to the object itself. So a call costs few nanoseconds more than the object's own function, and
// threads that use one handle at the same time don't slow each other down.
//
// State: a cache belongs to one thread, which alone reads and writes it. Each of its places is empty, or has a handle,
// the handle's slot (handle_table.hpp), and a use of this slot, which has begun and not ended.
//
// Invariants
//   handle_cache-1  A slot with a use is not freed (handle_table-3). So the slot of a place has the generation of the
//       place's handle, and its object exists, until the thread ends that use. The thread does so when another handle
//       takes the place, when the thread closes the handle or finds it closed, and when the thread ends. It never does
//       so while it uses what find() returned: the class that calls find() marks the cache as busy for as long, and
//       while a cache is busy, nobody calls it.
//   handle_cache-2  A handle in the cache is valid while its slot is open, so find() looks at that bit each time. A
//       handle that is closed before the look is not found. If it is closed after the look, the call happens at the
//       same time as the close, and may come first: its object still exists.
//   handle_cache-3  A closed handle in a cache keeps its object in memory. So only objects enter whose destructors do
//       nothing that a program could notice: events and semaphores. Each thread keeps at most as many as there are
//       places.
//
// Memory order: find() needs none. The thread acquired the object when it began its use ([handle-open]), and whoever
// frees the slot acquires what the thread did, because the thread's end of the use releases it ([handle-use]). A close
// that happens before a look changed the slot's word before, so the look reads that change or a later one.
//
// Checked by: tests/model/win32_model_test.cpp (P24 of docs/proofs.md), win32/tests/unit/handle_cache_test.cpp.
#pragma once

#include "handle_table.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tocsin::win32 {

template <class Table, std::size_t Places>
class basic_handle_cache {
public:
    using number = typename Table::number;

    constexpr basic_handle_cache() noexcept = default;
    basic_handle_cache(const basic_handle_cache&) = delete;
    basic_handle_cache& operator=(const basic_handle_cache&) = delete;

    // Returns the slot of an open handle that is in the cache. Its object exists until the next call of the cache.
    handle_slot* find(number handle) const noexcept {
        const place& at = places_[index_of(handle)];
        if (at.handle != handle) return nullptr;
        handle_slot* const slot = at.slot;
        // no order: see Memory order
        if (!Table::is_open(slot->word.load(std::memory_order_relaxed), handle)) return nullptr;
        if (slot == nullptr) __builtin_unreachable();  // spares the caller's test: the place isn't empty
        return slot;
    }

    // Takes over a use of the handle's slot. Like forget() and forget_one(), it returns an object that the caller then
    // has to drop, or null.
    [[nodiscard]] void* put(Table& table, number handle, handle_slot& slot) noexcept {
        place& at = places_[index_of(handle)];
        const place before = std::exchange(at, place{handle, &slot});
        return before.slot == nullptr ? nullptr : table.end_use(*before.slot);
    }
    [[nodiscard]] void* forget(Table& table, number handle) noexcept {
        place& at = places_[index_of(handle)];
        return at.handle == handle ? empty(table, at) : nullptr;
    }
    // For a thread that ends, which calls this for each index below size().
    [[nodiscard]] void* forget_one(Table& table, std::size_t index) noexcept {
        return places_[index].slot == nullptr ? nullptr : empty(table, places_[index]);
    }
    static constexpr std::size_t size() noexcept { return Places; }

private:
    static constexpr std::uint64_t nothing = ~std::uint64_t{0};  // no handle is odd
    struct place {
        number handle = nothing;
        handle_slot* slot = nullptr;
    };

    // Handles that were opened one after the other have different places.
    static std::size_t index_of(number handle) noexcept {
        return static_cast<std::size_t>(handle >> 2) & (Places - 1);
    }
    static void* empty(Table& table, place& at) noexcept {
        return table.end_use(*std::exchange(at, place{}).slot);
    }

    static_assert((Places & (Places - 1)) == 0);
    place places_[Places]{};
};

}  // namespace tocsin::win32

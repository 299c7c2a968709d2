// SPDX-License-Identifier: Apache-2.0
// Handles: numbers that name objects, checked on every use.
//
// State: a table of slots. A slot that is open belongs to one handle. The handle consists of the slot's index and of
// the slot's generation. The slot's word has the generation, two bits, and a count of the threads that use the slot:
//   free     Neither bit. The slot is in the list of free slots, or a thread is about to put it there or to open it.
//   open     The handle is valid.
//   closing  The handle is closed, and threads that looked it up before still use the object.
// The slot's pointer to its object is written while the slot is free, and threads that use the slot read it.
//
// Invariants
//   handle_table-1  To use a slot, a thread adds one to the count, and looks at the word's former value. If the word
//       was open and had the handle's generation, the thread may read the slot until it subtracts one again. If not,
//       the handle is invalid, and the thread subtracts one at once, without reading the slot. So a stale handle, or a
//       number that is no handle, costs at most two read-modify-writes, and its user reads no slot. (Exception: if this
//       use of a closing slot is the last, the thread frees that slot, as handle_table-3 says.)
//   handle_table-2  In one step, close() turns an open slot of the right generation into a closing one, and begins a
//       use. So if one handle is closed several times, exactly one close succeeds, and later lookups fail.
//   handle_table-3  A thread that subtracts the last use of a closing slot tries to make it free, with the next
//       generation, by a compare-and-exchange that expects a count of zero. If that fails, another thread has begun a
//       use since then, or has freed the slot. A thread that has begun a use will end it, and then comes to the same
//       point. So exactly one thread frees the slot, at a time when no thread uses it. This thread takes over the
//       object.
//   handle_table-4  A slot is opened by a thread that has taken it from the list of free slots. Lookups of stale
//       handles may change the count at the same time, so the thread opens the slot by setting a bit, which leaves the
//       count alone.
//
// Slots are never given back to the heap, so a lookup of any number below the table's size finds memory that is a slot.
//
// Memory order
//   [handle-open]   Opening a slot releases, and a lookup acquires: it finds the object that the opener stored. All
//                   later changes of the word are read-modify-writes, so the lookup acquires even if there were changes
//                   between the two.
//   [handle-use]    The end of a use releases, and the thread that frees the slot acquires. So the object's end comes
//                   after every use. (A thread that found the handle invalid may be the thread that frees the slot.)
//   [handle-chunk]  A new chunk of slots is published with release, and found with acquire.
//   The list of free slots is under a lock.
//
// Checked by: tests/model/win32_model_test.cpp (P24 of docs/proofs.md), win32/tests/unit/handles_test.cpp.
#pragma once

#include <tocsin/detail/atomic.hpp>
#include <tocsin/word_lock.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <type_traits>

namespace tocsin::win32 {

// A slot of the table. Aligned, so that a lookup touches one cache line only.
struct alignas(32) handle_slot {
    detail::atomic<std::uint64_t> word{0};
    detail::plain<void*> object{nullptr};
    detail::plain<std::uint32_t> access{0};
    detail::plain<std::uint32_t> next{0};   // in the list of free slots
    detail::plain<std::uint32_t> index{0};  // its own, written before its chunk is published
};

// `IndexBits` and `GenerationBits` say how long the parts of a handle are. The parts are the generation, the index, and
// two bits that are zero.
template <unsigned IndexBits, unsigned GenerationBits, unsigned ChunkBits>
class basic_handle_table {
public:
    using number = std::uint64_t;  // of a handle

    constexpr basic_handle_table() noexcept = default;
    basic_handle_table(const basic_handle_table&) = delete;
    basic_handle_table& operator=(const basic_handle_table&) = delete;

    // Returns a new handle of the object, or 0 if there is no memory for it or the table is full.
    number open(void* object, std::uint32_t access) noexcept {
        handle_slot* slot = nullptr;
        const std::uint32_t index = take_free(slot);
        if (slot == nullptr) return 0;
        slot->object = object;
        slot->access = access;
        const std::uint64_t before =
            slot->word.fetch_or(open_bit, std::memory_order_release);  // [handle-open]
        return (before >> 32) << (IndexBits + 2) | number{index} << 2;
    }

    // Begins a use of the slot. Returns null if this is no open handle. If its slot exists, the call has then begun a
    // use and ended it, and sets `ended` to what end_use() returned.
    handle_slot* use(number handle, void*& ended) noexcept {
        handle_slot* const slot = find(handle);
        if (slot == nullptr) return nullptr;
        const std::uint64_t before = slot->word.fetch_add(1, std::memory_order_acquire);  // [handle-open]
        if (is_open(before, handle)) [[likely]]
            return slot;
        ended = end_use(*slot);  // handle_table-3: this may be the last use
        return nullptr;
    }

    // Ends a use. If the handle has been closed and this was the last use, returns the object, and the caller takes it
    // over.
    [[nodiscard]] void* end_use(handle_slot& slot) noexcept {
        // [handle-use] releases this use, and acquires the others' if this is the last.
        const std::uint64_t before = slot.word.fetch_sub(1, std::memory_order_acq_rel);
        if ((before & (closing_bit | uses)) != (closing_bit | 1)) [[likely]]
            return nullptr;
        return free(slot, before - 1);
    }

    // Closes the handle, and begins a use. Returns null if this is no open handle.
    handle_slot* close(number handle) noexcept {
        handle_slot* const slot = find(handle);
        if (slot == nullptr) return nullptr;
        std::uint64_t seen = slot->word.load(std::memory_order_relaxed);  // no order: the exchange decides
        while (is_open(seen, handle)) {
            // [handle-open] acquires what the opener stored.
            if (slot->word.compare_exchange_weak(seen, ((seen & ~open_bit) | closing_bit) + 1,
                                                 std::memory_order_acquire, std::memory_order_relaxed))
                return slot;
        }
        return nullptr;
    }

    // Whether a slot with this word is open, and belongs to this handle.
    static bool is_open(std::uint64_t word, number handle) noexcept {
        return word >> open_at == (handle >> (IndexBits + 2) << 1 | 1);  // the generation and the bit at once
    }
    // Begins a further use, for a thread that has one.
    static void use_again(handle_slot& slot) noexcept {
        // no order: the thread's other use has acquired the object
        slot.word.fetch_add(1, std::memory_order_relaxed);
    }

private:
    static constexpr unsigned open_at = 31;
    static constexpr std::uint64_t open_bit = std::uint64_t{1} << open_at;
    static constexpr std::uint64_t closing_bit = std::uint64_t{1} << 30;
    static constexpr std::uint64_t uses = closing_bit - 1;
    static constexpr std::uint32_t chunk_size = 1u << ChunkBits;
    static constexpr std::uint64_t generation_mask = (std::uint64_t{1} << GenerationBits) - 1;
    static constexpr std::uint32_t none = 0xFFFF'FFFF;

    static std::uint32_t index_of(number handle) noexcept {
        return static_cast<std::uint32_t>(handle >> 2) & ((1u << IndexBits) - 1);
    }
    static std::uint64_t next_generation(std::uint64_t generation) noexcept {
        const std::uint64_t next = (generation + 1) & generation_mask;
        return next == 0 ? 1 : next;  // a handle is never a small number
    }

    handle_slot* find(number handle) noexcept {
        const std::uint32_t index = index_of(handle);
        // [handle-chunk] acquires the slots of the chunk.
        handle_slot* const chunk = chunks_[index >> ChunkBits].load(std::memory_order_acquire);
        return chunk == nullptr ? nullptr : &chunk[index & (chunk_size - 1)];
    }

    // Out of line, so that a use needs few registers.
    [[gnu::noinline]] void* free(handle_slot& slot, std::uint64_t closing) noexcept {
        const std::uint64_t next = next_generation(closing >> 32) << 32;
        // [handle-use] acquires: other uses may have ended since the caller's.
        if (!slot.word.compare_exchange_strong(closing, next, std::memory_order_acquire,
                                               std::memory_order_relaxed))
            return nullptr;  // handle_table-3
        void* const object = slot.object;
        const std::lock_guard held(lock_);
        put_free(slot);
        return object;
    }

    void put_free(handle_slot& slot) noexcept {
        slot.next = none;
        if (last_free_ == none) {
            first_free_ = slot.index;
        } else {
            slot_at(last_free_).next = slot.index;
        }
        last_free_ = slot.index;
    }

    handle_slot& slot_at(std::uint32_t index) noexcept {
        // no order: under the lock
        return chunks_[index >> ChunkBits].load(std::memory_order_relaxed)[index & (chunk_size - 1)];
    }

    // Takes the slot that has been free for the longest time, so that generations last long.
    std::uint32_t take_free(handle_slot*& slot) noexcept {
        const std::lock_guard held(lock_);
        if (first_free_ == none && !add_chunk()) return none;
        const std::uint32_t index = first_free_;
        slot = &slot_at(index);
        first_free_ = slot->next;
        if (first_free_ == none) last_free_ = none;
        return index;
    }

    bool add_chunk() noexcept {
        if (chunk_count_ == std::uint32_t{1} << (IndexBits - ChunkBits)) return false;
        auto* const slots = new (std::nothrow) handle_slot[chunk_size];
        if (slots == nullptr) return false;
        const std::uint32_t first = chunk_count_ * chunk_size;
        for (std::uint32_t i = 0; i != chunk_size; ++i) {
            // The first generations of the slots differ, so that few numbers are valid handles by chance.
            const std::uint64_t generation = next_generation(((first + i) * 0x9E37'79B9u) >> 16);
            slots[i].word.store(generation << 32, std::memory_order_relaxed);  // no order: not published yet
            slots[i].index = first + i;
        }
        chunks_[chunk_count_++].store(slots, std::memory_order_release);  // [handle-chunk]
        for (std::uint32_t i = 0; i != chunk_size; ++i) put_free(slots[i]);
        return true;
    }

    detail::atomic<handle_slot*> chunks_[std::size_t{1} << (IndexBits - ChunkBits)]{};
    word_lock<> lock_;  // of what follows, and of `next` in the slots
    detail::plain<std::uint32_t> chunk_count_{0};
    detail::plain<std::uint32_t> first_free_{none};
    detail::plain<std::uint32_t> last_free_{none};
};

// 16 million handles, or 65,536 on 32-bit systems.
using handle_table =
    std::conditional_t<sizeof(void*) == 8, basic_handle_table<24, 32, 10>, basic_handle_table<16, 14, 8>>;

}  // namespace tocsin::win32

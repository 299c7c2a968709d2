// SPDX-License-Identifier: Apache-2.0
// The layout of the objects that processes share (shared_event.hpp, shared_semaphore.hpp, shared_lock.hpp). All numbers
// are in the byte order of the machine. The layout is the same in 32-bit and 64-bit processes, and memory full of
// zeros is an unset event, a semaphore that counts 0, or a free lock.
//
//     offset  bytes  of an object
//     0       4      stamp: what it is, its version and its number of slots; 0 before the first wait
//     4       4      tickets: how many waits have queued; of a manual-reset event, its word (src/shared_event.cpp)
//     8       8      control: src/core/shared/token_queue.cpp, src/shared_lock.cpp; of a manual-reset event, 0
//     16      48     0
//     64      64     of each slot, one for each thread that waits or holds (a manual-reset event has no slots):
//     +0      8        word: what the slot's thread waits for; its lower half is what the thread sleeps on
//     +8      4        owner: the thread, as the kernel's robust futexes name it; 2^31 if the slot is free, or 0 if
//                      nobody has owned it yet
//     +16     48       links of the kernel's list of robust futexes; the library never reads them
#pragma once

#include <tocsin/detail/atomic.hpp>

#include <cstddef>
#include <cstdint>

namespace tocsin::detail {

inline constexpr std::uint32_t shared_version = 1;

enum class shared_kind : std::uint8_t { none, manual_reset_event, auto_reset_event, semaphore, lock };

struct alignas(64) shared_header {
    atomic<std::uint32_t> stamp{0};
    atomic<std::uint32_t> tickets{0};
    atomic<std::uint64_t> control{0};
    unsigned char reserved[48] = {};
};

// The word of a manual-reset event (src/shared_event.cpp): it is set, a thread may have begun to sleep, a round.
inline constexpr std::uint32_t shared_set = 0b01, shared_sleepers = 0b10, shared_round = 0b100;

struct alignas(64) shared_slot {
    atomic<std::uint64_t> word{0};
    atomic<std::uint32_t> owner{0};
    unsigned char links[52] = {};
};

template <unsigned Slots>
struct shared_object {
    shared_header header;
    shared_slot slots[Slots];
};

// What the inline half of a call passes to the library. Everything here is the caller's own: the memory that is shared
// names neither the kind nor the number of slots.
struct shared_parts {
    shared_header& header;
    shared_slot* slots;
    std::uint32_t slot_count;
    shared_kind kind;
};

#if !defined(TOCSIN_MODEL)
static_assert(sizeof(shared_header) == 64 && offsetof(shared_header, control) == 8);
static_assert(sizeof(shared_slot) == 64 && offsetof(shared_slot, owner) == 8);
#endif

}  // namespace tocsin::detail

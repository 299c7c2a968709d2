// SPDX-License-Identifier: Apache-2.0
// Slots: pointers that each thread has only once, even if its process holds several copies of the library. All slots
// are null when the thread starts. They need no allocation and no destructor, so they can be used in a signal handler
// and until the very end of the thread.
//
// Every copy has a thread-local block of slots, and all copies that share a table use the block of the first of them
// (shared_table.hpp). On ELF systems the blocks are in static thread-local memory, because their TLS model is
// initial-exec: a block has the same offset from the thread pointer in every thread. So the distance between the blocks
// of two copies is the same in every thread, too. While a copy is being loaded, it learns the distance from its own
// block to the first copy's. In any thread, it finds the slots at that distance.
//
// Static thread-local memory is scarce: all objects that are loaded by dlopen() take theirs from one reserve of some
// 1,600 bytes (glibc 2.36). So a slot is only one pointer, and what it points to is on the thread's stack.
//
// Windows has slots that all modules share (TlsAlloc). OpenBSD's compilers emulate thread-local variables. Android's
// linker refuses the initial-exec model in what dlopen() loads. So on these two systems the slots are keys
// (pthread_key_create). The first use of a key in a thread may allocate.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tocsin::platform {

enum class thread_slot : unsigned {
    deferral,    // core/sync/signal_deferral.cpp
    resumes,     // core/lot/resume_queue.cpp
    user_calls,  // core/sync/user_call_scope.hpp
};
inline constexpr unsigned thread_slots = 3;

#if defined(__OpenBSD__) || defined(__ANDROID__)
#define TOCSIN_SLOTS_ARE_KEYS
#endif

#if defined(TOCSIN_MODEL) || defined(_WIN32) || defined(TOCSIN_SLOTS_ARE_KEYS)

void* slot_of_this_thread(thread_slot which) noexcept;
void set_slot_of_this_thread(thread_slot which, void* to) noexcept;
// A number that tells the calling thread from all others that run. A signal handler may call this, too.
std::uintptr_t thread_mark() noexcept;

#else

struct thread_block {
    void* slots[thread_slots];
};

// Repeat this at the block's definition, where GCC 12 otherwise forgets the TLS model.
#if defined(__ELF__)
#define TOCSIN_STATIC_BLOCK [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]]
#else
#define TOCSIN_STATIC_BLOCK
#endif
TOCSIN_STATIC_BLOCK extern constinit thread_local thread_block own_thread_block;

// The distance from this copy's block to the first copy's. It changes only while this copy is being loaded.
#if defined(__ELF__)
[[gnu::visibility("hidden")]]
#endif
extern std::uintptr_t distance_to_first_block;

// The first copy's block in the calling thread.
inline thread_block& block_in_use() noexcept {
    return *reinterpret_cast<thread_block*>(reinterpret_cast<std::uintptr_t>(&own_thread_block) +
                                            distance_to_first_block);
}

inline void* slot_of_this_thread(thread_slot which) noexcept {
    return block_in_use().slots[static_cast<std::size_t>(which)];
}
inline void set_slot_of_this_thread(thread_slot which, void* to) noexcept {
    block_in_use().slots[static_cast<std::size_t>(which)] = to;
}
inline std::uintptr_t thread_mark() noexcept { return reinterpret_cast<std::uintptr_t>(&own_thread_block); }

#endif

}  // namespace tocsin::platform

// Pointers that a thread has once, however many copies of the library its process holds. All of them are null when the
// thread starts. They need no allocation and no destructor, so they can be used in a signal handler and until the very
// end of the thread.
//
// A slot is in the thread-local block of the first copy (shared_table.hpp). Where that block is static, which is so on
// ELF systems for variables of the model initial-exec, it is at the same distance from the block of any other copy in
// every thread. So a copy finds the slot at a distance from its own, which it learns while it is loaded. The block is
// scarce: an object that is loaded by dlopen() takes it from a reserve of some 1,600 bytes (glibc 2.36) for all such
// objects. So a slot is one pointer, and what it points to is on the thread's stack.
//
// Windows has slots that all modules share (TlsAlloc). OpenBSD's compilers emulate thread-local variables; there, slots
// are keys (pthread_key_create).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tocsin::platform {

enum class thread_slot : unsigned {
    deferral,    // core/sync/signal_deferral.cpp
    resumes,     // core/lot/resume_queue.cpp
    activities,  // core/sync/activity.hpp
};
inline constexpr unsigned thread_slots = 3;

#if defined(TOCSIN_MODEL) || defined(_WIN32) || defined(__OpenBSD__) || defined(__ANDROID__)

void* slot_of_this_thread(thread_slot which) noexcept;
void set_slot_of_this_thread(thread_slot which, void* to) noexcept;

#else

struct thread_block {
    void* slots[thread_slots];
};

// At the definition, too: GCC 12 forgets the model there.
#if defined(__ELF__)
#define TOCSIN_STATIC_BLOCK [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]]
#else
#define TOCSIN_STATIC_BLOCK
#endif
TOCSIN_STATIC_BLOCK extern constinit thread_local thread_block own_thread_block;

// From this copy's block to that of the first copy. It changes only while this copy is loaded.
#if defined(__ELF__)
[[gnu::visibility("hidden")]]
#endif
extern std::uintptr_t distance_to_first_block;

// In the calling thread.
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

#endif

}  // namespace tocsin::platform

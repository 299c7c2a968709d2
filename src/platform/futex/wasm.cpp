// SPDX-License-Identifier: Apache-2.0
// WebAssembly: memory.atomic.wait32 and memory.atomic.notify.
//
// The engine promises (WebAssembly threads proposal, "Wait and Notify operators"):
//   - A wait compares the word and enqueues the thread in one step with respect to notify.
//   - Notify wakes the thread that has waited longest on the address.
//   - A timeout is a length, which stays the same if somebody sets a clock. A sleep may be shorter than asked for. So
//     the end of a sleep does not tell whether the deadline has passed: the thread asks the deadline itself
//     (relative_sleep.hpp).
//   - Some threads can't wait at all: in a browser's main thread the wait instruction traps.
//
// Both instructions trap on an address outside the memory. Memory never shrinks, so the address of a former word is
// always inside. For any address outside, wake() does nothing.
#include "platform/futex/futex.hpp"
#include "platform/futex/relative_sleep.hpp"

#include <cstddef>
#include <limits>

namespace tocsin::platform {
namespace {

// The compiler's type for a word.
int* engine_word(const void* word) noexcept { return static_cast<int*>(const_cast<void*>(word)); }

sleep_result sleep(const futex_word& word, std::uint32_t expected, std::int64_t nanoseconds) noexcept {
    static_assert(no_end == -1, "negative: the engine waits without end");
    constexpr int timed_out = 2;
    const int result =
        __builtin_wasm_memory_atomic_wait32(engine_word(&word), static_cast<int>(expected), nanoseconds);
    return result == timed_out ? sleep_result::timed_out : sleep_result::returned;
}

void wake(const void* word, unsigned max) noexcept {
    constexpr std::uintptr_t page = 0x1'0000;  // bytes in a page of memory 0, the only memory
    if (reinterpret_cast<std::uintptr_t>(word) / page >= __builtin_wasm_memory_size(0)) return;
    __builtin_wasm_memory_atomic_notify(engine_word(word), max);
}

}  // namespace

template <>
sleep_result wasm_futex::wait(const futex_word& word, std::uint32_t expected,
                              const deadline& until) noexcept {
    return sleep_until(until, [&](const deadline& end) {
        return sleep_in_slices(end,
                               [&](std::int64_t nanoseconds) { return sleep(word, expected, nanoseconds); });
    });
}

template <>
void wasm_futex::wake_one(const void* word) noexcept {
    wake(word, 1);
}

template <>
void wasm_futex::wake_all(const void* word) noexcept {
    wake(word, std::numeric_limits<unsigned>::max());
}

template <>
void wasm_futex::after_fork() noexcept {}  // there is no fork

template <>
void** wasm_futex::sleepers() noexcept {
    return nullptr;  // the engine keeps them
}

}  // namespace tocsin::platform

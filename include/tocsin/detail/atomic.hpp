// SPDX-License-Identifier: Apache-2.0
// What every algorithm of the library is built from: atomics, plain fields that a lock protects, fences, stop tokens,
// and the processor's pause. A model build (TOCSIN_MODEL) takes these from the explorer (tests/model/explorer), which
// then controls every step that the library makes. In any other build they are those of the standard library and the
// processor, at no cost.
#pragma once

#include <tocsin/detail/sanitizer.hpp>

#include <type_traits>

namespace tocsin::detail {

// A value of which every bit counts. An atomic of any other value is a trap. Its padding differs from one standard
// library to the next: those of GCC 13 to 15 clear it when the atomic is made, so `constinit` no longer holds. And
// where nobody clears it, a compare-and-swap may fail although the values are equal.
template <class T>
concept value_without_padding = std::has_unique_object_representations_v<T>;

}  // namespace tocsin::detail

#if defined(TOCSIN_MODEL)

#include <explorer/atomic.hpp>
#include <explorer/stop.hpp>

#include <cstdint>

namespace tocsin::detail {

template <value_without_padding T>
using atomic = model::atomic<T>;
template <class T>
using plain = model::plain<T>;
using model::cpu_relax;
using model::full_fence;
using model::stop_callback;
using model::stop_token;

inline std::uint64_t load_erased(const volatile void* address, unsigned size) noexcept {
    return model::load_erased(const_cast<const void*>(address), size);
}

}  // namespace tocsin::detail

#else

#include <atomic>
#include <cstdint>
#include <stop_token>

#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
#include <intrin.h>
#endif

namespace tocsin::detail {

template <value_without_padding T>
using atomic = std::atomic<T>;

// A field that a lock protects: only the thread that holds the lock touches it. In a model build, the explorer checks
// this.
template <class T>
using plain = T;

using std::stop_callback;
using std::stop_token;

// GCC warns of every fence under ThreadSanitizer. happens_before.hpp tells the sanitizer what matters.
#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
inline void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// On x86, ARM and RISC-V, tells the processor that this thread spins. The spin then takes less from the core's other
// hardware thread and from the memory bus.
inline void cpu_relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(_M_X64) || defined(_M_IX86)
    _mm_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ __volatile__("yield" ::: "memory");
#elif defined(__riscv)
    __asm__ __volatile__(".insn i 0x0F, 0, x0, x0, 0x010" ::: "memory");
#endif
}

// Reads the object of `size` bytes (1, 2, 4 or 8, aligned to its size) at `address`, in one acquire load.
inline std::uint64_t load_erased(const volatile void* address, unsigned size) noexcept {
    const auto load = [address]<class Word>(Word) {
        auto* word = const_cast<Word*>(static_cast<const volatile Word*>(address));
        return static_cast<std::uint64_t>(std::atomic_ref<Word>(*word).load(std::memory_order_acquire));
    };
    switch (size) {
        case 1: return load(std::uint8_t{});
        case 2: return load(std::uint16_t{});
        case 4: return load(std::uint32_t{});
        default: return load(std::uint64_t{});
    }
}

}  // namespace tocsin::detail

#endif

namespace tocsin::detail {

// Whether every read-modify-write is also a full fence, as on x86. If so, set() on an event that is set already
// publishes what its caller did before. It does so with a fence and a load instead of a write. The matching fence is
// the read-modify-write with which the consumer takes or resets the event. On ARM this would be wrong: the consumer
// could read the published data before its own write becomes visible. ThreadSanitizer does not understand fences, so in
// its builds the answer is always no.
#if defined(TOCSIN_MODEL)
inline bool rmw_is_full_fence() noexcept { return model::rmw_is_full_fence(); }
#elif defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86)
constexpr bool rmw_is_full_fence() noexcept { return !thread_sanitizer; }
#else
constexpr bool rmw_is_full_fence() noexcept { return false; }
#endif

}  // namespace tocsin::detail

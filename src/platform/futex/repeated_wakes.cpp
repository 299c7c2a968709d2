// SPDX-License-Identifier: Apache-2.0
// A thread that wakes sleepers inside the standard library again and again, while somebody asks for it.
//
// State
//   `wanted`: how many calls of begin_repeated_wakes() have no end_repeated_wakes() yet. The thread sleeps while the
//   count is zero.
//
// Why every sleeper wakes: libstdc++ without a futex has sixteen places where threads sleep. It chooses the place by
// the address of what a thread waits for. A semaphore's size equals its alignment. So sixteen in a row reach every
// place where threads wait for semaphores. A release wakes all threads of its place, but only if the count was zero. So
// each release is taken back at once. One such wake-up may come before a thread sleeps. But the thread sleeps in the
// end, and the next wake-up reaches it.
//
// No lost wake-up of the thread itself: it sleeps only while the count is still the one that it has read. The call that
// makes the count 1 wakes it.
//
// Fork: in the child the count is zero, and the thread starts again.
//
// Memory order: only the count's value matters, and nothing is published through it. What a woken thread waits for
// orders memory.
//
// Checked by: tests/internal/stop_callback_test.cpp, on MinGW-w64. The models of P15 assume what both functions
// promise.
#include "platform/futex/repeated_wakes.hpp"

#include <atomic>

#if defined(__GLIBCXX__) && defined(__cpp_lib_atomic_wait) && !defined(_GLIBCXX_HAVE_LINUX_FUTEX)

#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <chrono>
#include <cstdint>
#include <semaphore>

namespace tocsin::platform {

namespace {

constinit futex_word wanted{0};
constinit std::atomic<bool> has_thread{false};

void wake_repeatedly() noexcept {
    struct unavailable_semaphore {
        std::binary_semaphore it{0};  // the type that std::stop_callback waits for
    };
    unavailable_semaphore at_each_place[16];
    for (;;) {
        const std::uint32_t count = wanted.load(std::memory_order_relaxed);  // no order
        if (count == 0) {
            futex::wait(wanted, 0, deadline::never());
            continue;
        }
        for (auto& semaphore : at_each_place) {
            semaphore.it.release();
            (void)semaphore.it.try_acquire();
        }
        futex::wait(wanted, count, std::chrono::milliseconds(1));
    }
}

void start_thread_once() noexcept {
    if (has_thread.exchange(true, std::memory_order_relaxed)) return;  // no order: the flag stands for itself
    keep_loaded();
    if (start_thread(wake_repeatedly) != 0) {
        has_thread.store(false, std::memory_order_relaxed);  // no order: the next call tries again
    }
}

}  // namespace

void begin_repeated_wakes() noexcept {
    start_thread_once();
    if (wanted.fetch_add(1, std::memory_order_relaxed) == 0) futex::wake_one(&wanted);  // no order
}

void end_repeated_wakes() noexcept { wanted.fetch_sub(1, std::memory_order_relaxed); }  // no order

void forget_repeated_wakes() noexcept {
    wanted.store(0, std::memory_order_relaxed);          // no order: the child has one thread
    has_thread.store(false, std::memory_order_relaxed);  // no order
}

}  // namespace tocsin::platform

#else

namespace tocsin::platform {

void begin_repeated_wakes() noexcept {}
void end_repeated_wakes() noexcept {}
void forget_repeated_wakes() noexcept {}

}  // namespace tocsin::platform

#endif

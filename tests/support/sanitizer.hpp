// Which sanitizer the tests were built with: some behaviours can't be seen under one.
#pragma once

#include <tocsin/detail/sanitizer.hpp>

#include <chrono>
#include <thread>

namespace support {

using tocsin::detail::address_sanitizer;
using tocsin::detail::thread_sanitizer;

// Loops shrink under a sanitizer: it slows every step, and needs few rounds to show what it can show. They also shrink
// under an emulator of another processor, where every step is slow, too.
#if !defined(TOCSIN_TEST_FEW_ROUNDS)
#define TOCSIN_TEST_FEW_ROUNDS 0
#endif
constexpr int rounds(int plain, int sanitized) {
    return TOCSIN_TEST_FEW_ROUNDS || thread_sanitizer || address_sanitizer ? sanitized : plain;
}

// A thread calls this before it may be sent signals. ThreadSanitizer creates its list of a thread's signals in the
// thread's first call that may block, and loses a signal that arrives just then.
inline void prepare_for_signals() {
    if (thread_sanitizer) std::this_thread::sleep_for(std::chrono::nanoseconds(1));
}

}  // namespace support

// SPDX-License-Identifier: Apache-2.0
// Which sanitizer the tests were built with. Under a sanitizer, some behaviours can't be seen.
#pragma once

#include <tocsin/detail/sanitizer.hpp>

#include <chrono>
#include <thread>

namespace support {

using tocsin::detail::address_sanitizer;
using tocsin::detail::thread_sanitizer;

// How many rounds a loop makes. Under a sanitizer it makes fewer, because a sanitizer slows every step, and needs few
// rounds to show what it can show. An emulator of another processor makes every step slow, too.
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

// Which sanitizer the tests were built with: some behaviours can't be seen under one.
#pragma once

#include <tocsin/detail/sanitizer.hpp>

namespace support {

using tocsin::detail::address_sanitizer;
using tocsin::detail::thread_sanitizer;

// Loops shrink under a sanitizer: it slows every step, and shows with few rounds what it can show. Under an emulator
// of another processor they shrink because every step is slow there, too.
#if !defined(TOCSIN_TEST_FEW_ROUNDS)
#define TOCSIN_TEST_FEW_ROUNDS 0
#endif
constexpr int rounds(int plain, int sanitized) {
    return TOCSIN_TEST_FEW_ROUNDS || thread_sanitizer || address_sanitizer ? sanitized : plain;
}

}  // namespace support

// Which sanitizer the tests were built with: some behaviours can't be seen under one.
#pragma once

#include <tocsin/detail/sanitizer.hpp>

namespace support {

using tocsin::detail::address_sanitizer;
using tocsin::detail::thread_sanitizer;

// Loops shrink under a sanitizer: it slows every step, and shows with few rounds what it can show.
constexpr int rounds(int plain, int sanitized) {
    return thread_sanitizer || address_sanitizer ? sanitized : plain;
}

}  // namespace support

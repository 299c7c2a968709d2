// Which sanitizer the tests were built with: some behaviours can't be seen under one.
#pragma once

namespace support {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif
#else
inline constexpr bool thread_sanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool address_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool address_sanitizer = true;
#else
inline constexpr bool address_sanitizer = false;
#endif
#else
inline constexpr bool address_sanitizer = false;
#endif

// Loops shrink under a sanitizer: it slows every step, and shows with few rounds what it can show.
constexpr int rounds(int plain, int sanitized) {
    return thread_sanitizer || address_sanitizer ? sanitized : plain;
}

}  // namespace support

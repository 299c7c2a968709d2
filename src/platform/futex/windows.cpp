// SPDX-License-Identifier: Apache-2.0
// The best mechanism that this Windows has: WaitOnAddress (Windows 8), else slim locks with condition variables (Vista,
// 7). The library chooses when it first needs the mechanism, and ends a program on a Windows that has neither. For
// tests, the environment variable TOCSIN_WINDOWS_SLEEP, set before the program starts, names a mechanism
// (waitonaddress, srw). The library ignores an unknown name, and the name of a mechanism that this system doesn't have.
#include "platform/system/windows.hpp"

#include "platform/futex/futex.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace tocsin::platform {
namespace {

struct backend {
    template <class Backend>
    constexpr backend(const char* its_name, std::type_identity<Backend>) noexcept
        : name(its_name),
          is_available(Backend::is_available),
          wait(Backend::wait),
          wake_one(Backend::wake_one),
          wake_all(Backend::wake_all),
          sleepers(Backend::sleepers) {}

    const char* name;
    bool (*is_available)() noexcept;
    sleep_result (*wait)(const futex_word&, std::uint32_t, const deadline&) noexcept;
    void (*wake_one)(const void*) noexcept;
    void (*wake_all)(const void*) noexcept;
    void** (*sleepers)() noexcept;
};

// The best mechanism is first.
constexpr backend backends[] = {
    {"waitonaddress", std::type_identity<windows_waitonaddress_futex>()},
    {"srw", std::type_identity<windows_srw_futex>()},
};

const backend& choose() noexcept {
    char wanted[32];
    const DWORD length = ::GetEnvironmentVariableA("TOCSIN_WINDOWS_SLEEP", wanted, sizeof wanted);
    const bool is_named = length != 0 && length < sizeof wanted;
    const backend* best = nullptr;
    for (const backend& each : backends) {
        if (!each.is_available()) continue;
        if (best == nullptr) best = &each;
        if (is_named && std::strcmp(each.name, wanted) == 0) return each;
    }
    if (best == nullptr) {
        std::fputs("tocsin: this Windows is older than Vista: it has neither WaitOnAddress nor slim locks\n",
                   stderr);
        std::abort();
    }
    return *best;
}

const backend& chosen() noexcept {
    static const backend& it = choose();
    return it;
}

}  // namespace

template <>
sleep_result windows_futex::wait(const futex_word& word, std::uint32_t expected,
                                 const deadline& until) noexcept {
    return chosen().wait(word, expected, until);
}
template <>
void windows_futex::wake_one(const void* word) noexcept {
    chosen().wake_one(word);
}
template <>
void windows_futex::wake_all(const void* word) noexcept {
    chosen().wake_all(word);
}
template <>
void windows_futex::after_fork() noexcept {}
template <>
void** windows_futex::sleepers() noexcept {
    return chosen().sleepers();
}

}  // namespace tocsin::platform

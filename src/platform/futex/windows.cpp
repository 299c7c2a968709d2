// The best way to sleep that this Windows has, found when it is first needed: WaitOnAddress (Windows 8), else slim
// locks with condition variables (Vista, 7), else kernel events. The environment variable TOCSIN_WINDOWS_SLEEP, set
// before the program starts, names another one (waitonaddress, srw, kernel_event), for tests; one that this system doesn't
// have, or a name that is none, is passed over.
#include "platform/system/windows.hpp"

#include "platform/futex/futex.hpp"

#include <cstring>

namespace tocsin::platform {
namespace windows_futex {
namespace {

struct mechanism {
    const char* name;
    bool (*is_there)() noexcept;
    sleep_result (*wait)(const futex_word&, std::uint32_t, const deadline&) noexcept;
    void (*wake_one)(const void*) noexcept;
    void*& (*sleepers)() noexcept;
};

// Best first; the last is always there.
constexpr mechanism mechanisms[] = {
    {"waitonaddress", waitonaddress_futex::is_there, waitonaddress_futex::futex_wait,
     waitonaddress_futex::futex_wake_one, waitonaddress_futex::futex_sleepers},
    {"srw", srw_futex::is_there, srw_futex::futex_wait, srw_futex::futex_wake_one, srw_futex::futex_sleepers},
    {"kernel_event", []() noexcept { return true; }, kernel_event_futex::futex_wait,
     kernel_event_futex::futex_wake_one, kernel_event_futex::futex_sleepers},
};

const mechanism& choose() noexcept {
    char wanted[32];
    const DWORD length = ::GetEnvironmentVariableA("TOCSIN_WINDOWS_SLEEP", wanted, sizeof wanted);
    const bool is_named = length != 0 && length < sizeof wanted;
    const mechanism* best = nullptr;
    for (const mechanism& each : mechanisms) {
        if (!each.is_there()) continue;
        if (best == nullptr) best = &each;
        if (is_named && std::strcmp(each.name, wanted) == 0) return each;
    }
    return *best;
}

const mechanism& chosen() noexcept {
    static const mechanism& it = choose();
    return it;
}

}  // namespace

sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    return chosen().wait(word, expected, until);
}
void futex_wake_one(const void* word) noexcept { chosen().wake_one(word); }
void futex_after_fork() noexcept {}
void*& futex_sleepers() noexcept { return chosen().sleepers(); }

}  // namespace windows_futex
}  // namespace tocsin::platform

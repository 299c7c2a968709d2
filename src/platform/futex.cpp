// The futex of the library: the mechanism that the build has chosen.
#include "platform/futex.hpp"

namespace tocsin::platform {

#if defined(_WIN32)
#if TOCSIN_FUTEX_WINDOWS
namespace chosen = windows_futex;
#elif TOCSIN_FUTEX_WAITONADDRESS
namespace chosen = waitonaddress_futex;
#elif TOCSIN_FUTEX_SRW
namespace chosen = srw_futex;
#elif TOCSIN_FUTEX_KERNEL_EVENT
namespace chosen = kernel_event_futex;
#endif
#elif TOCSIN_FUTEX_LINUX
namespace chosen = linux_futex;
#elif TOCSIN_FUTEX_PORTABLE
namespace chosen = portable_futex;
#endif

sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    return chosen::futex_wait(word, expected, until);
}
void futex_wake_one(const void* word) noexcept { chosen::futex_wake_one(word); }
void futex_after_fork() noexcept { chosen::futex_after_fork(); }
void*& futex_sleepers() noexcept { return chosen::futex_sleepers(); }

}  // namespace tocsin::platform

// The futex of the library: the mechanism that the build has chosen.
#include "platform/futex/futex.hpp"

namespace tocsin::platform {

namespace chosen = TOCSIN_FUTEX_CHOSEN;

sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    return chosen::futex_wait(word, expected, until);
}
void futex_wake_one(const void* word) noexcept { chosen::futex_wake_one(word); }
void futex_after_fork() noexcept { chosen::futex_after_fork(); }
void*& futex_sleepers() noexcept { return chosen::futex_sleepers(); }

}  // namespace tocsin::platform

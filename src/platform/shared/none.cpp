// SPDX-License-Identifier: Apache-2.0
// Systems on which processes can't wait for each other's words. is_available() says so, and nothing else is called
// that would have to sleep.
#include "platform/shared/shared_futex.hpp"

#include <atomic>

namespace tocsin::platform {

bool shared_futex::is_available() noexcept { return false; }
bool shared_futex::notices_deaths() noexcept { return false; }
shared_sleep shared_futex::sleep(const watched_word*, std::size_t, const deadline&) noexcept {
    return shared_sleep::woken;
}
void shared_futex::wake_all(const wide_word&) noexcept {}
void shared_futex::wake_all(const narrow_word&) noexcept {}
void shared_futex::wake_own(const narrow_word&) noexcept {}
void shared_futex::set_lowest_bit_and_wake_all(narrow_word& word) noexcept {
    word.fetch_or(1, std::memory_order_release);  // [gate] nobody can sleep here
}
std::uint32_t shared_futex::thread_mark() noexcept { return 1 | sleepers_bit; }
void shared_futex::cover(const narrow_word&) noexcept {}
void shared_futex::cover(const wide_word&) noexcept {}
void shared_futex::uncover() noexcept {}
bool shared_futex::has_room_to_hold() noexcept { return false; }
void shared_futex::hold(narrow_word&) noexcept {}
void shared_futex::let_go(const narrow_word&) noexcept {}
bool shared_futex::holds(const narrow_word&) noexcept { return false; }

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// The futex of objects that processes share, in a model build. To cover a word, and to hold one, is a step of the
// thread, because a kill may come before or after it. The kernel's part is in shared_model.hpp.
#include "support/shared_model.hpp"

#include <limits>

namespace tocsin::platform {
namespace {

using library_model::robust;
using library_model::robust_words;

robust_words& of_this_thread() noexcept { return robust[model::this_thread()]; }

std::uintptr_t address_of(const void* word) noexcept { return reinterpret_cast<std::uintptr_t>(word); }

}  // namespace

bool shared_futex::is_available() noexcept { return true; }
bool shared_futex::notices_deaths() noexcept { return true; }

shared_sleep shared_futex::sleep(const watched_word* words, std::size_t count,
                                 const deadline& until) noexcept {
    std::vector<model::futex_place> places;
    for (std::size_t i = 0; i != count; ++i) {
        const watched_word& each = words[i];
        if (each.wide != nullptr)
            places.push_back({each.wide, sizeof *each.wide, each.expected});
        else
            places.push_back({each.narrow, sizeof *each.narrow, each.expected});
    }
    const auto how = model::futex_wait_any(places, !until.is_never());
    return how == model::futex_result::timed_out ? shared_sleep::timed_out : shared_sleep::woken;
}

void shared_futex::wake_all(const wide_word& word) noexcept {
    model::futex_wake(&word, std::numeric_limits<unsigned>::max());
}
void shared_futex::wake_all(const narrow_word& word) noexcept {
    model::futex_wake(&word, std::numeric_limits<unsigned>::max());
}
void shared_futex::wake_own(const narrow_word& word) noexcept {
    model::futex_wake(&word, std::numeric_limits<unsigned>::max());
}
void shared_futex::set_lowest_bit_and_wake_all(narrow_word& word) noexcept {
    detail::full_fence();
    model::futex_wake_op(&word, 1);
}

std::uint32_t shared_futex::thread_mark() noexcept {
    return static_cast<std::uint32_t>(model::this_thread() + 1) | sleepers_bit;
}

// no order in what follows: whoever kills the thread knows what the thread did
void shared_futex::cover(const narrow_word& word) noexcept {
    of_this_thread().covered.store(address_of(&word), std::memory_order_relaxed);
}
void shared_futex::cover(const wide_word& word) noexcept {
    of_this_thread().covered.store(address_of(&word) | 1, std::memory_order_relaxed);
}
void shared_futex::uncover() noexcept { of_this_thread().covered.store(0, std::memory_order_relaxed); }

bool shared_futex::has_room_to_hold() noexcept {
    const robust_words& mine = of_this_thread();
    return mine.holds[0] == nullptr || mine.holds[1] == nullptr;
}
void shared_futex::hold(narrow_word& word) noexcept {
    robust_words& mine = of_this_thread();
    const std::size_t at = mine.holds[0] == nullptr ? 0 : 1;
    mine.holds[at] = &word;
    mine.held[at].store(address_of(&word), std::memory_order_relaxed);
}
void shared_futex::let_go(const narrow_word& word) noexcept {
    robust_words& mine = of_this_thread();
    for (std::size_t at = 0; at != robust_words::max_held; ++at) {
        if (mine.holds[at] != &word) continue;
        mine.holds[at] = nullptr;
        mine.held[at].store(0, std::memory_order_relaxed);
    }
}
bool shared_futex::holds(const narrow_word& word) noexcept {
    const robust_words& mine = of_this_thread();
    return mine.holds[0] == &word || mine.holds[1] == &word;
}

}  // namespace tocsin::platform

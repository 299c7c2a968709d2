// SPDX-License-Identifier: Apache-2.0
// The futex of a model build: the explorer's.
#include "explorer/futex.hpp"
#include "platform/futex/futex.hpp"

#include <limits>

namespace tocsin::platform {

template <>
sleep_result model_futex::wait(const futex_word& word, std::uint32_t expected,
                               const deadline& until) noexcept {
    if (until.which() == deadline::clock::passed) return sleep_result::timed_out;
    const auto result = model::futex_wait(&word, expected, !until.is_never());
    return result == model::futex_result::timed_out ? sleep_result::timed_out : sleep_result::returned;
}

template <>
void model_futex::wake_one(const void* word) noexcept {
    model::futex_wake(word, 1);
}

template <>
void model_futex::wake_all(const void* word) noexcept {
    model::futex_wake(word, std::numeric_limits<unsigned>::max());
}

template <>
void model_futex::after_fork() noexcept {}

}  // namespace tocsin::platform

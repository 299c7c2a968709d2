// SPDX-License-Identifier: Apache-2.0
// The system calls of self_removing_stop_callback.
#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <tocsin/deadline.hpp>
#include <tocsin/detail/stop_callback.hpp>

namespace tocsin::detail {

void sleep_on(const atomic<std::uint32_t>& word, std::uint32_t seen) noexcept {
    (void)platform::futex::wait(word, seen, deadline::never());
}

void wake_sleeper(const void* word) noexcept { platform::futex::wake_one(word); }

std::uint64_t calling_thread() noexcept { return platform::thread_number(); }

}  // namespace tocsin::detail

// SPDX-License-Identifier: Apache-2.0
// The tokens of shared_auto_reset_event and shared_semaphore. Why it is correct: token_queue.cpp.
#pragma once

#include "core/shared/slots.hpp"

#include <cstdint>

namespace tocsin::core {

// Takes a token that the slow path of try_take would find: one that a dead thread has not taken.
bool take_from_dead(const shared_view& object) noexcept;
// Forgets such tokens.
void drop_from_dead(const shared_view& object) noexcept;
// Waits for a token.
wait_status wait_for_token(const shared_view& object, const detail::wait_options& options);
// Gives a token to the longest waiting thread, or adds it to the count, if it stays at most `limit`. Returns whether
// the token was given or added.
bool give_token(const shared_view& object, std::uint32_t limit);

}  // namespace tocsin::core

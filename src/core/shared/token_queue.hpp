// SPDX-License-Identifier: Apache-2.0
// The tokens of shared_auto_reset_event and shared_semaphore. Why it is correct: token_queue.cpp.
#pragma once

#include "core/shared/slots.hpp"

#include <cstdint>

namespace tocsin::core {

// Takes a token that the slow path of try_take would find: one that a dead thread has not taken.
bool take_from_dead(const shared_parts& object) noexcept;
// Forgets such tokens.
void drop_from_dead(const shared_parts& object) noexcept;
// Waits for a token.
wait_status wait_for_token(const shared_parts& object, const detail::wait_options& options);
// Gives a token to the longest waiting thread, or adds it to the count, if it stays at most `limit`. Returns whether
// the token was given or added. `before`, if not null, becomes the count at that moment.
bool give_token(const shared_parts& object, std::uint32_t limit, std::uint32_t* before = nullptr);

// A wait for a token in which no thread sleeps. One thread, its keeper, makes all calls except the constructor. The
// slot is among the words that the keeper holds (dies-2), so a keeper can keep several waits.
class keeper_wait {
public:
    explicit keeper_wait(const shared_parts& object) noexcept : object_(object) {}

    enum class step : std::uint8_t {
        waiting,  // it has a slot: advance again after a change of one of `words`
        taken,    // the keeper has a token, and the wait no slot
        no_room,  // there is no slot, or the keeper can hold no more: advance again later
    };
    // Only if it returns `waiting` may the keeper sleep on what it adds to `words`. Throws state_not_recoverable.
    step advance(sleep_list& words);
    // Ends the wait. Returns true if a token had been handed to it, which the keeper now has.
    bool end() noexcept;
    const shared_parts& object() const noexcept { return object_; }

private:
    bool claim() noexcept;
    void free() noexcept;

    const shared_parts object_;
    std::uint32_t ticket_ = 0;  // of the slot
    shared_slot* slot_ = nullptr;
};

}  // namespace tocsin::core

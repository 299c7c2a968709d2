// SPDX-License-Identifier: Apache-2.0
// What the models of the tokens that processes share have in common.
#pragma once

#include "core/shared/token_queue.hpp"
#include "support/shared_model.hpp"

#include <cstdint>
#include <initializer_list>

namespace tocsin::library_model {

// An event of few slots, and what its threads say that they have given and taken.
struct tokens {
    static constexpr std::uint32_t slots = 3;

    explicit tokens(std::uint32_t max = 1, std::uint32_t room = slots) : limit(max), in_use(room) {}

    detail::shared_parts parts() { return {object.header, object.slots, in_use, kind}; }

    void set() {
        const bool counted = core::give_token(parts(), limit);
        gave[model::this_thread()] += counted ? 1 : 0;
    }
    wait_status wait(const deadline& until = deadline::never(), const stop_token* stop = nullptr) {
        const wait_status how = detail::shared_token_wait(parts(), until, stop);
        took[model::this_thread()] += how == wait_status::signaled ? 1 : 0;
        return how;
    }
    bool try_wait() {
        const bool taken = detail::shared_token_try(parts());
        took[model::this_thread()] += taken ? 1 : 0;
        return taken;
    }

    // Tokens that are in slots, and all that nobody has taken. Called in a fact, or where nothing runs.
    int granted() {
        int found = 0;
        for (const detail::shared_slot& each : object.slots)
            found += core::state_of(each.word.load(std::memory_order_relaxed)) == core::slot_state::granted
                         ? 1
                         : 0;
        return found;
    }
    int left() {
        return granted() +
               static_cast<int>(core::lower(object.header.control.load(std::memory_order_relaxed)));
    }

    // Whether what a thread has said of its tokens is what it has done to the words. A killed thread may have said
    // less, by one of each.
    bool is_balanced(int thread, bool killed) {
        int takes = 0, gives = 0;
        for (const auto& [before, after] : model::changes_by(thread, &object.header.control)) {
            const int more = static_cast<int>(core::lower(after)) - static_cast<int>(core::lower(before));
            (more < 0 ? takes : gives) += more < 0 ? -more : more;
        }
        for (detail::shared_slot& slot : object.slots) {
            for (const auto& [before, after] : model::changes_by(thread, &slot.word)) {
                takes += core::state_of(before) == core::slot_state::granted &&
                         core::state_of(after) != core::slot_state::granted;
                gives += core::state_of(before) != core::slot_state::granted &&
                         core::state_of(after) == core::slot_state::granted;
            }
        }
        const int more_takes = takes - took[thread], more_gives = gives - gave[thread];
        const int max = killed ? 1 : 0;
        return more_takes >= 0 && more_takes <= max && more_gives >= 0 && more_gives <= max;
    }
    bool are_balanced(int victim = -1) {
        bool all = true;
        for (int i = 0; i != model::max_threads; ++i) all = all && is_balanced(i, i == victim);
        return all;
    }

    // At the end: the tokens left can be taken, no more than these, and then a give and a take still work.
    void check_end(model::run& r, int victim = -1) {
        r.check(are_balanced(victim), "each token was given once and taken once");
        const int here = left();
        for (int i = 0; i != here; ++i) r.check(try_wait(), "a token that is left can be taken");
        r.check(left() == 0 && !try_wait(), "no token is there twice");
        set();
        r.check(wait() == wait_status::signaled && left() == 0, "the event works as before");
    }

    static constexpr detail::shared_kind kind = detail::shared_kind::auto_reset_event;
    detail::shared_object<slots> object;
    std::uint32_t limit;
    std::uint32_t in_use;
    int gave[model::max_threads] = {};
    int took[model::max_threads] = {};
};

// Waits until nothing runs. Returns how many tokens there are then.
inline int when_settled(tokens& event) {
    int left = 0;
    model::wait_until([&] {
        left = event.left();  // the newest values
        return model::others_are_blocked();
    });
    return left;
}

// Waits until nothing runs. Whoever sleeps by then gets a token, and there was none before.
inline void settle(model::run& r, tokens& event, std::initializer_list<int> waiters) {
    int left = when_settled(event);
    for (const int each : waiters) {
        for (int i = 0; i != 3 && event.took[each] == 0; ++i) {  // another may wait in front
            r.check(left == 0, "nobody sleeps while there is a token");
            event.set();
            left = when_settled(event);
        }
    }
    r.join_all();
}

}  // namespace tocsin::library_model

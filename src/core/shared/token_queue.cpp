// SPDX-License-Identifier: Apache-2.0
// State: `control` has the count of tokens that nobody waits for (of an auto-reset event: 0 or 1) in its lower half.
// Above it are `queued_bit` and a generation. Each waiting thread owns a slot: `owner` is its mark, and `word` says in
// one atomic object whether the thread waits, or has been granted a token, and what it sleeps on.
//
// Each step that matters is one compare-and-exchange of one word, made by the thread that profits from it:
//   take      control: count -> count - 1
//   claim     owner: 0 or died -> the waiter's mark
//   wait      control: queued, next generation; word: idle -> waiting, ticket; control: queued, next generation
//   grant     word: waiting, ticket, armed -> granted, ticket, the giver's mark
//   receive   word: granted -> idle
//   withdraw  word: waiting -> idle (a giver does the same to the word of a dead waiter)
//   inherit   word of a dead owner: granted -> idle
//
// Invariants
//   token_queue-1  A token is in exactly one place: in the count, in a word that is `granted`, or with the thread that
//       took it. Each step above moves one token or none. No step needs a second one to be complete, so a thread that
//       dies between two steps, or is stopped there, leaves nothing half done.
//   token_queue-2  Only the owner of a slot makes its word `waiting`, and a ticket is used once. So a grant, whose
//       exchange compares the ticket, reaches the wait that the giver has seen, or fails.
//   token_queue-3  A thread covers the word it is about to change (shared_futex.hpp): a waiter the owner of its slot,
//       for as long as it owns it, a giver the word that it grants. So whoever dies with a slot leaves it `died`.
//   token_queue-4  If a slot is waiting, or granted and not received, then `queued_bit` is on. A waiter turns it on
//       after it has claimed its slot and before its word is `waiting`. A giver turns it off only if, after it had
//       loaded `control`, it found no slot owned and every word idle, and if `control` has not changed since.
//   token_queue-5  A giver touches nothing of the object after a grant, or after its exchange of `control`: the wake
//       goes by the address alone.
//
// No lost wake-up. A giver that finds no waiting slot adds to the count by an exchange of `control`. A waiter makes its
// word `waiting` before it exchanges `control` again, and all exchanges of `control` are ordered:
//   - The waiter's exchange comes before the giver's load of `control`: the giver sees the word `waiting`.
//   - It comes between the giver's load and exchange: the exchange fails, because of the generation.
//   - It comes after the giver's exchange: the waiter finds the count above zero. It withdraws and takes a token. If it
//     can't withdraw, it has been granted one.
// A grant changes the lower half of the word, so a waiter that is not yet asleep does not fall asleep.
//
// Death. The kernel's promises dies-1 to dies-4 are in shared_futex.hpp.
//   - A giver dies before its grant: no token has moved. It dies after its grant and before its wake: the lower half of
//     the word is its mark and covered, so the kernel wakes the waiter. (If the waiter has received meanwhile, the wake
//     is for nothing.)
//   - A waiter dies: the kernel marks its slot. Givers pass over it, and the next claim takes it. A waiter that dies
//     before it has received leaves a token in the slot. This token belongs to the next thread that asks: try_take and
//     a new wait look into the slots of the dead, if `queued_bit` is on. A thread that sleeps watches the owners of the
//     slots that were in use when it fell asleep. The kernel wakes one of those watchers, which withdraws and inherits.
//     If that one dies before it has inherited, its own death wakes the next. So the token is passed on at once.
//   - A waiter dies after a giver has looked at its owner and before the grant. A watcher that finds a dead slot still
//     `waiting` makes it idle, so the grant fails. If the grant was first, the watcher inherits.
//   - Two cases wait for the next call on the object: nobody else waited when the owner died, or those who wait fell
//     asleep before the slot was claimed (then they have older tickets, so the giver had passed over them in a race).
//   - A thread that dies after `take`, `receive` or `inherit` has taken the token with it.
// A slot may be marked although its owner lives: if a thread with the same number in another pid namespace died between
// the two lines of a claim that fails. Then the owner finds another ticket in its word, and claims another slot. No
// token moves by that.
//
// Memory order
//   [token]  A take, receive or inherit acquires what the gives before it released. A give is a release: by its
//       exchange of `control`, also if that changes nothing, or of the word. All changes of both are
//       read-modify-writes.
//   [queued]  The waiter's exchange of `control` releases its word. A giver acquires it with `control`.
//   [slot-free], [slot-dead]  What the last owner did to the word comes before the next owner's claim.
//
// Checked by: tests/unit/shared_event_test.cpp, shared_death_test.cpp (kills after each instruction),
// shared_scribble_test.cpp.
#include "core/shared/token_queue.hpp"

#include <tocsin/detail/shared_tokens.hpp>

namespace tocsin::core {
namespace {

constexpr std::uint64_t queued_bit = detail::shared_queued;
constexpr std::uint64_t generation = std::uint64_t{1} << 33;

// Gives up waiting. Returns false if a token has been granted meanwhile, or if the slot is not this wait's any more.
bool withdraw(shared_slot& slot, std::uint32_t ticket) noexcept {
    std::uint64_t seen = slot.word.load(std::memory_order_relaxed);  // no order: the exchange decides
    for (int i = 0; i != 1000 && upper(seen) == above(slot_state::waiting, ticket); ++i) {
        // [slot-free] The next owner finds the word idle.
        if (slot.word.compare_exchange_weak(seen, joined(above(slot_state::idle, ticket), 0),
                                            std::memory_order_acq_rel, std::memory_order_relaxed))
            return true;
    }
    return false;
}

// Takes the token of a word that is granted.
bool receive(shared_slot& slot, std::uint64_t seen) noexcept {
    const std::uint32_t granted = upper(seen);
    for (int i = 0; i != 1000 && state_of(seen) == slot_state::granted && upper(seen) == granted; ++i) {
        // [token] acquires what the giver released. The lower half may change meanwhile.
        if (slot.word.compare_exchange_weak(seen, joined(above(slot_state::idle, ticket_of(seen)), 0),
                                            std::memory_order_acq_rel, std::memory_order_relaxed))
            return true;
    }
    return false;
}

bool try_take(const shared_view& object) noexcept {
    std::uint64_t seen = object.header.control.load(std::memory_order_relaxed);  // no order: see the exchange
    while (lower(seen) != 0) {
        // [token] acquires what the givers released.
        if (object.header.control.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire,
                                                        std::memory_order_relaxed))
            return true;
    }
    return (seen & queued_bit) != 0 && take_from_dead(object);
}

// Makes a slot that has just been claimed idle. Returns true if a dead owner left a token in it, which is now the
// caller's.
bool clear(const shared_view& object, shared_slot& slot) {
    shared_rounds rounds(object);
    for (;; rounds.next()) {
        std::uint64_t seen = slot.word.load(std::memory_order_relaxed);  // no order: see the exchanges
        if (state_of(seen) == slot_state::granted) {
            if (receive(slot, seen)) return true;
        } else if (seen == 0 ||
                   // no order: the claim has acquired, and the next change of the word releases
                   slot.word.compare_exchange_strong(seen, 0, std::memory_order_relaxed)) {
            return false;
        }
    }
}

// Makes the word of a dead waiter idle, so that nobody grants it a token. Returns whether it has.
bool forget_dead_wait(shared_slot& slot, std::uint64_t seen) noexcept {
    return state_of(seen) == slot_state::waiting &&
           // no order: no token moves, and a giver that loses this race looks again
           slot.word.compare_exchange_strong(seen, joined(above(slot_state::idle, ticket_of(seen)), 0),
                                             std::memory_order_relaxed);
}

// Says in `control` that slots are in use.
// Returns false if there are tokens in the count.
bool announce(const shared_view& object) {
    shared_rounds rounds(object);
    std::uint64_t seen = object.header.control.load(std::memory_order_relaxed);  // no order: see the exchange
    for (;; rounds.next()) {
        if (lower(seen) != 0) return false;
        // [queued] releases what this thread wrote into its slot.
        if (object.header.control.compare_exchange_weak(seen, (seen | queued_bit) + generation,
                                                        std::memory_order_acq_rel, std::memory_order_relaxed))
            return true;
    }
}

enum class begun { waiting, lost };

// Makes the word `waiting`, and says so in `control`, before (token_queue-4) and after.
begun begin_waiting(const shared_view& object, shared_slot& slot, std::uint32_t ticket) {
    if (!announce(object)) return begun::lost;
    std::uint64_t idle = slot.word.load(std::memory_order_relaxed);  // no order: the exchange decides
    const std::uint64_t waiting = joined(above(slot_state::waiting, ticket), armed | (ticket & (armed - 1)));
    if (state_of(idle) != slot_state::idle ||
        !slot.word.compare_exchange_strong(idle, waiting, std::memory_order_release,
                                           std::memory_order_relaxed))  // [queued]
        return begun::lost;
    if (announce(object)) return begun::waiting;
    return withdraw(slot, ticket) ? begun::lost : begun::waiting;
}

}  // namespace

bool take_from_dead(const shared_view& object) noexcept {
    for (std::uint32_t i = 0; i != object.slot_count; ++i) {
        shared_slot& slot = object.slots[i];
        // [token] The word is read before its owner. If there has been another owner in between, receive() fails,
        // because of the ticket.
        const std::uint64_t seen = slot.word.load(std::memory_order_acquire);
        if (state_of(seen) != slot_state::granted) continue;
        // [slot-dead] with the kernel's mark
        if (is_ownerless(slot.owner.load(std::memory_order_acquire)) && receive(slot, seen)) return true;
    }
    return false;
}

void drop_from_dead(const shared_view& object) noexcept {
    for (std::uint32_t i = 0; i != object.slot_count && take_from_dead(object); ++i) {
    }
}

wait_status wait_for_token(const shared_view& object, const detail::wait_options& options) {
    if (try_take(object)) return wait_status::signaled;
    if (options.stop != nullptr && options.stop->stop_requested()) return wait_status::stopped;
    if (options.until.which() == deadline::clock::passed) return wait_status::timed_out;
    shared_check_stamp(object);
    const shared_stop stop(options.stop);
    const std::uint32_t ticket = new_ticket(object);
    shared_rounds rounds(object);
    for (;; rounds.next()) {  // again only if the slot was lost, or for a token that somebody else took
        const claimed_slot claim(object);
        shared_slot& slot = claim.slot();
        if (clear(object, slot)) return wait_status::signaled;
        for (;; rounds.next()) {
            if (begin_waiting(object, slot, ticket) == begun::lost) {
                if (state_of(slot.word.load(std::memory_order_relaxed)) != slot_state::idle)
                    break;  // no order
                if (try_take(object)) return wait_status::signaled;
                continue;
            }
            bool again = false;
            while (!again) {
                // [token] The words are read before the thread sleeps on what they were.
                const std::uint64_t seen = slot.word.load(std::memory_order_acquire);
                if (upper(seen) == above(slot_state::granted, ticket)) {
                    if (receive(slot, seen)) return wait_status::signaled;
                    rounds.next();
                    continue;
                }
                if (upper(seen) != above(slot_state::waiting, ticket)) break;  // not ours any more
                sleep_list words(slot.word, lower(seen));
                for (std::uint32_t i = 0; i != object.slot_count && !again; ++i) {
                    shared_slot& other = object.slots[i];
                    if (&other == &slot) continue;
                    const std::uint32_t owner = other.owner.load(std::memory_order_acquire);  // [slot-dead]
                    if (!is_ownerless(owner)) {
                        words.add_owner(other.owner, owner);
                        continue;
                    }
                    const std::uint64_t word =
                        other.word.load(std::memory_order_relaxed);  // no order: see receive()
                    again = state_of(word) == slot_state::granted ||
                            (state_of(word) == slot_state::waiting && !forget_dead_wait(other, word));
                }
                wait_status ended = wait_status::signaled;
                if (!again) {
                    words.add_stop(stop);
                    const platform::shared_sleep how = words.sleep(options.until);
                    if (stop.is_requested())
                        ended = wait_status::stopped;
                    else if (how == platform::shared_sleep::timed_out)
                        ended = wait_status::timed_out;
                    else
                        continue;
                }
                if (!withdraw(slot, ticket)) {
                    again = false;
                    rounds.next();
                    continue;  // it has been granted, or is lost
                }
                if (again && take_from_dead(object)) return wait_status::signaled;
                if (!again) return ended;
            }
            if (!again) break;
        }
    }
}

bool give_token(const shared_view& object, std::uint32_t limit) {
    shared_rounds rounds(object);
    for (;; rounds.next()) {
        std::uint64_t seen = object.header.control.load(std::memory_order_acquire);  // [queued]
        bool in_use = false;
        shared_slot* oldest = nullptr;
        std::uint64_t oldest_word = 0;
        if ((seen & queued_bit) != 0) {
            for (std::uint32_t i = 0; i != object.slot_count; ++i) {
                shared_slot& slot = object.slots[i];
                const std::uint32_t owner = slot.owner.load(std::memory_order_relaxed);  // no order: a hint
                const std::uint64_t word =
                    slot.word.load(std::memory_order_relaxed);  // no order: see the grant
                if (is_ownerless(owner)) {
                    if (state_of(word) != slot_state::idle && !forget_dead_wait(slot, word)) in_use = true;
                    continue;
                }
                in_use = true;
                if (state_of(word) != slot_state::waiting) continue;
                if (oldest == nullptr || is_older(ticket_of(word), ticket_of(oldest_word))) {
                    oldest = &slot;
                    oldest_word = word;
                }
            }
        }
        if (oldest != nullptr) {
            platform::shared_futex::cover(oldest->word);
            const std::uint64_t granted = joined(above(slot_state::granted, ticket_of(oldest_word)),
                                                 platform::shared_futex::thread_mark());
            // [token] releases.
            const bool done = oldest->word.compare_exchange_strong(
                oldest_word, granted, std::memory_order_acq_rel, std::memory_order_relaxed);
            if (done) platform::shared_futex::wake_all(oldest->word);
            platform::shared_futex::uncover();
            if (!done) continue;
            return true;
        }
        const bool fits = lower(seen) < limit;
        std::uint64_t next = seen + (fits ? 1 : 0);
        if (!in_use) next &= ~queued_bit;
        // [token] releases, even if it changes nothing.
        if (object.header.control.compare_exchange_strong(seen, next, std::memory_order_acq_rel,
                                                          std::memory_order_relaxed))
            return fits;
    }
}

}  // namespace tocsin::core

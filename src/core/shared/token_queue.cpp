// SPDX-License-Identifier: Apache-2.0
// Tokens that threads of several processes take, and the queue of those that wait for one.
//
// State: `control` has the count of tokens that nobody waits for (of an auto-reset event: 0 or 1) in its lower half.
// Above it are `queued_bit` and a generation. Each waiting thread owns a slot: `owner` is its mark, and `word` says in
// one atomic object whether the thread waits, or has been granted a token, and what it sleeps on.
//
// Each step that matters is one compare-and-exchange of one word, made by the thread that profits from it. (`wait` is
// three such steps, one after the other.)
//   take      control: count -> count - 1
//   claim     owner: ownerless -> the waiter's mark
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
//   token_queue-6  Whether a slot is a dead thread's is asked of its owner between two loads of its word that agree,
//       and what is done then compares that word. The claim preceded the word `waiting` or `granted`. So if the slot is
//       ownerless by then, the owner of that wait is gone, or the word has changed since and the exchange fails. (With
//       no load before, a thread could claim the slot in between, and would lose its wait. With none after, the slot
//       could have been granted and marked in between, and its token would be overlooked.)
//   token_queue-7  A giver looks at all slots again, after it has found the longest waiting thread. So no thread with
//       an older ticket is passed over that waited before the chosen one began to wait. (The first look may come to a
//       slot before the slot's thread waits, and then to another that begins to wait later.)
//
// No lost wake-up. A giver that finds no waiting slot adds to the count by an exchange of `control`. A waiter makes its
// word `waiting` before it exchanges `control` again, and all exchanges of `control` are ordered:
//   - The waiter's exchange comes before the giver's load of `control`: the giver sees the word `waiting`.
//   - It comes between the giver's load and exchange: the exchange fails, because of the generation.
//   - It comes after the giver's exchange: the waiter finds the count above zero. It withdraws and takes a token. If it
//     can't withdraw, it has been granted one.
// A grant changes the lower half of the word, so a waiter that is not yet asleep does not fall asleep.
//
// Death. The kernel's promises dies-1 to dies-5 are in shared_futex.hpp.
//   - A giver dies before its grant: no token has moved. It dies after its grant and before its wake: the lower half of
//     the word is its mark and covered, so the kernel wakes the waiter. (If the waiter has received meanwhile, the wake
//     is for nothing.)
//   - A waiter dies: the kernel marks its slot. Givers pass over it, and the next claim takes it. A waiter that dies
//     before it has received leaves a token in the slot. This token belongs to the next thread that asks: try_take and
//     a new wait look into the slots of the dead, if `queued_bit` is on. The kernel wakes one of those who sleep,
//     because all of them watch the slot (slots-1). It withdraws and inherits. If it dies before it has inherited, its
//     own death wakes the next. So the token is passed on at once.
//   - A waiter dies after a giver has looked at its owner and before the grant. A watcher that finds a dead slot still
//     `waiting` makes it idle, so the grant fails. If the grant was first, the watcher inherits.
//   - The kernel's wake may be spent on a watcher that is awake already, because it was granted a token itself, or has
//     given up (dies-5). So every thread that has slept looks at the slots of the dead before it leaves, and wakes
//     those that sleep on the owner of a slot with a token. If it dies before that, its own death wakes the next.
//   - If nobody waited when the owner died, the token waits for the next call on the object.
//   - A thread that dies after `take`, `receive` or `inherit` has taken the token with it.
// A slot may be marked although its owner lives: if a thread with the same number in another pid namespace died between
// the two lines of a claim that fails. Then the owner finds another ticket in its word, and claims another slot. No
// token moves by that.
//
// Looks. Before a thread claims a slot, and once more before it sleeps, it may look for a moment, as within a process
// (spinner.cpp). The first looks are tries to take, which any thread may make at any time. During the others the thread
// has a slot, changes nothing, and is not asleep: to others it is a thread that is slow between two steps. So neither
// kind needs a word in the arguments above. The history of what pays is memory of the process.
//
// Memory order
//   [token]  A take, receive or inherit acquires what the gives before it released. A give is a release: by its
//       exchange of `control`, also if that changes nothing, or of the word. All changes of both are
//       read-modify-writes.
//   [queued]  The waiter's exchange of `control` releases its word. A giver acquires it with `control`.
//   [slot-free], [slot-dead]  What the last owner did to the word comes before the next owner's claim.
//   [watch]  slots-1 (slots.hpp).
//
// Checked by: proof P29 (docs/proofs.md), tests/model/shared_token_model_test.cpp;
// tests/unit/shared_event_test.cpp, shared_death_test.cpp (kills after each instruction), shared_scribble_test.cpp.
#include "core/shared/token_queue.hpp"

#include "core/wait/diagnosed_wait.hpp"
#include "core/wait/spinner.hpp"

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

bool try_take(const shared_parts& object) noexcept {
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
bool clear(const shared_parts& object, shared_slot& slot) {
    shared_rounds rounds(object);
    for (;; rounds.next()) {
        std::uint64_t seen = slot.word.load(std::memory_order_relaxed);  // no order: see the exchanges
        if (state_of(seen) == slot_state::granted) {
            if (receive(slot, seen)) return true;
        } else if (seen == 0) {
            return false;
            // no order: the claim has acquired, and the next change of the word releases
        } else if (slot.word.compare_exchange_strong(seen, 0, std::memory_order_relaxed)) {
            // if the slot was marked although its owner lives
            if (state_of(seen) == slot_state::waiting) platform::shared_futex::wake_all(slot.word);
            return false;
        }
    }
}

// What a slot holds whose owner has died, or that is free.
enum class left_by_dead { nothing, token, not_sure };

// Looks at a slot whose word was `seen`. Makes the word of a dead waiter idle, so that nobody grants it a token.
left_by_dead look_at_ownerless(shared_slot& slot, std::uint64_t seen) noexcept {
    if (state_of(seen) == slot_state::granted) return left_by_dead::token;
    if (state_of(seen) != slot_state::waiting) return left_by_dead::nothing;
    // no order: no token moves, and a giver that loses this race looks again
    if (!slot.word.compare_exchange_strong(seen, joined(above(slot_state::idle, ticket_of(seen)), 0),
                                           std::memory_order_relaxed))
        return left_by_dead::not_sure;
    platform::shared_futex::wake_all(slot.word);  // if the slot was marked although its owner lives
    return left_by_dead::nothing;
}

// A slot's word and owner. If nobody owns the slot, the word is the same before and after the look at the owner
// (token_queue-6).
struct slot_look {
    explicit slot_look(const shared_slot& slot) noexcept {
        word = slot.word.load(std::memory_order_acquire);        // [queued], [token]
        for (int i = 0; i != 1000; ++i) {                        // again only while others change the word
            owner = slot.owner.load(std::memory_order_acquire);  // [slot-dead] with the kernel's mark
            if (!is_ownerless(owner)) return;
            const std::uint64_t before = word;
            word = slot.word.load(std::memory_order_acquire);  // [token]
            if (word == before) return;
        }
    }
    std::uint64_t word = 0;
    std::uint32_t owner = 0;
};

// Says in `control` that slots are in use.
// Returns false if there are tokens in the count.
bool announce(const shared_parts& object) {
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

// Adds the owner of each slot but `own` that has ever been owned: a waiting thread sleeps on these.
// Returns true, without having added all, if a dead thread may have left a token.
bool watch_others(const shared_parts& object, const shared_slot& own, sleep_list& words) noexcept {
    detail::full_fence();  // [watch]
    for (std::uint32_t i = 0; i != object.slot_count; ++i) {
        shared_slot& other = object.slots[i];
        if (&other == &own) continue;
        const slot_look its(other);
        if (is_ownerless(its.owner) && look_at_ownerless(other, its.word) != left_by_dead::nothing)
            return true;
        if (its.owner != 0) words.add_owner({.narrow = &other.owner, .expected = its.owner});
    }
    return false;
}

// Tells those who sleep of tokens that the dead have left. A thread that has slept may have been woken for several
// reasons at once, and one of the kernel's wakes may have been spent on it (dies-5).
void pass_news_on(const shared_parts& object, const shared_slot& own) noexcept {
    for (std::uint32_t i = 0; i != object.slot_count; ++i) {
        shared_slot& other = object.slots[i];
        if (&other == &own) continue;
        const slot_look its(other);
        if (is_ownerless(its.owner) && look_at_ownerless(other, its.word) != left_by_dead::nothing)
            platform::shared_futex::wake_all(other.owner);
    }
}

// Does so at the end of a wait.
class news {
public:
    news(const shared_parts& object, const shared_slot& own) noexcept : object_(object), own_(own) {}
    ~news() {
        if (slept) pass_news_on(object_, own_);
    }
    news(const news&) = delete;
    news& operator=(const news&) = delete;

    bool slept = false;

private:
    const shared_parts& object_;
    const shared_slot& own_;
};

enum class begun { waiting, lost };

// Makes the word `waiting`, and says so in `control`, before (token_queue-4) and after.
begun begin_waiting(const shared_parts& object, shared_slot& slot, std::uint32_t ticket) {
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

bool take_from_dead(const shared_parts& object) noexcept {
    for (std::uint32_t i = 0; i != object.slot_count; ++i) {
        shared_slot& slot = object.slots[i];
        const slot_look seen(slot);
        if (state_of(seen.word) == slot_state::granted && is_ownerless(seen.owner) &&
            receive(slot, seen.word))
            return true;
    }
    return false;
}

void drop_from_dead(const shared_parts& object) noexcept {
    for (std::uint32_t i = 0; i != object.slot_count && take_from_dead(object); ++i) {
    }
}

wait_status wait_for_token(const shared_parts& object, const detail::wait_options& options) {
    if (try_take(object)) return wait_status::signaled;
    if (options.stop != nullptr && options.stop->stop_requested()) return wait_status::stopped;
    if (options.until.which() == deadline::clock::passed) return wait_status::timed_out;
    shared_check_stamp(object);
    spinner looks({&object.header, wait_kind::event}, options, false);
    const auto token_is_there = [&] {
        // no order: a hint; the take acquires
        return lower(object.header.control.load(std::memory_order_relaxed)) != 0 && try_take(object);
    };
    if (looks.before_parking(token_is_there)) return wait_status::signaled;
    const shared_stop stop(options.stop);
    diagnosed_sleeper shown({shared_kind_name(object.kind), &object.header});
    shared_rounds rounds(object);
    for (;; rounds.next()) {  // again only if the slot was lost, or for a token that somebody else took
        const claimed_slot claim(object);
        shared_slot& slot = claim.slot();
        if (clear(object, slot)) return wait_status::signaled;
        const std::uint32_t ticket = new_ticket(object);
        news of_deaths(object, slot);
        for (;; rounds.next()) {
            if (begin_waiting(object, slot, ticket) == begun::lost) {
                if (state_of(slot.word.load(std::memory_order_relaxed)) != slot_state::idle)
                    break;  // no order
                if (try_take(object)) return wait_status::signaled;
                continue;
            }
            (void)looks.while_parked([&] {
                // no order: a hint; the loop below reads the word again
                return upper(slot.word.load(std::memory_order_relaxed)) != above(slot_state::waiting, ticket);
            });
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
                sleep_list words({.wide = &slot.word, .expected = lower(seen)});
                again = watch_others(object, slot, words);
                wait_status ended = wait_status::signaled;
                if (!again) {
                    words.add_stop(stop);
                    of_deaths.slept = true;
                    shown.enter();
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

namespace {

struct oldest_wait {
    shared_slot* slot = nullptr;
    std::uint64_t word = 0;
    bool in_use = false;  // whether any slot is
    bool operator==(const oldest_wait& other) const noexcept {
        return slot == other.slot && word == other.word;
    }
};

oldest_wait find_oldest(const shared_parts& object) noexcept {
    oldest_wait found;
    for (std::uint32_t i = 0; i != object.slot_count; ++i) {
        shared_slot& slot = object.slots[i];
        const slot_look its(slot);
        if (is_ownerless(its.owner)) {
            found.in_use |= look_at_ownerless(slot, its.word) != left_by_dead::nothing;
            continue;
        }
        found.in_use = true;
        if (state_of(its.word) != slot_state::waiting) continue;
        if (found.slot != nullptr && !is_older(ticket_of(its.word), ticket_of(found.word))) continue;
        found.slot = &slot;
        found.word = its.word;
    }
    return found;
}

}  // namespace

bool keeper_wait::claim() noexcept {
    std::uint32_t index = 0;
    if (platform::shared_futex::has_room_to_hold()) slot_ = shared_claim_slot(object_, index);
    if (slot_ == nullptr) return false;
    // Another wait of this keeper may have lost the slot, if that was marked although the keeper lives.
    platform::shared_futex::let_go(slot_->owner);
    platform::shared_futex::hold(slot_->owner);
    platform::shared_futex::uncover();
    return true;
}

void keeper_wait::free() noexcept {
    pass_news_on(object_, *slot_);  // the keeper has slept; while it owns the slot, others watch it
    platform::shared_futex::cover(slot_->owner);
    platform::shared_futex::let_go(slot_->owner);
    shared_free_slot(*slot_);
    platform::shared_futex::uncover();
    slot_ = nullptr;
}

keeper_wait::step keeper_wait::advance(sleep_list& words) {
    shared_rounds rounds(object_);
    for (;; rounds.next()) {
        if (slot_ == nullptr) {
            if (try_take(object_)) return step::taken;
            if (!claim()) return step::no_room;
            if (clear(object_, *slot_)) {
                free();
                return step::taken;
            }
            ticket_ = new_ticket(object_);
        }
        // [token] The words are read before the thread sleeps on what they were.
        const std::uint64_t seen = slot_->word.load(std::memory_order_acquire);
        const bool is_ours = slot_->owner.load(std::memory_order_relaxed) ==  // no order: see the exchanges
                             platform::shared_futex::thread_mark();
        if (is_ours && upper(seen) == above(slot_state::granted, ticket_)) {
            if (!receive(*slot_, seen)) continue;
            free();
            return step::taken;
        }
        if (is_ours && upper(seen) == above(slot_state::waiting, ticket_)) {
            if (!watch_others(object_, *slot_, words)) {
                words.add({.wide = &slot_->word, .expected = lower(seen)});
                return step::waiting;
            }
            if (withdraw(*slot_, ticket_) && take_from_dead(object_)) {
                free();
                return step::taken;
            }
            continue;
        }
        if (!is_ours || state_of(seen) != slot_state::idle) {
            free();  // it was marked although this thread lives
        } else if (begin_waiting(object_, *slot_, ticket_) == begun::lost && try_take(object_)) {
            free();
            return step::taken;
        }
    }
}

bool keeper_wait::end() noexcept {
    if (slot_ == nullptr) return false;
    bool has_token = false;
    if (!withdraw(*slot_, ticket_)) {
        const std::uint64_t seen = slot_->word.load(std::memory_order_acquire);  // [token]
        has_token = upper(seen) == above(slot_state::granted, ticket_) && receive(*slot_, seen);
    }
    free();
    return has_token;
}

bool give_token(const shared_parts& object, std::uint32_t limit, std::uint32_t* before) {
    shared_rounds rounds(object);
    for (;; rounds.next()) {
        std::uint64_t seen = object.header.control.load(std::memory_order_acquire);  // [queued]
        oldest_wait oldest;
        if ((seen & queued_bit) != 0) oldest = find_oldest(object);
        if (oldest.slot != nullptr) {
            if (!(find_oldest(object) == oldest)) continue;  // token_queue-7
            shared_slot& slot = *oldest.slot;
            platform::shared_futex::cover(slot.word);
            const std::uint64_t granted = joined(above(slot_state::granted, ticket_of(oldest.word)),
                                                 platform::shared_futex::thread_mark());
            // [token] releases.
            const bool done = slot.word.compare_exchange_strong(
                oldest.word, granted, std::memory_order_acq_rel, std::memory_order_relaxed);
            if (done) platform::shared_futex::wake_all(slot.word);
            platform::shared_futex::uncover();
            if (!done) continue;
            if (before != nullptr) *before = lower(seen);
            return true;
        }
        const bool fits = lower(seen) < limit;
        std::uint64_t next = seen + (fits ? 1 : 0);
        if (!oldest.in_use) next &= ~queued_bit;
        // [token] releases, even if it changes nothing.
        if (object.header.control.compare_exchange_strong(seen, next, std::memory_order_acq_rel,
                                                          std::memory_order_relaxed)) {
            if (before != nullptr) *before = lower(seen);
            return fits;
        }
    }
}

}  // namespace tocsin::core

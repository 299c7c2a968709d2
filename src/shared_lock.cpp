// SPDX-License-Identifier: Apache-2.0
// A lock of several processes, which survives the death of its holder.
//
// State: `control` names the slot whose owner holds the lock, or none. It also has the flags `unrepaired` (a holder
// died, and nobody has repaired since), `lost` and `queued`, and a generation. Each thread that holds the lock or waits
// for it owns a slot (slots.hpp). A slot's word is `waiting` while its thread waits, and nothing is ever granted in it:
// `control` alone says who holds.
//
// Each step that matters is one compare-and-exchange of `control`:
//   take      no holder -> my slot
//   steal     a holder whose owner word says `died` -> my slot, unrepaired
//   hand over my slot -> the slot that has waited longest, or none
//
// Invariants
//   lock-1  A thread holds the lock if and only if `control` names a slot that it owns. The owner word is covered until
//       the thread has put it among its held words, and again before it takes it out, so whoever dies with a slot
//       leaves it `died`.
//   lock-2  Whoever claims the slot of a dead holder finds `control` naming it, and steals before anything else.
//   lock-3  Before a holder hands over, it puts its mark into the lower half of the heir's word, covered (*announces*).
//       The exchange of `control` expects the value that it loaded before that.
//   lock-4  A waiter *arms* its word with a number that it has not used before in this wait. Then it looks at the
//       owners of all slots, and then it exchanges `control` for the next generation, before it sleeps on that number
//       and on those owners. It arms again after each sleep.
//   lock-5  A thread that dies while it waits leaves its word `waiting`. Whoever claims the slot makes the word idle,
//       and then exchanges `control` for the next generation. So if a holder takes the old word for that of the new
//       owner, and hands over to the slot, then this exchange finds that, or the holder's exchange fails.
//
// No lost wake-up. A waiter has armed, has exchanged `control` and found itself not the holder. It then sleeps on the
// number it has armed with. A holder that makes it the heir has loaded `control` after the waiter's exchange, or its
// own exchange fails. So its announcement comes after the arming and changes the word: a waiter that is not asleep yet
// does not fall asleep, and one that is asleep is woken by the holder after the exchange, or by the kernel if the
// holder dies in between. If the exchange fails, the heir sleeps on, and the holder tries again. A holder that finds
// nobody waiting hands over to none by an exchange that fails if there is a waiter by then.
//
// Death. A holder dies: the kernel wakes one thread that sleeps, because each of them watches the holder's slot
// (slots-1). That thread steals. If it dies before, its own death wakes another, which steals (slots.hpp). The kernel's
// wake may be spent on a thread that gives up (dies-5). That thread looks at `control` before it returns. An heir that
// dies before it runs is a holder that dies.
//
// An heir may be dead already when it is chosen. Then a thread has been woken for its death, or nobody slept. That
// thread looks at the owners, and exchanges `control`. If this comes before the holder loads `control`, the holder
// finds the heir dead. If it comes between that load and the hand-over, the hand-over fails. If it comes later, the
// thread finds that the holder is the heir, and dead. If nobody slept, the same holds for whoever waits next.
//
// The slot of such an heir may have been claimed by a thread that only tries: lock-5. If a holder that has lost the
// lock dies before it has woken everybody, its own death wakes one of them.
//
// A stopped thread holds nobody up, with two exceptions: it holds the lock, or it was stopped while it made a list of
// parked waits. The second holds up threads of its own process that enter the same list or leave it
// (diagnosed_wait.cpp). If one of them has just been given the lock, whoever waits for that lock waits, too.
//
// Memory order
//   [held]  Each exchange of `control` is acquire and release, so what a holder did comes before its heir's return.
//       What a dead holder did comes before the kernel's mark on its owner word, which the thief acquires.
//   [watch]  slots-1 (core/shared/slots.hpp).
//
// Checked by: proof P31 (docs/proofs.md), tests/model/shared_lock_model_test.cpp; tests/unit/shared_lock_test.cpp,
// shared_death_test.cpp.
#include "core/shared/slots.hpp"
#include "core/sync/happens_before.hpp"
#include "core/wait/diagnosed_wait.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/shared_lock.hpp>

#include <cstdio>
#include <system_error>

namespace tocsin::detail {
namespace {

using core::shared_rounds;

constexpr std::uint64_t holder_mask = 0xFF;  // the slot's index and 1, or 0
constexpr std::uint64_t unrepaired = 1u << 8;
constexpr std::uint64_t lost = 1u << 9;
constexpr std::uint64_t queued = 1u << 10;
constexpr std::uint64_t generation = 1u << 16;

[[noreturn]] void refuse(const shared_parts& object, std::errc error, const char* what) {
    char message[160];
    std::snprintf(message, sizeof message, "tocsin: shared_lock at %p: %s",
                  static_cast<const void*>(&object.header), what);
    throw_or_die(std::system_error(std::make_error_code(error), message));
}

std::uint32_t holder_of(std::uint64_t control) noexcept {
    return static_cast<std::uint32_t>(control & holder_mask);
}

// The next value of `control`, with another holder.
std::uint64_t with_holder(std::uint64_t control, std::uint32_t holder, std::uint64_t more = 0) noexcept {
    return ((control & ~holder_mask) + generation) | holder | more;
}

bool exchange(const shared_parts& object, std::uint64_t& seen, std::uint64_t next) noexcept {
    return object.header.control.compare_exchange_strong(seen, next, std::memory_order_acq_rel,
                                                         std::memory_order_acquire);  // [held]
}

// The slot of this lock that this thread holds, or the number of slots.
std::uint32_t held_slot(const shared_parts& object) noexcept {
    std::uint32_t i = 0;
    while (i != object.slot_count && !platform::shared_futex::holds(object.slots[i].owner)) ++i;
    return i;
}

// Whether the named slot's owner has died, or there is no such slot.
bool is_dead(const shared_parts& object, std::uint32_t holder) noexcept {
    return holder > object.slot_count ||
           core::is_ownerless(object.slots[holder - 1].owner.load(std::memory_order_acquire));  // [held]
}

enum class attempt { taken, stolen, finally_lost, held };

attempt try_to_hold(const shared_parts& object, std::uint32_t self, std::uint64_t& seen) {
    shared_rounds rounds(object);
    for (;; rounds.next()) {
        if ((seen & lost) != 0) return attempt::finally_lost;
        const std::uint32_t holder = holder_of(seen);
        const bool steals = holder != 0 && holder != self && is_dead(object, holder);
        if (holder != 0 && !steals) return attempt::held;
        const std::uint64_t more = steals ? unrepaired : 0;
        if (exchange(object, seen, with_holder(seen, self, more)))
            return ((seen | more) & unrepaired) != 0 ? attempt::stolen : attempt::taken;
    }
}

void make_idle(core::shared_slot& slot) noexcept {
    slot.word.store(0, std::memory_order_relaxed);  // no order: [slot-free] comes after it
}

void wake_everybody(const shared_parts& object) noexcept {
    for (std::uint32_t i = 0; i != object.slot_count; ++i) {
        core::shared_slot& slot = object.slots[i];
        // no order: a thread that sleeps there looks at `control`. Any change of the lower half keeps others awake.
        std::uint64_t seen = slot.word.load(std::memory_order_relaxed);
        if (core::state_of(seen) != core::slot_state::waiting) continue;
        (void)slot.word.compare_exchange_strong(seen, core::joined(core::upper(seen), 0),
                                                std::memory_order_relaxed);  // no order: as above
        platform::shared_futex::wake_all(slot.word);
    }
}

// A lock that is lost has no heir, and the thread that lost it may have died before it has woken everybody.
lock_status end_as_lost(const shared_parts& object, core::shared_slot& slot) noexcept {
    make_idle(slot);
    wake_everybody(object);
    return lock_status::lost;
}

lock_status begin_holding(core::claimed_slot& claim, bool stolen) noexcept {
    make_idle(claim.slot());
    platform::shared_futex::hold(claim.slot().owner);  // there is room: shared_lock_acquire() has looked
    claim.keep();
    platform::shared_futex::uncover();
    return stolen ? lock_status::owner_died : lock_status::acquired;
}

lock_status acquire_lock(const shared_parts& object, const deadline& until, const stop_token* token,
                         shared_lock_call how) {
    core::shared_check_stamp(object);
    if (held_slot(object) != object.slot_count)
        refuse(object, std::errc::resource_deadlock_would_occur, "this thread holds it already");
    if (!platform::shared_futex::has_room_to_hold())
        refuse(object, std::errc::no_lock_available, "this thread holds 64 such locks");
    core::claimed_slot claim(object);
    core::shared_slot& slot = claim.slot();
    const std::uint32_t self = claim.index() + 1;
    // no order: the claim has acquired what the last owner left
    const bool looks_waiting =
        core::state_of(slot.word.load(std::memory_order_relaxed)) == core::slot_state::waiting;
    make_idle(slot);

    std::uint64_t seen = object.header.control.load(std::memory_order_acquire);  // [held]
    shared_rounds rounds(object);
    for (;; rounds.next()) {
        if (holder_of(seen) == self) {  // lock-2
            if ((seen & lost) != 0) return end_as_lost(object, slot);
            if (exchange(object, seen, with_holder(seen, self, unrepaired)))
                return begin_holding(claim, true);
        } else if (!looks_waiting || exchange(object, seen, seen + generation)) {  // lock-5
            break;
        }
    }
    attempt result = try_to_hold(object, self, seen);
    if (result == attempt::taken || result == attempt::stolen)
        return begin_holding(claim, result == attempt::stolen);
    if (result == attempt::finally_lost) return end_as_lost(object, slot);
    if (how == shared_lock_call::only_try) return lock_status::busy;
    if (token != nullptr && token->stop_requested()) return lock_status::stopped;
    if (until.which() == deadline::clock::passed) return lock_status::timed_out;

    const core::shared_stop stop(token);
    core::diagnosed_sleeper shown({core::shared_kind_name(object.kind), &object.header});
    const std::uint32_t ticket = core::new_ticket(object);
    bool ends = false;
    platform::shared_sleep slept = platform::shared_sleep::woken;
    for (std::uint32_t number = 0;; ++number) {
        const std::uint32_t armed = core::armed | ((number + ticket) & (core::armed - 1));
        // lock-4. After the deadline or a stop the word is idle, and the exchange makes sure that nobody hands over.
        slot.word.store(
            core::joined(core::above(ends ? core::slot_state::idle : core::slot_state::waiting, ticket),
                         armed),
            std::memory_order_release);  // [held]
        detail::full_fence();            // [watch]
        core::sleep_list words({.wide = &slot.word, .expected = armed});
        for (std::uint32_t i = 0; i != object.slot_count; ++i) {
            const std::uint32_t owner = object.slots[i].owner.load(std::memory_order_acquire);  // [held]
            if (i + 1 != self && owner != 0)
                words.add_owner({.narrow = &object.slots[i].owner, .expected = owner});
        }
        seen = object.header.control.load(std::memory_order_acquire);  // [held]
        for (;; rounds.next()) {
            if (holder_of(seen) == self) return begin_holding(claim, (seen & unrepaired) != 0);
            result = try_to_hold(object, self, seen);
            if (result == attempt::taken || result == attempt::stolen)
                return begin_holding(claim, result == attempt::stolen);
            if (result == attempt::finally_lost) return end_as_lost(object, slot);
            if (holder_of(seen) == self) continue;
            if (exchange(object, seen, (seen | queued) + generation)) break;
        }
        if (ends) {
            make_idle(slot);
            return slept == platform::shared_sleep::timed_out && !stop.is_requested() ? lock_status::timed_out
                                                                                      : lock_status::stopped;
        }
        words.add_stop(stop);
        shown.enter();
        slept = words.sleep(until);
        ends = slept == platform::shared_sleep::timed_out || stop.is_requested();
    }
}

}  // namespace

lock_status shared_lock_acquire(const shared_parts& object, const deadline& until, const stop_token* token,
                                shared_lock_call how) {
    const lock_status ended = acquire_lock(object, until, token, how);
    if (ended == lock_status::acquired || ended == lock_status::owner_died)
        core::order::after(&object.header.control);
    return ended;
}

void shared_lock_release(const shared_parts& object) {
    core::order::before(&object.header.control);
    const std::uint32_t mine = held_slot(object);
    if (mine == object.slot_count)
        refuse(object, std::errc::operation_not_permitted, "unlock() by a thread that does not hold it");
    core::shared_slot& slot = object.slots[mine];
    const std::uint32_t self = mine + 1;
    bool is_lost = false;
    core::shared_slot* heir = nullptr;
    shared_rounds rounds(object);
    std::uint64_t seen = object.header.control.load(std::memory_order_acquire);  // [held]
    for (;; rounds.next()) {
        if (holder_of(seen) != self) break;  // somebody scribbles
        heir = nullptr;
        std::uint32_t heir_index = 0;
        std::uint64_t heir_word = 0;
        bool in_use = false;
        is_lost = (seen & unrepaired) != 0;
        for (std::uint32_t i = 0; !is_lost && (seen & queued) != 0 && i != object.slot_count; ++i) {
            core::shared_slot& other = object.slots[i];
            // no order: `seen` was acquired, and hints are enough for what came later
            if (i == mine || core::is_ownerless(other.owner.load(std::memory_order_relaxed))) continue;
            in_use = true;
            const std::uint64_t word = other.word.load(std::memory_order_relaxed);  // no order: as above
            if (core::state_of(word) != core::slot_state::waiting ||
                (heir != nullptr && !core::is_older(core::ticket_of(word), core::ticket_of(heir_word))))
                continue;
            heir = &other;
            heir_index = i;
            heir_word = word;
        }
        std::uint64_t next = with_holder(seen, 0, is_lost ? lost : 0);
        if (heir != nullptr) {
            platform::shared_futex::cover(heir->word);
            const std::uint64_t announced =
                core::joined(core::upper(heir_word), platform::shared_futex::thread_mark());
            // no order: lock-3 needs only that it comes before the exchange, which releases
            if (!heir->word.compare_exchange_strong(heir_word, announced, std::memory_order_relaxed)) {
                platform::shared_futex::uncover();
                seen = object.header.control.load(std::memory_order_acquire);  // [held]
                continue;
            }
            next = with_holder(seen, heir_index + 1);
        } else if (!in_use) {
            next &= ~queued;
        }
        if (exchange(object, seen, next)) break;
        if (heir != nullptr) platform::shared_futex::uncover();
    }
    if (heir != nullptr) platform::shared_futex::wake_all(heir->word);
    if (is_lost) wake_everybody(object);
    platform::shared_futex::cover(slot.owner);
    platform::shared_futex::let_go(slot.owner);
    core::shared_free_slot(slot);
    platform::shared_futex::uncover();
}

void shared_lock_repaired(const shared_parts& object) {
    const std::uint32_t mine = held_slot(object);
    if (mine == object.slot_count)
        refuse(object, std::errc::operation_not_permitted,
               "mark_repaired() by a thread that does not hold it");
    shared_rounds rounds(object);
    std::uint64_t seen = object.header.control.load(std::memory_order_acquire);  // [held]
    while (!exchange(object, seen, (seen & ~unrepaired) + generation)) rounds.next();
}

}  // namespace tocsin::detail

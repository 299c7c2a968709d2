// SPDX-License-Identifier: Apache-2.0
// The objects that processes share, as custom sources (source.hpp).
//
// A thread that waits for a shared object sleeps on words of that object, and owns a slot in it, which the kernel marks
// if the thread dies. A wait for several sources may be a coroutine's or an operation's, and may move between threads.
// So threads of the library, the *keepers*, own the slots of such waits and sleep on their words. All keepers are
// threads of the process that waits, so a slot of a keeper is marked when the process dies.
//
// State: each keeper has 32 *records*, one for each wait for one shared object. A record has the wait's entry, and of
// an object with tokens a keeper_wait (core/shared/token_queue.hpp), of a manual-reset event the round in which
// the wait began (shared_event.cpp). A record is
//   free
//   added   enlist() has filled it in, and of an object with tokens waits until the keeper has queued it
//   listed  the keeper sleeps on its words
//   ended   delist() waits until the keeper has given the slot up
// What the waits of ended records had waited for is in a wake_list, from which one further thread, the *waker*, wakes
// them.
//
// Invariants
//   shared_source-1  Records and the wake_list are touched only under one lock. A slot that a keeper owns, and a
//       keeper_wait, are touched only by that keeper.
//   shared_source-2  When enlist() has returned, the slot waits. So three sets of an auto-reset event release three
//       waits that were queued before, whatever the keepers do, and the object's order is that of the slots.
//   shared_source-3  A keeper that receives a token frees the slot, and notifies the one entry of the record. If the
//       wait has been ended by something else, the keeper gives the token to the object, as a set or release does. So
//       a token is with the object, with the wait, or for a moment with the keeper.
//   shared_source-4  When delist() has returned, nobody in this process touches the object for that wait: the record is
//       free, and the slot, too. (A keeper may be in a call that sleeps on the word of a manual-reset event. It
//       reads no memory, and whoever wakes such sleepers wakes all.)
//   shared_source-5  A keeper sleeps on words of an object with tokens only if it has a slot there. Otherwise a wake of
//       the kernel for one thread (dies-1) could be spent on it, and it would not pass the news on, as those
//       with a slot do before they free the slot.
//   shared_source-6  Keepers run no code of the user, because enlist() and delist() wait for them, perhaps with locks
//       of the user. The waker does, and nobody waits for it. The lock is not held meanwhile.
//
// No lost wake-up: enlist() and delist() change the record, and then the keeper's doorbell, under the lock. The keeper
// reads the doorbell under the lock before it sleeps on what it read. It sleeps on the words of all its records as they
// were when it looked at them, so no change of one of them is missed: token_queue.cpp and shared_event.cpp say which
// changes there are. If a wait has no slot, the keeper looks again every 10 ms. It does so, too, if there are more
// words than a thread can sleep on. Owners of slots are left out then, so no more than the news of a death comes late.
//
// Wakes follow when the lock is free again, so that nobody wakes up to wait for it: those of the keeper, of the waker,
// and of the threads that wait for a keeper's answer. The word on which each of them sleeps has changed before. Keepers
// are never destroyed, and who waits for an answer stays until it is given.
//
// Death: only of the whole process, so at any instruction of any of its threads. The keeper's slots are among its held
// words (dies-2), and become so while they are covered (dies-1). What was handed to them is passed on, as in
// token_queue.cpp. A token that a keeper has received is gone with the process, as one that a thread has received.
//
// The child of a fork has neither records nor threads. They begin again there.
//
// Memory order: the lock orders everything but the objects themselves, for which token_queue.cpp and shared_event.cpp
// speak.
//   [answer]  The keeper's store of `answer` releases what it did for the record; enlist() and delist() acquire it.
//   [gate]    in shared_event.cpp.
//
// Checked by: proof P32 (docs/proofs.md), tests/model/shared_source_model_test.cpp; tests/unit/shared_source_test.cpp,
// tests/internal/shared_keeper_test.cpp.
#include "core/async/background.hpp"
#include "core/shared/token_queue.hpp"
#include "core/sync/fork.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/happens_before.hpp"
#include "platform/futex/futex.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/shared_source.hpp>
#include <tocsin/detail/shared_tokens.hpp>

#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace tocsin::detail {
namespace {

using core::keeper_wait;
using core::sleep_list;
using platform::shared_futex;

constexpr std::size_t records_of_keeper = 32;              // half of the words that a thread can hold
static_assert(records_of_keeper < platform::max_watched);  // a word of each wait, and the doorbell
constexpr std::chrono::milliseconds between_looks{10};
constexpr std::uint32_t gate_set = 0b01, gate_sleepers = 0b10, gate_round = 0b100;
constexpr const char* no_thread = "tocsin: can't start the threads that wait for shared objects";

// A flag for which a thread waits. The thread that gives the answer uses only the address afterwards.
class answer {
public:
    void give() noexcept {
        word_.store(1, std::memory_order_release);  // [answer]
        platform::futex::wake_one(&word_);
    }
    void wait() noexcept {
        while (word_.load(std::memory_order_acquire) == 0)  // [answer]
            (void)platform::futex::wait(word_, 0, deadline::never());
    }

    answer* next = nullptr;  // of those that the keeper gives when it has freed the lock

private:
    platform::futex_word word_{0};
};

struct record {
    enum class phase : std::uint8_t { free, added, listed, ended };

    phase now = phase::free;
    entry_list list;  // the one entry, until it is notified or removed
    wait_entry* entry = nullptr;
    answer* caller = nullptr;  // of the thread that waits for the keeper
    std::optional<keeper_wait> tokens;
    shared_header* gate = nullptr;  // of a manual-reset event
    std::uint32_t first_round = 0;

    void answer_caller() noexcept;
    void make_free() noexcept {
        answer_caller();
        tokens.reset();
        entry = nullptr;
        now = phase::free;
    }
};

struct keeper {
    record records[records_of_keeper];
    platform::futex_word doorbell{0};
    core::background_thread thread;
    keeper* next = nullptr;
    bool has_thread = false;

    record* free_record() noexcept {
        for (record& each : records)
            if (each.now == record::phase::free) return &each;
        return nullptr;
    }
    record* find(const wait_entry& entry) noexcept {
        for (record& each : records)
            if (each.now != record::phase::free && each.entry == &entry) return &each;
        return nullptr;
    }
    // Under the lock. The caller wakes the keeper once it has freed the lock, so that the keeper does not run into it.
    void ring() noexcept {
        doorbell.fetch_add(1, std::memory_order_relaxed);  // no order: under the lock
    }
    void wake() const noexcept { shared_futex::wake_own(doorbell); }
};

struct all_keepers {
    core::futex_lock lock;
    keeper first;
    wake_list freed;            // for the waker
    answer* answers = nullptr;  // for the keeper that has the lock, to give once it has freed the lock
    platform::futex_word waker_bell{0};
    core::background_thread waker;
    atomic<bool> runs{false};  // whether the waker and the first keeper have been started
};

constinit never_destroyed<all_keepers> keepers;
const core::in_child renews_keepers(core::child_duty::keepers, core::renew<keepers>);

void record::answer_caller() noexcept {
    answer* const waits = std::exchange(caller, nullptr);
    if (waits == nullptr) return;
    waits->next = keepers.it.answers;
    keepers.it.answers = waits;
}

void give_all(answer* first) noexcept {
    while (first != nullptr) std::exchange(first, first->next)->give();
}

void give_back(const core::shared_parts& object) noexcept {
    // It throws only if another process changes the object without end. Then the token is that process's to lose.
    TOCSIN_TRY { (void)core::give_token(object, object.kind == shared_kind::semaphore ? 0x7FFF'FFFF : 1); }
    TOCSIN_CATCH(const std::system_error&) {}
}

// Tells ThreadSanitizer of what came before a give or a set, which has named `word`. The thread whose wait ends names
// the object of its source, which is the header (shared_source()).
void tell_order(const shared_header& header, const void* word) noexcept {
    core::order::after(word);
    core::order::before(&header);
}

// The functions below are called under the lock.

// What the record waited for is there.
void deliver(record& to) noexcept {
    if (to.tokens)
        tell_order(to.tokens->object().header, &to.tokens->object().header.control);
    else
        tell_order(*to.gate, &to.gate->tickets);
    wake_list one = to.list.notify_one();
    if (!one.empty()) {
        keepers.it.freed.append(std::move(one));
    } else if (to.tokens) {
        give_back(to.tokens->object());  // shared_source-3
    }
    to.make_free();
}

void advance_gate(record& one, sleep_list& words) noexcept {
    atomic<std::uint32_t>& word = one.gate->tickets;
    std::uint32_t seen = word.load(std::memory_order_acquire);  // [gate]
    for (int i = 0; i != 1000; ++i) {
        if ((seen & gate_set) != 0 || seen / gate_round != one.first_round) return deliver(one);
        if ((seen & gate_sleepers) != 0 ||
            word.compare_exchange_weak(seen, seen | gate_sleepers, std::memory_order_acquire,
                                       std::memory_order_acquire))  // [gate]
            break;
    }
    one.now = record::phase::listed;
    words.add({.narrow = &word, .expected = seen | gate_sleepers});
}

// Returns whether the keeper must look again soon.
bool advance_tokens(record& one, keeper_wait& wait, sleep_list& words) noexcept {
    auto made = keeper_wait::step::no_room;
    const std::size_t before = words.count();
    TOCSIN_TRY { made = wait.advance(words); }
    TOCSIN_CATCH(const std::system_error&) {}  // another process changes the object without end
    if (made != keeper_wait::step::waiting) words.cut_to(before);  // shared_source-5
    if (made == keeper_wait::step::taken) {
        deliver(one);
        return false;
    }
    one.now = record::phase::listed;
    one.answer_caller();
    return made == keeper_wait::step::no_room;
}

bool advance_all(keeper& self, sleep_list& words) noexcept {
    bool look_again = false;
    for (record& each : self.records) {
        if (each.now != record::phase::ended) continue;
        if (each.tokens && each.tokens->end()) give_back(each.tokens->object());
        each.make_free();
    }
    for (record& each : self.records) {
        if (each.now == record::phase::free) continue;
        if (each.tokens)
            look_again |= advance_tokens(each, *each.tokens, words);
        else
            advance_gate(each, words);
    }
    return look_again || words.lacks_some();
}

// The keeper for which a thread has just been started.
keeper* keeper_without_thread() noexcept {
    keeper* one = &keepers.it.first;
    while (one->has_thread) one = one->next;
    one->has_thread = true;
    return one;
}

void run_keeper() noexcept {
    keeper* self = nullptr;
    for (;;) {
        sleep_list words;
        bool look_again = false;
        bool wakes = false;
        answer* answers = nullptr;
        {
            const std::lock_guard guard(keepers.it.lock);
            if (self == nullptr) self = keeper_without_thread();
            // no order: under the lock
            const std::uint32_t rung = self->doorbell.load(std::memory_order_relaxed);
            words.add({.narrow = &self->doorbell, .expected = rung, .own = true});
            look_again = advance_all(*self, words);
            answers = std::exchange(keepers.it.answers, nullptr);
            wakes = !keepers.it.freed.empty();
            // no order: under the lock
            if (wakes) keepers.it.waker_bell.fetch_add(1, std::memory_order_relaxed);
        }
        give_all(answers);
        if (wakes) platform::futex::wake_one(&keepers.it.waker_bell);
        (void)words.sleep(look_again ? deadline(between_looks) : deadline::never());
    }
}

void run_waker() noexcept {
    for (;;) {
        wake_list due;
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(keepers.it.lock);
            due = std::move(keepers.it.freed);
            seen = keepers.it.waker_bell.load(std::memory_order_relaxed);  // no order: under the lock
        }
        if (due.empty()) {
            (void)platform::futex::wait(keepers.it.waker_bell, seen, deadline::never());
        } else {
            const platform::with_signals_of scope(keepers.it.waker.makers_signals());
            due.wake();
        }
    }
}

// Finds a keeper with a free record, or makes one. Null if there is no memory. Throws if there is no thread.
keeper* keeper_with_room() {
    keepers.it.waker.start(run_waker, no_thread);  // the child of a fork has none
    for (keeper* one = &keepers.it.first;; one = one->next) {
        if (one->free_record() != nullptr) {
            one->thread.start(run_keeper, no_thread);
            return one;
        }
        if (one->next == nullptr) one->next = new (std::nothrow) keeper;
        if (one->next == nullptr) return nullptr;
    }
}

// Lists the wait in a record that `fill` fills in. If the wait is for tokens, returns once it is queued
// (shared_source-2). Returns false if there is no room for it.
template <class Fill>
bool list(wait_entry& entry, Fill fill) noexcept {
    answer is_queued;
    bool waits = false;
    keeper* by = nullptr;
    {
        const std::lock_guard guard(keepers.it.lock);
        TOCSIN_TRY { by = keeper_with_room(); }
        TOCSIN_CATCH(const std::system_error&) {}
        if (by == nullptr) return false;
        record& one = *by->free_record();
        fill(one);
        one.entry = &entry;
        one.list.append(entry);
        one.now = record::phase::added;
        waits = one.tokens.has_value();
        if (waits) one.caller = &is_queued;
        by->ring();
    }
    by->wake();
    if (waits) is_queued.wait();
    return true;
}

// For a wait that could not be listed: the wait looks at its sources, and comes here again.
bool look_again_later() noexcept {
    const platform::futex_word nobody{0};
    (void)platform::futex::wait(nobody, 0, between_looks);
    return false;
}

bool enlist_gate(void* object, wait_entry& entry) noexcept {
    auto& header = *static_cast<shared_header*>(object);
    const std::uint32_t seen = header.tickets.load(std::memory_order_acquire);  // [gate]
    if ((seen & gate_set) != 0) return false;
    return list(entry,
                [&](record& one) {
                    one.gate = &header;
                    one.first_round = seen / gate_round;
                }) ||
           look_again_later();
}

bool try_gate(void* object) noexcept {
    auto& word = static_cast<shared_header*>(object)->tickets;
    return core::order::after(&word, (word.load(std::memory_order_acquire) & gate_set) != 0, true);  // [gate]
}

#if !defined(TOCSIN_SLOTS_OF_SHARED_SOURCES)
#define TOCSIN_SLOTS_OF_SHARED_SOURCES 31  // in models fewer, for shorter runs
#endif
constexpr unsigned slots_of_tokens = TOCSIN_SLOTS_OF_SHARED_SOURCES;
using token_object = shared_object<slots_of_tokens>;

template <shared_kind Kind>
core::shared_parts parts_of(void* object) noexcept {
    auto& whole = *static_cast<token_object*>(object);
    return {whole.header, whole.slots, slots_of_tokens, Kind};
}

template <shared_kind Kind>
bool try_token(void* object) noexcept {
    const core::shared_parts parts = parts_of<Kind>(object);
    return core::order::after(&parts.header.control, shared_token_try(parts), true);
}

template <shared_kind Kind>
bool enlist_token(void* object, wait_entry& entry) noexcept {
    const core::shared_parts parts = parts_of<Kind>(object);
    // no order: a wait that finds it ready takes it by an exchange
    if (core::lower(parts.header.control.load(std::memory_order_relaxed)) != 0) return false;
    return list(entry, [&](record& one) { one.tokens.emplace(parts); }) || look_again_later();
}

void delist(void*, wait_entry& entry) noexcept {
    answer is_free;
    keeper* by = &keepers.it.first;
    {
        const std::lock_guard guard(keepers.it.lock);
        record* one = nullptr;
        while (by != nullptr && (one = by->find(entry)) == nullptr) by = by->next;
        if (one == nullptr) return;
        one->list.remove(entry);
        if (!one->tokens) return one->make_free();
        one->now = record::phase::ended;
        one->caller = &is_free;
        by->ring();
    }
    by->wake();
    is_free.wait();
}

template <shared_kind Kind>
source_label label(const void* object) noexcept {
    return {core::shared_kind_name(Kind), object};
}

void give_gate_back(void*) noexcept {}  // a wait takes nothing from it

constexpr source::operations gate_operations{
    try_gate, enlist_gate, delist, false, label<shared_kind::manual_reset_event>, give_gate_back};
template <shared_kind Kind>
void give_token_back(void* object) noexcept {
    give_back(parts_of<Kind>(object));
}

template <shared_kind Kind>
constexpr source::operations token_operations{try_token<Kind>, enlist_token<Kind>, delist,
                                              false,           label<Kind>,        give_token_back<Kind>};

}  // namespace

source shared_source(shared_header& header, shared_kind kind) {
    const std::uint32_t slots = kind == shared_kind::manual_reset_event ? 0 : slots_of_tokens;
    core::shared_check_stamp({header, nullptr, slots, kind});
    if (!keepers.it.runs.load(
            std::memory_order_relaxed)) {  // only for speed: list() starts what does not run
        core::background_thread::prepare();
        const std::lock_guard guard(keepers.it.lock);
        keepers.it.waker.start(run_waker, no_thread);
        keepers.it.first.thread.start(run_keeper, no_thread);
        keepers.it.runs.store(true, std::memory_order_relaxed);  // only for speed: as above
    }
    if (kind == shared_kind::manual_reset_event) return {&header, gate_operations};
    return {&header, kind == shared_kind::semaphore ? token_operations<shared_kind::semaphore>
                                                    : token_operations<shared_kind::auto_reset_event>};
}

}  // namespace tocsin::detail

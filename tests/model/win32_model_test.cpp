// SPDX-License-Identifier: Apache-2.0
// What Windows' names (win32/) add to the library, in every interleaving of small programs: handles, mutexes, shared
// locks, pulses, and releases of semaphores with a limit. Proof P24 in docs/proofs.md.
#include "handle_cache.hpp"
#include "handle_table.hpp"
#include "mutex_state.hpp"
#include "permits.hpp"
#include "shared_lock.hpp"
#include "support/library_model.hpp"

#include <cstdint>
#include <vector>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

// As holds_within(), with fewer drawn executions where nobody asks for proofs: there are many programs here.
void holds(int preemptions, const model::test_body& program) {
    if (is_proof()) return holds_within(preemptions, program);
    auto bounded = model::options::bounded(preemptions - 1);
    bounded.spurious_returns = 0;
    bounded.stale_repeats = 1;
    explore_both("bounded", bounded, program);
    explore_both("random", model::options::drawn(drawn_executions(4'000)), program);
    explore_both("pct", model::options::priorities(drawn_executions(4'000)), program);
}

// ---- Handles: two slots --------------------------------------------------------------------------------------------

using table = win32::basic_handle_table<1, 32, 1>;

struct thing {
    plain<int> value{42};
    plain<bool> ended{false};
};

// What a call does with a handle. Returns whether the handle was valid.
bool use(table& handles, table::number handle) {
    void* ended = nullptr;
    win32::handle_slot* const slot = handles.use(handle, ended);
    if (ended != nullptr) static_cast<thing*>(ended)->ended = true;
    if (slot == nullptr) return false;
    auto& of = *static_cast<thing*>(static_cast<void*>(slot->object));
    model::check(of.value == 42 && !of.ended, "the object is there, and whole");
    if (void* const gone = handles.end_use(*slot)) static_cast<thing*>(gone)->ended = true;
    return true;
}
bool close(table& handles, table::number handle) {
    win32::handle_slot* const slot = handles.close(handle);
    if (slot == nullptr) return false;
    if (void* const gone = handles.end_use(*slot)) {
        model::check(!static_cast<thing*>(gone)->ended, "an object ends once");
        static_cast<thing*>(gone)->ended = true;
    }
    return true;
}
// At the end of a run: both slots are free, each of them once.
void expect_both_free(run& r, table& handles) {
    thing one;
    thing two;
    const auto first = handles.open(&one, 0);
    const auto second = handles.open(&two, 0);
    r.check(first != 0 && second != 0 && first != second && handles.open(&one, 0) == 0,
            "each slot is free once");
}

MODEL_TEST(win32_model, AUseOfAHandleKeepsItsObject, holds_always) {
    table handles;
    thing object;
    const auto handle = handles.open(&object, 0);
    r.spawn("user", [&] { (void)use(handles, handle); });
    r.spawn("closer", [&] { model::check(close(handles, handle), "the only close succeeds"); });
    r.join_all();
    r.check(object.ended && !use(handles, handle), "the object has ended with its handle");
    expect_both_free(r, handles);
}

MODEL_TEST(win32_model, OfTwoClosesOneSucceeds, holds_always) {
    table handles;
    thing object;
    plain<int> closed[2]{};
    const auto handle = handles.open(&object, 0);
    for (int i = 0; i != 2; ++i) r.spawn("closer", [&, i] { closed[i] = close(handles, handle) ? 1 : 0; });
    r.join_all();
    r.check(closed[0] + closed[1] == 1 && object.ended, "one close, one end");
    expect_both_free(r, handles);
}

MODEL_TEST(win32_model, AStaleHandleNamesNothing, holds, 3) {
    table handles;
    thing object;
    thing later;
    const auto stale = handles.open(&object, 0);
    thing other;
    const auto second = handles.open(&other, 0);  // so that the next handle is in the same slot
    (void)close(handles, stale);
    r.spawn("stale user", [&] { model::check(!use(handles, stale), "stale"); });
    r.spawn("opener", [&] {
        const auto handle = handles.open(&later, 0);
        model::check(handle != stale && use(handles, handle), "the new handle is another, and valid");
        model::check(close(handles, handle), "and closes");
    });
    r.spawn("stale closer", [&] { model::check(!close(handles, stale), "stale"); });
    r.join_all();
    r.check(later.ended && !other.ended && close(handles, second), "only what was closed has ended");
    expect_both_free(r, handles);
}

MODEL_TEST(win32_model, WhoeverHearsOfAHandleFindsItsObject, holds_always) {
    table handles;
    thing object;
    detail::atomic<std::uint64_t> said{0};
    r.spawn("opener", [&] {
        object.value = 42;
        said.store(handles.open(&object, 0), std::memory_order_relaxed);
    });
    r.spawn("user", [&] {
        if (const auto heard = said.load(std::memory_order_relaxed)) (void)use(handles, heard);
    });
    r.join_all();
}

// ---- Handles that a thread has used last ---------------------------------------------------------------------------

using cache = win32::basic_handle_cache<table, 1>;

void end(void* gone) {
    if (gone == nullptr) return;
    model::check(!static_cast<thing*>(gone)->ended, "an object ends once");
    static_cast<thing*>(gone)->ended = true;
}
void expect_whole(win32::handle_slot& slot) {
    auto& of = *static_cast<thing*>(static_cast<void*>(slot.object));
    model::check(of.value == 42 && !of.ended, "the object is there, and whole");
}
// What a call does with a handle by way of a cache. `sleeps`: the call ends the cache's use before its own.
bool use_cached(table& handles, cache& own, table::number handle, bool sleeps = false) {
    win32::handle_slot* slot = own.find(handle);
    if (slot != nullptr) {
        expect_whole(*slot);
        if (!sleeps) return true;
        table::use_again(*slot);
        end(own.forget(handles, handle));
        expect_whole(*slot);
        end(handles.end_use(*slot));
        return true;
    }
    void* ended = nullptr;
    slot = handles.use(handle, ended);
    end(ended);
    if (slot == nullptr) {
        end(own.forget(handles, handle));
        return false;
    }
    expect_whole(*slot);
    end(own.put(handles, handle, *slot));
    return true;
}

TEST(win32_model, AHandleInACacheKeepsItsObject) {
    for (const bool sleeps : {false, true}) {
        holds_always([sleeps](run& r) {
            table handles;
            thing object;
            const auto handle = handles.open(&object, 0);
            r.spawn("user", [&] {
                cache own;
                (void)use_cached(handles, own, handle);
                (void)use_cached(handles, own, handle, sleeps);
                end(own.forget_one(handles, 0));
            });
            r.spawn("closer", [&] { model::check(close(handles, handle), "the only close succeeds"); });
            r.join_all();
            r.check(object.ended && !use(handles, handle), "the object has ended with its handle");
            expect_both_free(r, handles);
        });
    }
}

MODEL_TEST(win32_model, AClosedHandleIsInNoCache, holds, 3) {
    table handles;
    thing object;
    thing later;
    thing last;
    plain<bool> opened_two{false};
    detail::atomic<int> closed{0};
    const auto handle = handles.open(&object, 0);
    r.spawn("user", [&] {
        cache own;
        (void)use_cached(handles, own, handle);
        const bool was_closed = closed.load(std::memory_order_acquire) != 0;
        const bool is_valid = use_cached(handles, own, handle);
        model::check(!(was_closed && is_valid), "what was closed is not valid");
        end(own.forget_one(handles, 0));
    });
    r.spawn("closer", [&] {
        model::check(close(handles, handle), "the only close succeeds");
        closed.store(1, std::memory_order_release);
        // Perhaps in the same slot
        const auto first = handles.open(&later, 0);
        const auto second = handles.open(&last, 0);  // 0 while the cache has the other slot
        model::check(first != handle && second != handle, "the handle stays another");
        if (second != 0) model::check(close(handles, second), "and closes");
        opened_two = second != 0;
        model::check(close(handles, first), "and closes");
    });
    r.join_all();
    r.check(object.ended && later.ended && last.ended == opened_two, "what was opened has ended");
    expect_both_free(r, handles);
}

// The place goes to another handle.
MODEL_TEST(win32_model, AHandleThatLeavesACacheEndsItsUse, holds, 3) {
    table handles;
    thing objects[2];
    const table::number numbers[2]{handles.open(&objects[0], 0), handles.open(&objects[1], 0)};
    r.spawn("user", [&] {
        cache own;
        for (const int which : {0, 1, 0}) (void)use_cached(handles, own, numbers[which]);
        end(own.forget_one(handles, 0));
    });
    r.spawn("closer", [&] {
        for (const auto number : numbers) model::check(close(handles, number), "the only close succeeds");
    });
    r.join_all();
    r.check(objects[0].ended && objects[1].ended, "both have ended");
    expect_both_free(r, handles);
}

// ---- Mutexes -------------------------------------------------------------------------------------------------------

using win32::mutex_state;

MODEL_TEST(win32_model, AMutexExcludesAndPublishes, holds, 3) {
    mutex_state mutex;
    auto_reset_event other(true);
    plain<int> data{0};
    const int me[2]{};
    r.spawn("one", [&] {
        mutex.free().wait(sleep_at_once);
        (void)mutex.begin(&me[0]);
        data = data + 1;
        model::check(mutex.is_owned_by(&me[0]) && !mutex.is_owned_by(&me[1]), "the owner knows");
        if (mutex.leave()) mutex.give_up(false);
        model::check(!mutex.is_owned_by(&me[0]), "and knows that it is no more");
    });
    r.spawn("all", [&] {
        (void)wait_all({.spin = sleep_at_once}, mutex.free(), other);
        (void)mutex.begin(&me[1]);
        data = data + 1;
        if (mutex.leave()) mutex.give_up(false);
    });
    r.join_all();
    r.check(data == 2 && mutex.free().is_set() && !other.is_set(), "both had it");
}

// win32_wait-1: the owner leaves its own mutex out of the wait, and still takes everything at one instant.
MODEL_TEST(win32_model, AnOwnerWaitsForAllWithoutItsMutex, holds, 2) {
    mutex_state mutex;
    auto_reset_event token;
    plain<int> data{0};
    const int me[2]{};
    (void)mutex.free().try_wait();
    (void)mutex.begin(&me[0]);
    r.spawn("owner", [&] {
        const source others[]{token};
        (void)wait_all({.spin = sleep_at_once}, others);
        mutex.go_deeper();
        data = data + 1;
        if (mutex.leave()) mutex.give_up(false);
        data = data + 1;
        if (mutex.leave()) mutex.give_up(false);
        token.set();
    });
    r.spawn("other", [&] {
        (void)wait_all({.spin = sleep_at_once}, mutex.free(), token);
        model::check(data == 2, "after both releases of the owner");
        (void)mutex.begin(&me[1]);
        mutex.give_up(false);
    });
    r.spawn("setter", [&] { token.set(); });
    r.join_all();
    r.check(mutex.free().is_set(), "free in the end");
}

MODEL_TEST(win32_model, AnAbandonedMutexIsToldOnce, holds, 2) {
    mutex_state mutex;
    plain<int> told{0};
    plain<int> data{0};
    const int me[3]{};
    r.spawn("ends", [&] {
        mutex.free().wait(sleep_at_once);
        if (mutex.begin(&me[0])) told = told + 1;
        data = data + 1;
        mutex.give_up(true);
    });
    for (int i = 1; i != 3; ++i) {
        r.spawn("other", [&, i] {
            if (mutex.free().wait_until(some_time(), sleep_at_once) != wait_status::signaled) return;
            if (mutex.begin(&me[i])) told = told + 1;
            data = data + 1;
            mutex.give_up(false);
        });
    }
    r.join_all();
    r.check(mutex.free().try_wait(), "free in the end");
    if (mutex.begin(&me[0])) told = told + 1;
    r.check(told == 1 && !mutex.begin(&me[0]), "the next owner is told, and no other");
}

// ---- Shared locks --------------------------------------------------------------------------------------------------

using win32::shared_lock;

MODEL_TEST(win32_model, ASharedLockExcludesAndPublishes, holds, 3) {
    shared_lock::word word{0};
    plain<int> data{0};
    r.spawn("writer 1", [&] {
        shared_lock lock(word);
        lock.lock(sleep_at_once);
        data = data + 1;
        lock.unlock();
    });
    r.spawn("writer 2", [&] {
        shared_lock lock(word);
        lock.lock(sleep_at_once);
        data = data + 1;
        lock.unlock();
    });
    r.spawn("reader", [&] {
        shared_lock lock(word);
        lock.lock_shared(sleep_at_once);
        const int seen = data;
        model::check(seen >= 0 && seen <= 2, "a whole value");
        lock.unlock_shared();
    });
    r.join_all();
    r.check(data == 2 && word.load(std::memory_order_relaxed) == 0, "both wrote, and the lock is free");
}

MODEL_TEST(win32_model, ReadersShareALockAndTheLastFreesIt, holds, 2) {
    shared_lock::word word{0};
    plain<int> data{0};
    for (const char* name : {"reader 1", "reader 2"}) {
        r.spawn(name, [&] {
            shared_lock lock(word);
            lock.lock_shared(sleep_at_once);
            model::check(data == 0 || data == 7, "a whole value");
            lock.unlock_shared();
        });
    }
    r.spawn("writer", [&] {
        shared_lock lock(word);
        lock.lock(sleep_at_once);
        data = 3;
        data = 7;
        lock.unlock();
    });
    r.join_all();
    r.check(word.load(std::memory_order_relaxed) == 0, "free");
}

// Otherwise readers that follow each other could keep a writer out for ever. (A reader may take a lock that is free.)
MODEL_TEST(win32_model, AReaderDoesNotPassAWaitingWriter, holds, 2) {
    shared_lock::word word{0};
    plain<bool> written{false};
    detail::atomic<bool> left{false};
    shared_lock lock(word);
    (void)lock.try_lock_shared();
    r.spawn("writer", [&] {
        shared_lock mine(word);
        mine.lock(sleep_at_once);
        written = true;
        mine.unlock();
    });
    r.spawn("reader", [&] {
        shared_lock mine(word);
        while ((word.load(std::memory_order_relaxed) & shared_lock::writer_bit) == 0 &&
               word.load(std::memory_order_relaxed) >= shared_lock::one)
            model::cpu_relax();
        if (mine.try_lock_shared()) {
            model::check(written || left.load(std::memory_order_relaxed),
                         "no reader has joined the first one");
            mine.unlock_shared();
        }
    });
    r.spawn("first reader", [&] {
        while ((word.load(std::memory_order_relaxed) & shared_lock::writer_bit) == 0) model::cpu_relax();
        left.store(true, std::memory_order_relaxed);
        shared_lock(word).unlock_shared();
    });
    r.join_all();
    r.check(word.load(std::memory_order_relaxed) == 0, "free, and nobody counts as a sleeper");
}

// The word when a thread sleeps for which the lock was passed as often as it may be, except `left` times.
std::uint32_t passed_over(std::uint32_t left) { return (shared_lock::max_passes - left) * shared_lock::pass; }

// A waiter sleeps. The holder frees the lock, takes it again and frees it, until it would pass the waiter too often.
MODEL_TEST(win32_model, ASharedLockIsLeftToAWaiterThatWasPassedOften, holds, 2) {
    shared_lock::word word{0};
    plain<bool> waiter_had_it{false};
    shared_lock lock(word);
    (void)lock.try_lock();
    r.spawn("waiter", [&] {
        shared_lock mine(word);
        mine.lock(sleep_at_once);
        waiter_had_it = true;
        mine.unlock();
    });
    r.spawn("holder", [&] {
        shared_lock mine(word);
        // One pass is left, once the waiter sleeps.
        if ((word.load(std::memory_order_relaxed) & shared_lock::writer_bit) == 0) return mine.unlock();
        word.fetch_add(passed_over(1), std::memory_order_relaxed);
        mine.unlock();
        for (int turn = 0; turn != 2; ++turn) {
            mine.lock(sleep_at_once);
            if (turn == 1) model::check(waiter_had_it, "the second pass was left to the waiter");
            mine.unlock();
        }
    });
    r.join_all();
    r.check(word.load(std::memory_order_relaxed) == 0, "free, and nobody counts as a sleeper");
}

// The same with a reader that waits, and no pass left.
MODEL_TEST(win32_model, AnArrivalThatLeavesAFreeSharedLockToOthersIsWoken, holds, 2) {
    shared_lock::word word{0};
    shared_lock lock(word);
    (void)lock.try_lock();
    r.spawn("reader", [&] {
        shared_lock mine(word);
        mine.lock_shared(sleep_at_once);
        mine.unlock_shared();
    });
    r.spawn("holder", [&] {
        shared_lock mine(word);
        if ((word.load(std::memory_order_relaxed) & shared_lock::reader_bit) != 0)
            word.fetch_add(passed_over(0), std::memory_order_relaxed);
        mine.unlock();
        mine.lock(sleep_at_once);
        mine.unlock();
    });
    r.join_all();
    r.check(word.load(std::memory_order_relaxed) == 0, "free, and nobody counts as a sleeper");
}

// The reader sleeps first. If it is woken and finds the lock taken again, it is still the first.
MODEL_TEST(win32_model, SleepersKeepTheirPlaces, holds, 1) {
    shared_lock::word word{0};
    plain<bool> read{false};
    shared_lock lock(word);
    (void)lock.try_lock();
    const auto until_asleep = [&](std::uint32_t kind) {
        while ((word.load(std::memory_order_relaxed) & kind) == 0) model::cpu_relax();
    };
    r.spawn("reader", [&] {
        shared_lock mine(word);
        mine.lock_shared(sleep_at_once);
        read = true;
        mine.unlock_shared();
    });
    r.spawn("writer", [&] {
        until_asleep(shared_lock::reader_bit);
        shared_lock mine(word);
        mine.lock(sleep_at_once);
        model::check(read, "the reader was first");
        mine.unlock();
    });
    r.spawn("holder", [&] {
        until_asleep(shared_lock::writer_bit);
        shared_lock mine(word);
        mine.unlock();
        if (mine.try_lock()) mine.unlock();
    });
    r.join_all();
    r.check(word.load(std::memory_order_relaxed) == 0, "free, and nobody counts as a sleeper");
}

// The first reader that has slept does not unlock until the second one reads, too.
MODEL_TEST(win32_model, AReaderThatHasSleptWakesTheNext, holds, 1) {
    shared_lock::word word{0};
    shared_lock lock(word);
    (void)lock.try_lock();
    detail::atomic<int> readers{0};
    manual_reset_event both;
    for (const char* name : {"reader 1", "reader 2"}) {
        r.spawn(name, [&] {
            shared_lock mine(word);
            mine.lock_shared(sleep_at_once);
            if (readers.fetch_add(1, std::memory_order_relaxed) == 1) both.set();
            both.wait(sleep_at_once);
            mine.unlock_shared();
        });
    }
    r.spawn("writer", [&] { shared_lock(word).unlock(); });
    r.join_all();
    r.check(word.load(std::memory_order_relaxed) == 0, "free, and nobody counts as a sleeper");
}

// A thread that comes may take the free lock before the one that was woken, or after it.
MODEL_TEST(win32_model, AFreeSharedLockDoesNotWaitForAThreadThatWasWoken, holds, 2) {
    shared_lock::word word{0};
    shared_lock lock(word);
    (void)lock.try_lock();
    r.spawn("waiter", [&] {
        shared_lock mine(word);
        mine.lock(sleep_at_once);
        mine.unlock();
    });
    r.spawn("holder", [&] {
        shared_lock mine(word);
        mine.unlock();
        // Free now, unless the waiter has taken it since: then it is not stopped.
        if (mine.try_lock()) mine.unlock();
        if (mine.try_lock_shared()) mine.unlock_shared();
    });
    r.join_all();
    r.check(word.load(std::memory_order_relaxed) == 0, "free, and nobody counts as a sleeper");
}

// ---- Pulses --------------------------------------------------------------------------------------------------------

void pulse(source of, reset_mode mode) {
    detail::event_pulse(*static_cast<detail::event_byte*>(of.object()), mode);
}

MODEL_TEST(win32_model, APulseLeavesTheEventUnsetAndReleasesOne, holds, 3) {
    auto_reset_event one(true);
    plain<int> released[2]{};
    for (int i = 0; i != 2; ++i) {
        r.spawn("waiter", [&, i] {
            if (one.wait_until(some_time(), sleep_at_once) == wait_status::signaled) released[i] = 1;
        });
    }
    r.spawn("pulser", [&] {
        pulse(one, reset_mode::auto_reset);
        model::check(!one.try_wait(), "unset, whoever was there");
    });
    r.join_all();
    r.check(!one.is_set(), "and nobody has set it");
    r.check(released[0] + released[1] <= 2, "the first token, and the pulse");
}

MODEL_TEST(win32_model, APulseOfAGateReleasesAllWhoWaitAndPublishes, holds, 2) {
    manual_reset_event gate;
    plain<int> data{0};
    for (const char* name : {"waiter 1", "waiter 2"}) {
        r.spawn(name, [&] {
            if (gate.wait_until(some_time(), sleep_at_once) == wait_status::signaled)
                model::check(data == 1, "what came before the pulse is visible");
        });
    }
    r.spawn("pulser", [&] {
        data = 1;
        pulse(gate, reset_mode::manual_reset);
        model::check(!gate.try_wait(), "unset after its pulse");
    });
    r.join_all();
}

MODEL_TEST(win32_model, TheThreadThatAPulseReleasesMayDestroyTheEvent, holds, 3) {
    auto* const one = new auto_reset_event;
    manual_reset_event pulsed;
    r.spawn("waiter", [&, one] {
        if (one->wait_until(some_time(), sleep_at_once) != wait_status::signaled) pulsed.wait(sleep_at_once);
        delete one;
    });
    r.spawn("pulser", [&, one] {
        pulse(*one, reset_mode::auto_reset);
        pulsed.set();
    });
    r.join_all();
}

MODEL_TEST(win32_model, APulseMayEndAWaitForAllOrIsLost, holds, 2) {
    auto_reset_event pulsed;
    auto_reset_event other;
    plain<int> all{0};
    r.spawn("all", [&] {
        if (wait_all({.until = some_time(), .spin = sleep_at_once}, pulsed, other) == wait_status::signaled)
            all = 1;
    });
    r.spawn("pulser", [&] { pulse(pulsed, reset_mode::auto_reset); });
    r.spawn("setter", [&] { other.set(); });
    r.join_all();
    r.check(!pulsed.is_set() && other.is_set() == (all == 0), "all of them, or none");
}

// ---- Semaphores with a limit that is known at run time --------------------------------------------------------------

MODEL_TEST(win32_model, AReleaseWithALimitKeepsItAndTellsTheCountBefore, holds, 3) {
    counting_semaphore<> permits(0);
    auto& word = *static_cast<detail::semaphore_word*>(source(permits).object());
    plain<int> given[2]{};
    plain<int> taken{0};
    for (int i = 0; i != 2; ++i) {
        r.spawn("releaser", [&, i] {
            std::uint32_t before = 7;
            given[i] = detail::semaphore_try_release(word, 1, 1, before) ? 1 : 0;
            model::check(before == (given[i] != 0 ? 0u : 1u), "the count before");
        });
    }
    r.spawn("taker", [&] { taken = permits.try_acquire_until(some_time(), sleep_at_once) ? 1 : 0; });
    r.join_all();
    const int left = permits.try_acquire() ? 1 : 0;
    r.check(given[0] + given[1] == taken + left && !permits.try_acquire(),
            "as many in as out, and at most one");
}

// The rest of these models: up to four permits are near, the others beyond.
using permits = win32::basic_permits<4>;

bool take(permits& of) {
    if (!of.near.try_acquire()) return false;
    of.took_one();
    return true;
}
int take_all(permits& of) {
    int taken = 0;
    while (take(of)) ++taken;
    return taken;
}

MODEL_TEST(win32_model, ReleasesThatFitAreNotRefused, holds, 3) {
    permits of(3, 6);
    plain<int> taken{0};
    r.spawn("one", [&] { model::check(of.release(1, nullptr), "the first fits"); });
    r.spawn("two", [&] {
        std::int32_t before = -1;
        model::check(of.release(2, &before), "the others fit");
        model::check(before >= 2 && before <= 4, "how many there were");
    });
    r.spawn("taker", [&] { taken = take(of) ? 1 : 0; });
    r.join_all();
    r.check(taken == 1 && take_all(of) == 5, "as many in as out");
}

MODEL_TEST(win32_model, ReleasesNeverExceedTheMaximum, holds, 3) {
    permits of(0, 5);
    plain<int> given[2]{};
    r.spawn("one", [&] { given[0] = of.release(1, nullptr) ? 1 : 0; });
    r.spawn("all", [&] { given[1] = of.release(5, nullptr) ? 5 : 0; });
    r.join_all();
    const int all = given[0] + given[1];
    r.check((all == 1 || all == 5) && !of.release(6 - all, nullptr) && take_all(of) == all,
            "one of the two is refused, and gives nothing");
}

MODEL_TEST(win32_model, PermitsBeyondComeNearOnce, holds, 3) {
    permits of(6, 6);
    plain<int> given{0};
    for (int i = 0; i != 2; ++i) {
        r.spawn("taker", [&] { model::check(take(of), "many are near"); });
    }
    r.spawn("giver", [&] { given = of.release(1, nullptr) ? 1 : 0; });
    r.join_all();
    r.check(take_all(of) == 4 + given, "none is lost, and none is there twice");
}

MODEL_TEST(win32_model, APermitThatIsGivenBackIsThereAgain, holds, 3) {
    permits of(6, 6);
    plain<int> given{0};
    r.spawn("undecided", [&] {
        model::check(of.near.try_acquire(), "many are near");
        of.give_back();
    });
    r.spawn("giver", [&] { given = of.release(1, nullptr) ? 1 : 0; });
    r.join_all();
    r.check(take_all(of) == 6 + given, "none is lost");
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over the word lock and the bit lock. Proof P8 in docs/proofs.md.
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::atomic;
using model::plain;
using model::run;

// A lock, and threads that are inside it once each.
template <class Word = std::uint32_t>
struct contest {
    run& r;
    word_lock<Word> lock{};
    plain<int> inside{0};

    void take() {
        lock.lock(sleep_at_once);
        inside = inside + 1;
        lock.unlock();
    }
    void spawn(const char* name, unsigned urgency = 0) {
        r.spawn(name, [this, urgency] {
            if (urgency != 0) be_urgent(urgency);
            take();
        });
    }
    // May give up.
    void spawn_timed(const char* name, unsigned urgency = 0) {
        r.spawn(name, [this, urgency] {
            if (urgency != 0) be_urgent(urgency);
            if (lock.try_lock_until(some_time(), sleep_at_once)) lock.unlock();
        });
    }
    // Has the lock now, and leaves it to go in again.
    void spawn_holder(int turns = 1) {
        lock.lock(sleep_at_once);
        r.spawn("holder", [this, turns] {
            lock.unlock();
            for (int turn = 0; turn != turns; ++turn) take();
        });
    }
    void end(int times) {
        r.join_all();
        r.check(inside == times, "all were inside, one after the other");
    }
};

MODEL_TEST(lock_model, TwoThreadsExcludeEachOther, holds_always) {
    contest<> of{r};
    for (const char* name : {"one", "two"}) of.spawn(name);
    of.end(2);
}

MODEL_TEST(lock_model, ThreeThreadsExcludeEachOther, holds_within, 2) {
    contest<std::uint8_t> of{r};
    for (const char* name : {"one", "two", "three"}) of.spawn(name);
    of.end(3);
}

// A wake for one bit must never be spent on a waiter for another. Here bit 0 is freed only by the thread that gets bit
// 1.
MODEL_TEST(lock_model, TwoBitsOfAWordAreTwoLocks, holds_within, 2) {
    atomic<std::uint32_t> word{0b11};
    plain<int> data{0};
    r.spawn("bit 0", [&] {
        bit_lock lock(word, 0);
        lock.lock(sleep_at_once);
        lock.unlock();
    });
    r.spawn("bit 1", [&] {
        bit_lock lock(word, 1);
        lock.lock(sleep_at_once);
        model::check(data == 42, "what the last holder wrote is visible");
        lock.unlock();
        bit_lock(word, 0).unlock();
    });
    r.spawn("holder", [&] {
        data = 42;
        bit_lock(word, 1).unlock();
    });
    r.join_all();
    r.check(word.load() == 0, "both are free");
}

MODEL_TEST(lock_model, ATimeoutLosesNoWakeUp, holds_within, 2) {
    contest<> of{r};
    of.lock.lock(sleep_at_once);
    of.spawn_timed("timed");
    of.spawn("patient");
    r.spawn("holder", [&] { of.lock.unlock(); });
    of.end(1);
}

// The timed waiter may be woken and give up. Its wake must not be lost then, although the lock is taken again before
// the waiter has left.
MODEL_TEST(lock_model, AWokenThreadThatGivesUpHidesNoUnlock, holds_within, 2) {
    contest<> of{r};
    of.spawn_holder();
    of.spawn_timed("timed");
    of.spawn("patient");
    of.end(2);
}

// Two threads wait. The holder takes the lock again before the thread that it woke has arrived.
MODEL_TEST(lock_model, AThreadThatIsWokenInVainIsWokenAgain, holds_within, 2) {
    contest<> of{r};
    of.spawn_holder(2);
    for (const char* name : {"first", "second"}) of.spawn(name);
    of.end(4);
}

// An unlock may wake a more urgent thread although another one is on its way. Either may be the first that has the
// lock.
MODEL_TEST(lock_model, ThreadsOfDifferentUrgencyLoseNoWakeUp, holds_within, 2) {
    contest<> of{r};
    of.spawn_holder();
    of.spawn("ordinary");
    of.spawn("urgent", 1);
    of.end(3);
}

MODEL_TEST(lock_model, AnUrgentThreadThatGivesUpHidesNoUnlock, holds_within, 2) {
    contest<> of{r};
    of.spawn_holder();
    of.spawn_timed("urgent, timed", 1);
    of.spawn("patient");
    of.end(2);
}

// At the second unlock, a thread that was woken by the first is overdue.
MODEL_TEST(lock_model, AWakeBesideAnOverdueOneLosesNone, holds_within, 2) {
    contest<> of{r};
    of.lock.lock(sleep_at_once);
    for (const char* name : {"first", "second"}) of.spawn(name);
    r.spawn("holder", [&] {
        of.lock.unlock();
        of.lock.lock(sleep_at_once);
        now += 3'600'000'000'000;
        of.lock.unlock();
    });
    of.end(2);
}

MODEL_TEST(lock_model, TheNextHolderMayDestroyTheLock, holds_always) {
    auto* lock = new word_lock<>;
    lock->lock(sleep_at_once);
    r.spawn("holder", [lock] { lock->unlock(); });
    r.spawn("next", [lock] {
        lock->lock(sleep_at_once);
        delete lock;
    });
    r.join_all();
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs over the word lock and the bit lock. Proof P8 in docs/proofs.md.
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::atomic;
using model::plain;
using model::run;

TEST(lock_model, TwoThreadsExcludeEachOther) {
    holds_always([](run& r) {
        word_lock<> lock;
        plain<int> data{0};
        for (const char* name : {"one", "two"}) {
            r.spawn(name, [&] {
                lock.lock(sleep_at_once);
                data = data + 1;
                lock.unlock();
            });
        }
        r.join_all();
        r.check(data == 2, "both were inside, one after the other");
    });
}

TEST(lock_model, ThreeThreadsExcludeEachOther) {
    holds_within(2, [](run& r) {
        word_lock<std::uint8_t> lock;
        plain<int> data{0};
        for (const char* name : {"one", "two", "three"}) {
            r.spawn(name, [&] {
                lock.lock(sleep_at_once);
                data = data + 1;
                lock.unlock();
            });
        }
        r.join_all();
        r.check(data == 3, "all were inside, one after the other");
    });
}

// A wake for one bit must never be spent on a waiter for another. Here bit 0 is freed only by the thread that gets bit
// 1.
TEST(lock_model, TwoBitsOfAWordAreTwoLocks) {
    holds_within(2, [](run& r) {
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
    });
}

TEST(lock_model, ATimeoutLosesNoWakeUp) {
    holds_within(2, [](run& r) {
        word_lock<> lock;
        lock.lock(sleep_at_once);
        r.spawn("timed", [&] {
            if (lock.try_lock_until(some_time(), sleep_at_once)) lock.unlock();
        });
        r.spawn("patient", [&] {
            lock.lock(sleep_at_once);
            lock.unlock();
        });
        r.spawn("holder", [&] { lock.unlock(); });
        r.join_all();
    });
}

// The timed waiter may be woken and give up. Its wake must not be lost then, although the lock is taken again before
// the waiter has left.
TEST(lock_model, AWokenThreadThatGivesUpHidesNoUnlock) {
    holds_within(2, [](run& r) {
        word_lock<> lock;
        lock.lock(sleep_at_once);
        r.spawn("timed", [&] {
            if (lock.try_lock_until(some_time(), sleep_at_once)) lock.unlock();
        });
        r.spawn("patient", [&] {
            lock.lock(sleep_at_once);
            lock.unlock();
        });
        r.spawn("holder", [&] {
            lock.unlock();
            lock.lock(sleep_at_once);
            lock.unlock();
        });
        r.join_all();
    });
}

// Two threads wait. The holder takes the lock again before the thread that it woke has arrived.
TEST(lock_model, AThreadThatIsWokenInVainIsWokenAgain) {
    holds_within(2, [](run& r) {
        word_lock<> lock;
        plain<int> data{0};
        lock.lock(sleep_at_once);
        for (const char* name : {"first", "second"}) {
            r.spawn(name, [&] {
                lock.lock(sleep_at_once);
                data = data + 1;
                lock.unlock();
            });
        }
        r.spawn("holder", [&] {
            for (int turn = 0; turn != 2; ++turn) {
                lock.unlock();
                lock.lock(sleep_at_once);
                data = data + 1;
            }
            lock.unlock();
        });
        r.join_all();
        r.check(data == 4, "all were inside, one after the other");
    });
}

// An unlock may wake a more urgent thread although another one is on its way. Either may be the first that has the
// lock.
TEST(lock_model, ThreadsOfDifferentUrgencyLoseNoWakeUp) {
    holds_within(2, [](run& r) {
        word_lock<> lock;
        plain<int> data{0};
        lock.lock(sleep_at_once);
        for (const unsigned more : {0u, 1u}) {
            r.spawn(more == 0 ? "ordinary" : "urgent", [&, more] {
                be_urgent(more);
                lock.lock(sleep_at_once);
                data = data + 1;
                lock.unlock();
            });
        }
        r.spawn("holder", [&] {
            lock.unlock();
            lock.lock(sleep_at_once);
            data = data + 1;
            lock.unlock();
        });
        r.join_all();
        r.check(data == 3, "all were inside, one after the other");
    });
}

TEST(lock_model, AnUrgentThreadThatGivesUpHidesNoUnlock) {
    holds_within(2, [](run& r) {
        word_lock<> lock;
        lock.lock(sleep_at_once);
        r.spawn("urgent, timed", [&] {
            be_urgent(1);
            if (lock.try_lock_until(some_time(), sleep_at_once)) lock.unlock();
        });
        r.spawn("patient", [&] {
            lock.lock(sleep_at_once);
            lock.unlock();
        });
        r.spawn("holder", [&] {
            lock.unlock();
            lock.lock(sleep_at_once);
            lock.unlock();
        });
        r.join_all();
    });
}

// At the second unlock, a thread that was woken by the first is overdue.
TEST(lock_model, AWakeBesideAnOverdueOneLosesNone) {
    holds_within(2, [](run& r) {
        word_lock<> lock;
        plain<int> data{0};
        lock.lock(sleep_at_once);
        for (const char* name : {"first", "second"}) {
            r.spawn(name, [&] {
                lock.lock(sleep_at_once);
                data = data + 1;
                lock.unlock();
            });
        }
        r.spawn("holder", [&] {
            lock.unlock();
            lock.lock(sleep_at_once);
            now += 3'600'000'000'000;
            lock.unlock();
        });
        r.join_all();
        r.check(data == 2, "all were inside, one after the other");
    });
}

TEST(lock_model, TheNextHolderMayDestroyTheLock) {
    holds_always([](run& r) {
        auto* lock = new word_lock<>;
        lock->lock(sleep_at_once);
        r.spawn("holder", [lock] { lock->unlock(); });
        r.spawn("next", [lock] {
            lock->lock(sleep_at_once);
            delete lock;
        });
        r.join_all();
    });
}

}  // namespace

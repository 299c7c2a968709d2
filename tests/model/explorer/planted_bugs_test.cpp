// SPDX-License-Identifier: Apache-2.0
// Planted bugs, taken from published code. The explorer must find the bug in each broken version, and each repaired
// version must hold in all executions.
#include <explorer/expect.hpp>

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace {

using namespace tocsin::model;
using enum std::memory_order;

// --- a set() that is skipped because the event is set already ---

enum class announce {
    unless_set_already,  // a plain load first: the bug
    always_exchange,
    fence_then_load,
};

// The event is set from an earlier round. The consumer takes that set, looks into the queue, and sleeps if the queue is
// empty.
test_body work_queue(announce how, bool consumer_fences) {
    return [=](run& r) {
        atomic<std::uint32_t> event{1};
        atomic<int> queue{0};
        name(&event, "event");
        name(&queue, "queue");
        r.spawn("producer", [&] {
            queue.store(1, release);
            if (how == announce::fence_then_load) full_fence();
            if (how != announce::always_exchange && event.load(relaxed) == 1) return;
            event.exchange(1, acq_rel);
            futex_wake(&event);
        });
        r.spawn("consumer", [&] {
            for (;;) {
                event.exchange(0, acq_rel);
                if (consumer_fences) full_fence();
                if (queue.load(acquire) == 1) return;
                while (event.load(relaxed) == 0) futex_wait(&event, 0);
            }
        });
        r.join_all();
    };
}

TEST(skipped_set, LosesTheWakeUpAfterAPlainLoad) {
    for (const options& how : {options{}, options::x86()}) {
        const report r =
            expect_finds("consumer sleeps on event", how, work_queue(announce::unless_set_already, true));
        EXPECT_NE(r.schedule.find("futex_wait"), std::string::npos) << r.schedule;
        EXPECT_NE(r.schedule.find("queue"), std::string::npos) << r.schedule;
    }
}

TEST(skipped_set, IsSafeIfSetAlwaysExchanges) {
    expect_holds({}, work_queue(announce::always_exchange, false));
    expect_holds(options::x86(), work_queue(announce::always_exchange, false));
}

TEST(skipped_set, IsSafeBehindAFullFenceIfTheConsumersExchangeIsOneToo) {
    expect_holds({}, work_queue(announce::fence_then_load, true));
    expect_holds(options::x86(), work_queue(announce::fence_then_load, false));
}

// The setter's fence alone is half of a pair. In C++ the consumer's exchange may be acq_rel, and then its load of the
// queue may move before the exchange.
TEST(skipped_set, IsNotSafeBehindAFullFenceAlone) {
    expect_finds("consumer sleeps on event", {}, work_queue(announce::fence_then_load, false));
}

// --- a futex mutex, and with it the next ones ---

enum class unlocking { wakes, forgets_to_wake, wakes_but_is_relaxed };

class futex_mutex {
public:
    explicit futex_mutex(unlocking how = unlocking::wakes) : how_(how) { name(&word_, "mutex"); }

    void lock() {
        std::uint32_t seen = 0;
        if (word_.compare_exchange_strong(seen, 1, acquire, relaxed)) return;
        while (word_.exchange(2, acquire) != 0) futex_wait(&word_, 2);
    }

    void unlock() {
        const auto o = how_ == unlocking::wakes_but_is_relaxed ? relaxed : release;
        if (word_.exchange(0, o) == 2 && how_ != unlocking::forgets_to_wake) futex_wake(&word_);
    }

private:
    atomic<std::uint32_t> word_{0};  // free, locked, locked and maybe slept on
    unlocking how_;
};

test_body counted_under_a_mutex(int threads, unlocking how) {
    return [=](run& r) {
        futex_mutex m(how);
        plain<int> n{0};
        for (int i = 0; i < threads; ++i)
            r.spawn("locks", [&] {
                m.lock();
                ++n;
                m.unlock();
            });
        r.join_all();
        check(n == threads, "everybody was in");
    };
}

TEST(futex_mutex, ExcludesTwoThreadsInAllExecutions) {
    expect_holds({}, counted_under_a_mutex(2, unlocking::wakes));
    expect_holds(options::x86(), counted_under_a_mutex(2, unlocking::wakes));
}

TEST(futex_mutex, ExcludesThreeThreadsInAllExecutionsWithoutSpuriousReturns) {
    options how;
    how.spurious_returns = 0;
    expect_holds(how, counted_under_a_mutex(3, unlocking::wakes));
}

TEST(futex_mutex, ExcludesThreeThreadsWithUpToTwoPreemptions) {
    expect_holds(options::bounded(2), counted_under_a_mutex(3, unlocking::wakes));
}

TEST(futex_mutex, ExcludesThreeThreadsInDrawnExecutions) {
    expect_holds(options::drawn(20'000), counted_under_a_mutex(3, unlocking::wakes));
    expect_holds(options::priorities(20'000), counted_under_a_mutex(3, unlocking::wakes));
}

TEST(futex_mutex, DeadlocksIfUnlockForgetsToWake) {
    expect_finds("sleeps on mutex", {}, counted_under_a_mutex(2, unlocking::forgets_to_wake));
    expect_finds("sleeps on mutex", options::drawn(1), counted_under_a_mutex(3, unlocking::forgets_to_wake));
    expect_finds("sleeps on mutex", options::priorities(1),
                 counted_under_a_mutex(3, unlocking::forgets_to_wake));
}

TEST(futex_mutex, RacesIfUnlockIsRelaxed) {
    expect_finds("data race", {}, counted_under_a_mutex(2, unlocking::wakes_but_is_relaxed));
}

// --- two wakes that hit the same sleeper ---

// Two sleepers are in the queue; a waker wakes the same one twice before either has run.
test_body two_wakes(bool waker_takes_off_the_queue) {
    return [=](run& r) {
        struct node {
            atomic<std::uint32_t> signalled{0};
        };
        futex_mutex m;
        std::vector<node*> queue;  // under m
        atomic<std::uint32_t> queued{0};
        const auto sleep = [&] {
            node mine;
            name(&mine.signalled, "node of a sleeper");
            m.lock();
            queue.push_back(&mine);
            m.unlock();
            queued.fetch_add(1, release);
            futex_wake(&queued);
            while (mine.signalled.load(acquire) == 0) futex_wait(&mine.signalled, 0);
            m.lock();
            std::erase(queue, &mine);
            m.unlock();
        };
        r.spawn("first", sleep);
        r.spawn("second", sleep);
        for (std::uint32_t n; (n = queued.load(acquire)) != 2;) futex_wait(&queued, n);
        for (int i = 0; i < 2; ++i) {
            m.lock();
            if (!queue.empty()) {
                node* const chosen = queue.front();
                if (waker_takes_off_the_queue) queue.erase(queue.begin());
                chosen->signalled.store(1, release);
                futex_wake(&chosen->signalled);
            }
            m.unlock();
        }
        r.join_all();
    };
}

TEST(two_wakes, AreLostIfTheFirstNodeIsOnlySignalled) {
    expect_finds("sleeps on node of a sleeper", {}, two_wakes(false));
}

TEST(two_wakes, WakeTwoIfTheWakerTakesTheNodeOffTheQueue) {
    options how = options::bounded(1);
    how.spurious_returns = 0;
    expect_holds(how, two_wakes(true));
    expect_holds(options::drawn(10'000), two_wakes(true));
}

// --- a third state in which calls are swallowed ---

class barrier_word {
public:
    explicit barrier_word(bool transitional) : transitional_(transitional) { name(&word_, "word"); }

    void raise() {
        std::uint32_t down = 0;
        if (transitional_)
            word_.compare_exchange_strong(down, 1, acq_rel);  // no effect while lowering
        else
            word_.exchange(1, acq_rel);
    }

    void lower() {
        word_.exchange(transitional_ ? 2 : 0, acq_rel);
        futex_wake(&word_, 99);
        if (transitional_) word_.store(0, release);
    }

    void wait() {
        while (word_.load(acquire) == 1) futex_wait(&word_, 1);
    }

private:
    atomic<std::uint32_t> word_{1};  // lowered, raised, lowering
    bool transitional_;
};

test_body two_rounds(bool transitional) {
    return [=](run& r) {
        barrier_word b(transitional);
        atomic<std::uint32_t> raised{0};
        atomic<int> round{1};
        r.spawn("waiter", [&] {
            b.wait();
            b.raise();
            raised.store(1, release);
            futex_wake(&raised);
            b.wait();
            check(round.load(relaxed) == 2, "the second wait was released by the second round");
        });
        r.spawn("partner", [&] {
            b.lower();
            while (raised.load(acquire) == 0) futex_wait(&raised, 0);
            round.store(2, relaxed);
            b.lower();
        });
        r.join_all();
    };
}

TEST(transitional_state, DropsARaiseRightAfterTheWait) { expect_finds("second wait", {}, two_rounds(true)); }

TEST(transitional_state, IsNotNeeded) { expect_holds({}, two_rounds(false)); }

// --- one set that is delivered twice ---

test_body one_token(bool two_steps) {
    return [=](run& r) {
        atomic<std::uint32_t> word{0};  // unset, set, waited for
        name(&word, "word");
        const auto try_take = [&] {
            std::uint32_t set = 1;
            return word.compare_exchange_strong(set, 0, acq_rel, relaxed);
        };
        int taken = 0;
        r.spawn("setter", [&] {
            if (word.exchange(1, acq_rel) == 2) futex_wake(&word);
        });
        r.spawn("waiter", [&] {
            for (;;) {
                if (try_take()) break;
                std::uint32_t unset = 0;
                if (!word.compare_exchange_strong(unset, 2, acq_rel, relaxed) && unset == 1) {
                    if (two_steps) break;  // "it has become set": returns, but takes nothing
                    continue;
                }
                futex_wait(&word, 2);
            }
            ++taken;
            if (try_take()) ++taken;
        });
        r.join_all();
        check(taken == 1, "one set, one token");
    };
}

TEST(one_set, IsDeliveredTwiceIfTakingItIsNotOneStep) { expect_finds("one token", {}, one_token(true)); }

TEST(one_set, IsDeliveredOnceIfTakingItIsOneStep) { expect_holds({}, one_token(false)); }

// --- the event after the store that releases its owner ---

test_body one_shot(bool setter_looks_again) {
    return [=](run& r) {
        struct event {
            atomic<std::uint32_t> set{0};
            atomic<std::uint32_t> sleepers{0};
        };
        auto storage = std::make_unique<std::optional<event>>();
        std::optional<event>& shot = *storage;
        event& e = shot.emplace();
        name(&e.set, "set");
        name(&e.sleepers, "sleepers");
        r.spawn("setter", [&e, setter_looks_again] {
            const void* const address = &e.set;
            e.set.store(1, release);
            if (!setter_looks_again || e.sleepers.load() != 0) futex_wake(address);
        });
        r.spawn("owner", [&e, &shot] {
            e.sleepers.fetch_add(1);
            while (e.set.load(acquire) == 0) futex_wait(&e.set, 0);
            shot.reset();
        });
        r.join_all();
    };
}

TEST(one_shot_event, IsTouchedAfterItsDestructionIfTheSetterLooksAgain) {
    expect_finds("destr", {}, one_shot(true));
    expect_finds("destr", options::x86(), one_shot(true));
}

TEST(one_shot_event, MayBeDestroyedAtOnceIfTheSetterKeepsTheAddressOnly) {
    expect_holds({}, one_shot(false));
}

// --- a check for waiters that is not ordered after the store ---

test_body waiter_check(std::memory_order store, std::memory_order load) {
    return [=](run& r) {
        atomic<std::uint32_t> word{0}, waiters{0};
        name(&word, "word");
        name(&waiters, "waiters");
        r.spawn("notifier", [&] {
            word.store(1, store);
            if (waiters.load(load) != 0) futex_wake(&word);
        });
        r.spawn("waiter", [&] {
            waiters.fetch_add(1, seq_cst);
            while (word.load(load) == 0) futex_wait(&word, 0);
        });
        r.join_all();
    };
}

TEST(waiter_check, LosesTheWakeUpAfterAReleaseStore) {
    expect_finds("sleeps on word", {}, waiter_check(release, acquire));
    expect_finds("sleeps on word", options::x86(), waiter_check(release, acquire));
}

TEST(waiter_check, IsSafeIfAllAreSeqCst) { expect_holds({}, waiter_check(seq_cst, seq_cst)); }

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Latches in every interleaving of small programs. Nobody passes before the last count, and everybody passes after it.
// What came before each count is visible, and nothing is touched that is gone. Proof P18 in docs/proofs.md.
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

MODEL_TEST(latch_model, TheLastCountReleasesAndEveryCountPublishes, holds_always) {
    latch both(2);
    plain<int> first{0};
    plain<int> second{0};
    r.spawn("first", [&] {
        first = 1;
        both.count_down();
    });
    r.spawn("second", [&] {
        second = 2;
        both.arrive_and_wait(1, sleep_at_once);
        model::check(first == 1 && second == 2, "what came before each count is visible");
    });
    r.join_all();
    r.check(both.try_wait(), "the latch stays open");
}

MODEL_TEST(latch_model, NobodyPassesEarlyAndAllPass, holds_within, 2) {
    latch both(2);
    plain<int> first{0};
    plain<int> second{0};
    for (const char* name : {"waiter 1", "waiter 2"}) {
        r.spawn(name, [&] {
            both.wait(sleep_at_once);
            model::check(first + second == 3, "what came before each count is visible");
        });
    }
    r.spawn("first", [&] {
        first = 1;
        both.count_down();
    });
    r.spawn("second", [&] {
        second = 2;
        both.count_down();
    });
    r.join_all();
}

MODEL_TEST(latch_model, APollThatFindsItOpenSeesEverything, holds_always) {
    latch both(2);
    plain<int> data{0};
    r.spawn("first", [&] {
        data = 1;
        both.count_down();
    });
    r.spawn("second", [&] {
        both.count_down(0);
        both.count_down();
        if (both.try_wait()) model::check(data == 1, "what came before the other count is visible");
    });
    r.join_all();
    r.check(both.try_wait(), "both have counted");
}

TEST(latch_model, TheThreadReleasedMayDestroyIt) {
    holds_always([](run& r) {
        auto* const both = new latch(2);
        r.spawn("counter", [both] { both->count_down(); });
        r.spawn("owner", [both] {
            both->arrive_and_wait(1, sleep_at_once);
            delete both;
        });
        r.join_all();
    });
    holds_within(2, [](run& r) {
        auto* const both = new latch(2);
        for (const char* name : {"counter 1", "counter 2"}) r.spawn(name, [both] { both->count_down(); });
        r.spawn("owner", [both] {
            both->wait(sleep_at_once);
            delete both;
        });
        r.join_all();
    });
}

MODEL_TEST(latch_model, AThreadThatPolledMayDestroyIt, holds_always) {
    auto* const one = new latch(1);
    r.spawn("counter", [one] { one->count_down(); });
    r.spawn("owner", [one] {
        while (!one->try_wait()) model::cpu_relax();
        delete one;
    });
    r.join_all();
}

// If a count of zero could open the latch, it might do so between the two steps of the last count.
MODEL_TEST(latch_model, ACountOfZeroNeverOpensTheLatch, holds_always) {
    auto* const one = new latch(1);
    r.spawn("counter", [one] { one->count_down(); });
    r.spawn("owner", [one] {
        one->count_down(0);
        one->wait(sleep_at_once);
        delete one;
    });
    r.join_all();
}

// The owner times out, polls, destroys the latch, and waits on a new one at the same address.
MODEL_TEST(latch_model, ALateCountNeverOpensANewLatchAtTheSameAddress, holds_within, 3) {
    alignas(latch) unsigned char memory[sizeof(latch)];
    auto* const one = new (memory) latch(1);
    r.spawn("counter", [one] { one->count_down(); });
    r.spawn("owner", [&memory, one] {
        const auto first = one->wait_until(some_time(), sleep_at_once);
        if (first == wait_status::signaled || one->try_wait()) {
            one->~latch();
            auto* const next = new (memory) latch(1);
            model::check(next->wait_until(some_time(), sleep_at_once) == wait_status::timed_out,
                         "nobody counted the second latch down");
            next->~latch();
        }
    });
    r.join_all();
}

// The wait of one thread ends by the count, the deadline or the stop; that of the other by the count alone.
MODEL_TEST(latch_model, ADeadlineAndAStopAgainstTheLastCount, holds_within, 1) {
    latch one(1);
    model::stop_source stop;
    plain<int> data{0};
    bool asked = false;
    r.spawn("limited", [&] {
        const auto how = one.wait_until(some_time(), stop.get_token(), sleep_at_once);
        if (how == wait_status::signaled) model::check(data == 1, "what came before is visible");
        model::check(how != wait_status::stopped || asked, "stopped only by a stop");
    });
    r.spawn("patient", [&] {
        one.wait(sleep_at_once);
        model::check(data == 1, "what came before is visible");
    });
    r.spawn("counter", [&] {
        data = 1;
        one.count_down();
    });
    r.spawn("stopper", [&] {
        asked = true;
        stop.request_stop();
    });
    r.join_all();
    r.check(one.try_wait(), "the latch stays open");
}

// One count is missing at the end, so only a limit can end the waits.
TEST(latch_model, AWaitWithADeadlineAndAStopEndsByEither) {
    holds_always([](run& r) {
        latch two(2);
        model::stop_source stop;
        r.spawn("stopped", [&] {
            model::check(two.wait(stop.get_token(), sleep_at_once) == wait_status::stopped, "by the stop");
            const auto how = two.wait_until(deadline::never(), stop.get_token(), sleep_at_once);
            model::check(how == wait_status::stopped, "by the stop");
        });
        r.spawn("stopper", [&] {
            two.count_down();
            stop.request_stop();
        });
        r.join_all();
        r.check(!two.try_wait(), "one count is missing");
    });
    holds_always([](run& r) {
        latch two(2);
        model::stop_source never;
        r.spawn("timed", [&] {
            const auto how = two.wait_until(some_time(), never.get_token(), sleep_at_once);
            model::check(how == wait_status::timed_out, "by the deadline");
        });
        r.spawn("counter", [&] { two.count_down(); });
        r.join_all();
        r.check(!two.try_wait(), "one count is missing");
    });
}

MODEL_TEST(latch_model, WaitsForSeveralSourcesTakeIt, holds_within, 2) {
    latch one(1);
    latch two(2);
    auto_reset_event token;
    r.spawn("all", [&] {
        model::check(wait_all({.spin = sleep_at_once}, one, token, two) == wait_status::signaled, "all");
    });
    r.spawn("any", [&] {
        const auto found = wait_any({.spin = sleep_at_once}, two, one);
        model::check(found.status == wait_status::signaled, "any");
        two.count_down();
    });
    r.spawn("counter", [&] {
        two.count_down();
        token.set();
        one.count_down();
    });
    r.join_all();
    r.check(!token.is_set() && one.try_wait() && two.try_wait(), "the token is taken, the latches are not");
}

}  // namespace

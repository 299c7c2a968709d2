// SPDX-License-Identifier: Apache-2.0
// The policy of looks, with a clock and a schedule of its own. test_looks.py compiles this, and calls it with the name
// of a case.
#include "looks.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>

namespace {

using tocsin::spin_policy;
using tocsin::python::look_history;
using namespace std::chrono_literals;

struct test_clock {
    using time_point = std::chrono::time_point<test_clock, std::chrono::nanoseconds>;
    static inline time_point time{};
    static time_point now() { return time; }
};
using look = tocsin::python::look_first<test_clock>;

bool is_good = true;
void check(bool fact, const char* what, int line) {
    if (!fact) std::fprintf(stderr, "line %d: not true: %s\n", line, what);
    is_good = is_good && fact;
}
#define CHECK(fact) check(fact, #fact, __LINE__)

struct seen {
    bool ended, looked, let_other_finish;
};

// A wait for which the answer comes after `answer`, 0: before the wait begins. A sleep lasts until then.
seen wait_for(look_history& history, std::chrono::nanoseconds answer, bool may_look = true) {
    const auto comes = test_clock::time + answer;
    bool looked = false;
    look looking(history, may_look);
    const bool ended = looking([&] { return test_clock::time >= comes; },
                               [&](spin_policy spin) {
                                   looked = spin == spin_policy::fixed(look::longest);
                                   CHECK(looked || spin == spin_policy::none());
                                   test_clock::time = std::max(test_clock::time, comes);
                                   return true;
                               });
    const auto before = test_clock::time;
    looking.let_other_finish([] { test_clock::time += 100ns; });
    CHECK(test_clock::time == before || test_clock::time == before + 500ns);
    return {ended, looked, test_clock::time != before};
}

// Two threads share a processor: the answer comes while this thread gives up the interpreter's lock, or needs the
// processor from it.
void shared_processor() {
    look_history history;
    int looks = 0;
    for (int i = 0; i != 20'000; ++i) {
        const seen one = wait_for(history, i % 4 == 3 ? 40us : 0us);
        CHECK(one.ended);
        looks += one.looked;
        CHECK(!one.let_other_finish);
    }
    CHECK(looks > 2 && looks < 100);
    CHECK(history.credit == 0);
}

// All waits are over at once: none looks, none lets another finish.
void never_waits() {
    look_history history;
    for (int i = 0; i != 1'000; ++i) {
        const seen one = wait_for(history, 0us);
        CHECK(one.ended && !one.looked && !one.let_other_finish);
    }
}

// A thread on another processor answers: all waits look, and let it finish.
void dialogue() {
    look_history history;
    for (int i = 0; i != 100; ++i) {
        const seen one = wait_for(history, 2us);
        CHECK(one.looked && one.let_other_finish);
    }
    CHECK(history.credit == 15);
    for (int i = 0; i != 8; ++i) CHECK(wait_for(history, 50us).looked);
    CHECK(!wait_for(history, 50us).looked);
    CHECK(!wait_for(history, 2us, false).looked);
}

// An answer that comes to the sleeper after the look does not pay.
void late_answers() {
    look_history history;
    CHECK(wait_for(history, 30us).looked);
    CHECK(history.credit == 0);
    CHECK(!wait_for(history, 30us).looked);
}

// Tries that do not pay become rarer, and after one that pays they come as often as at first.
void tries() {
    look_history history;
    wait_for(history, 50us);
    for (const int gap : {64, 128, 256, 256}) {
        int waits = 1;
        while (!wait_for(history, 50us).looked) ++waits;
        CHECK(waits == gap);
    }
    while (!wait_for(history, 2us).looked) continue;
    CHECK(history.credit == 1);
    CHECK(wait_for(history, 50us).looked);
    int waits = 1;
    while (!wait_for(history, 50us).looked) ++waits;
    CHECK(waits == 64);
}

// A look at many events ends when one comes, after 30 us, or when the time has passed.
void many_events() {
    const auto look_for = [](look_history& history, std::chrono::nanoseconds answer,
                             std::chrono::nanoseconds limit) {
        const auto begin = test_clock::time;
        look looking(history, true);
        const bool ended = looking.only_look(
            [&] {
                test_clock::time += 1us;
                return test_clock::time - begin > answer;
            },
            [&] { return test_clock::time - begin >= limit; });
        looking([] { return false; },
                [](spin_policy spin) {
                    CHECK(spin == spin_policy::none());
                    return true;
                });
        return ended;
    };
    look_history history;
    CHECK(look_for(history, 5us, 1s));
    CHECK(history.credit == 3);
    auto began = test_clock::time;
    CHECK(!look_for(history, 50us, 1s));
    CHECK(test_clock::time - began >= 30us && test_clock::time - began <= 32us);
    CHECK(history.credit == 1);
    began = test_clock::time;
    CHECK(!look_for(history, 50us, 3us));
    CHECK(test_clock::time - began <= 4us);
    CHECK(history.credit == 0);
    CHECK(!look_for(history, 0us, 1s));
}

constexpr struct {
    const char* name;
    void (*run)();
} cases[] = {{"shared_processor", shared_processor},
             {"never_waits", never_waits},
             {"dialogue", dialogue},
             {"late_answers", late_answers},
             {"tries", tries},
             {"many_events", many_events}};

}  // namespace

int main(int count, char** arguments) {
    for (const auto& each : cases) {
        if (count != 2 || std::strcmp(arguments[1], each.name) != 0) continue;
        each.run();
        return is_good ? 0 : 1;
    }
    return 2;
}

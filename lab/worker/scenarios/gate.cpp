// SPDX-License-Identifier: Apache-2.0
// One set of a gate on which many coroutines wait together with something else, without any system call.
#include "../lineup.hpp"
#include "../measure/clock.hpp"
#include "../measure/machine.hpp"
#include "../measure/on_its_own.hpp"
#include "physical.hpp"

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <vector>

namespace lab {
namespace {

template <class Gate>
struct visitors {
    explicit visitors(std::size_t count) : gate(count) {}

    Gate gate;
    bool over = false;
    std::uint64_t passed = 0, left = 0;
};

template <class Gate>
on_its_own pass_again_and_again(visitors<Gate>& all, std::size_t which) {
    while (!all.over) {
        co_await all.gate.coming(which);
        ++all.passed;
    }
    ++all.left;
}

struct coroutine_gates {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_coroutine_gate<C>) f(std::type_identity<typename C::coroutine_gate>{});
    }

    template <class C>
    static std::string refuses(const parameters&) {
        return has_coroutine_gate<C> ? "" : "has no coroutines that wait for all of several";
    }

    template <class Gate>
    static void check(context& run) {
        visitors<Gate> all(2);
        pass_again_and_again(all, 0);
        pass_again_and_again(all, 1);
        all.over = true;
        all.gate.allow(1);
        run.require(all.passed == 0, "nobody passes a closed gate");
        all.gate.open();
        run.require(all.passed == 1, "an open gate lets those pass that lack nothing");
        all.gate.allow(0);
        run.require(all.left == 2, "the other passes when it lacks nothing");
    }
};

struct wait_all_at_gate : scenario_of<wait_all_at_gate, coroutine_gates> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "wait_all_at_gate",
            .question = "What does one set cost when many waits for all look at the same gate?",
            .method =
                "each coroutine waits for the gate and for an auto event of its own, both at once. The half "
                "that waits first lacks its own event; the second half lacks only the gate. One thread sets "
                "the gate; the set resumes the second half, which waits again. Time of the set, divided by "
                "the number of coroutines that it resumes: level if a set is linear in those that wait",
            .columns = {{"time", "median", "time", "ns", true},
                        {"time", "p99", "p99", "ns"},
                        cpu_column,
                        switches_column,
                        syscalls_column},
            .cases = {{{{"waits", "100"}}, tier::standard},
                      {{{"waits", "1000"}}, tier::quick},
                      {{{"waits", "10000"}}, tier::standard}},
            .floor = "as many coroutines are resumed and suspend again, with two exchanges each",
        };
        return about;
    }

    // Times open() until the budget is spent; between two calls, prepare().
    template <class Prepare, class Open>
    static std::uint64_t time_rounds(context& run, std::uint64_t resumed, Prepare prepare, Open open) {
        pin_to_nth(0);
        histogram& times = run.distribution("time");
        std::uint64_t rounds = 0;
        timed_section section(run, true);
        const std::int64_t begin = now();
        for (std::int64_t stop = begin; stop - begin < run.budget_ns() || rounds == 0; ++rounds) {
            prepare();
            section.resume();
            const std::int64_t start = now();
            open();
            stop = now();
            section.pause();
            times.record_batch(stop - start, resumed);
        }
        section.stop(rounds * resumed);
        return rounds;
    }

    static void run_floor(context& run) {
        const std::uint64_t resumed = run.given.number("waits") / 2;
        std::vector<suspended> all;
        std::atomic<std::uint8_t> byte{0};
        for (std::uint64_t i = 0; i != resumed; ++i) all.push_back(suspended::again_and_again());
        time_rounds(
            run, resumed, [] {},
            [&] {
                for (const suspended& each : all) {
                    physical::two_exchanges(byte);
                    each.handle.resume();
                }
            });
        for (const suspended& each : all) each.handle.destroy();
    }

    template <class Gate>
    static void run_with(context& run) {
        const std::uint64_t waits = run.given.number("waits");
        const std::uint64_t lacking = waits / 2;
        visitors<Gate> all(waits);
        for (std::uint64_t i = 0; i != waits; ++i) pass_again_and_again(all, i);
        const std::uint64_t rounds = time_rounds(
            run, waits - lacking,
            [&] {
                all.gate.close();
                for (std::uint64_t i = lacking; i != waits; ++i) all.gate.allow(i);
            },
            [&] { all.gate.open(); });
        run.require(all.passed == rounds * (waits - lacking),
                    "each set resumes those that lack nothing else");
        all.over = true;
        for (std::uint64_t i = 0; i != waits; ++i) all.gate.allow(i);
        run.require(all.left == waits, "every coroutine ends");
    }
};

const registration<wait_all_at_gate> registered{lineup{}};

}  // namespace

}  // namespace lab

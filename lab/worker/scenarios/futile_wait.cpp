// SPDX-License-Identifier: Apache-2.0
// A timed wait for an event that nobody sets: what waiting itself costs.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"

namespace lab {
namespace {

struct futile_wait : scenario_of<futile_wait, auto_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "futile_wait",
            .question = "What does a wait of a millisecond cost when nobody sets the event?",
            .method =
                "one thread pinned to a core waits 1 ms for an auto event, again and again; CPU of the "
                "process per wait, and how late it returns. Timers are as exact as the kernel can make them",
            .columns = {cpu_column,
                        {"late", "median", "returns late by", "ns"},
                        {"late", "p99", "p99", "ns"},
                        switches_column,
                        syscalls_column},
            .cases = {{{}, tier::quick}},
            .floor = "one sleep: clock_nanosleep for 1 ms",
        };
        return about;
    }

    template <class E>
    static std::string refuses_type(const parameters&) {
        return timed<E> ? "" : "has no timed wait";
    }

    static void run_floor(context& run) {
        wait_in_vain(run, [] {
            sleep_until(now() + millisecond);
            return false;
        });
    }

    template <class E>
    static void run_with(context& run) {
        if constexpr (timed<E>) {
            E event;
            wait_in_vain(run, [&] { return event.wait_for(std::chrono::nanoseconds(millisecond)); });
        }
    }

    static constexpr std::int64_t millisecond = 1'000'000;

    template <class Wait>
    static void wait_in_vain(context& run, Wait wait) {
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        exact_timers();
        histogram& late = run.distribution("late");
        bool in_vain = true, in_time = true;
        std::uint64_t waits = 0;
        timed_section section(run);
        const std::int64_t end = now() + run.budget_ns();
        std::int64_t start = now();
        while (start < end || waits == 0) {
            if (wait()) in_vain = false;
            const std::int64_t stop = now();
            if (stop - start < millisecond) in_time = false;
            late.record_nanoseconds(stop - start - millisecond);
            start = stop;
            ++waits;
        }
        section.stop(waits);
        run.require(in_vain, "a wait for an event that nobody sets times out");
        run.require(in_time, "a wait that times out has lasted its time");
    }
};

const registration<futile_wait> registered{lineup{}};

}  // namespace

}  // namespace lab

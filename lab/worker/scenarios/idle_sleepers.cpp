// SPDX-License-Identifier: Apache-2.0
// What threads that sleep elsewhere in the process cost two threads that wake each other.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

#include <memory>

namespace lab {
namespace {

struct idle_sleepers : scenario_of<idle_sleepers, auto_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "idle_sleepers",
            .question = "Does a wake become slower because other threads sleep?",
            .method =
                "each of n threads sleeps on an auto event of its own, until the end; two further threads, "
                "pinned to "
                "one core, wake each other in turn. Wall time per round trip in batches of 8; CPU and system "
                "calls "
                "of the process per trip",
            .columns = {{"trip", "median", "a round trip", "ns", true},
                        {"trip", "p99", "p99", "ns"},
                        cpu_column,
                        syscalls_column},
            .cases = {{{{"sleepers", "1000"}}, tier::quick},
                      {{{"sleepers", "0"}}, tier::standard},
                      {{{"sleepers", "5000"}}, tier::standard},
                      {{{"sleepers", "20000"}}, tier::full}},
            .floor = "two futex hand-offs, and nobody sleeps elsewhere",
        };
        return about;
    }

    template <class C>
    static std::string refuses_contestant(const parameters&) {
        return burns_a_core<C> ? "its waiters never sleep" : "";
    }

    static void run_floor(context& run) { physical::hand_offs_on_one_core(run, "trip", 1.0); }

    static constexpr std::uint64_t batch = 8;

    template <class E>
    static void run_with(context& run) {
        struct alignas(128) own_line {
            E event;
        };
        const std::size_t count = run.given.number("sleepers");
        const auto idle = std::make_unique<own_line[]>(count);
        std::atomic<std::size_t> left{0};
        thread_group sleepers(count, [&](std::size_t i) {
            idle[i].event.wait();
            left.fetch_add(1);
        });
        if (!sleepers.shortage().empty()) run.note(sleepers.shortage());
        sleepers.go();
        if (!wait_until_asleep(sleepers.ids())) run.note("some sleepers never slept: they spin");

        own_line there, back;
        std::atomic<bool> over{false};
        thread_group partner(1, [&](std::size_t) {
            if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
            for (;;) {
                there.event.wait();
                if (over.load(std::memory_order_relaxed)) return;
                back.event.set();
            }
        });
        pin_to_nth(0);
        partner.go();
        const auto round_trips = [&] {
            for (std::uint64_t i = 0; i < batch; ++i) {
                there.event.set();
                back.event.wait();
            }
        };
        const std::int64_t warm = now() + run.budget_ns() / 2;
        do {
            round_trips();
        } while (now() < warm);

        histogram& times = run.distribution("trip");
        std::uint64_t trips = 0;
        timed_section section(run);
        const std::int64_t end = now() + run.budget_ns();
        std::int64_t start = now();
        while (start < end || trips == 0) {
            round_trips();
            const std::int64_t stop = now();
            times.record_batch(stop - start, batch);
            start = stop;
            trips += batch;
        }
        section.stop(trips);
        over = true;
        there.event.set();
        partner.join();
        run.require(left.load() == 0, "a set of one event releases nobody that waits for another");
        for (std::size_t i = 0; i < sleepers.size(); ++i) idle[i].event.set();
        sleepers.join();
    }
};

const registration<idle_sleepers> registered{lineup{}};

}  // namespace

}  // namespace lab

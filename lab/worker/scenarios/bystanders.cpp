// SPDX-License-Identifier: Apache-2.0
// What threads that sleep on other events cost the users of this one.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

#include <memory>

namespace lab {
namespace {

struct bystanders : scenario_of<bystanders, auto_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "bystanders",
            .question = "What does an event cost while threads wait for the events beside it?",
            .method =
                "auto events side by side in memory; a thread sleeps on each except the one in the middle, "
                "which another thread, pinned to a core, sets and waits for, in batches. Disturbed: context "
                "switches of all sleepers per set and wait",
            .columns = {{"time", "median", "set and wait", "ns", true},
                        {"time", "p99", "p99", "ns"},
                        {"disturbed", "value", "sleepers' switches", "count"},
                        syscalls_column},
            .cases = {{{{"waiters", "1"}}, tier::quick},
                      {{{"waiters", "0"}}, tier::full},
                      {{{"waiters", "32"}}, tier::standard},
                      {{{"waiters", "1000"}}, tier::standard},
                      {{{"waiters", "5000"}}, tier::full}},
            .floor = "two exchanges of one byte",
        };
        return about;
    }

    template <class C>
    static std::string refuses_contestant(const parameters&) {
        return burns_a_core<C> ? "its waiters never sleep" : "";
    }

    static void run_floor(context& run) {
        pin_to_nth(0);
        std::atomic<std::uint8_t> byte{0};
        time_batches(run, "time", byte, [](auto& word) { physical::two_exchanges(word); });
        run.value("disturbed", 0);
    }

    template <class E>
    static void run_with(context& run) {
        const std::size_t waiters = run.given.number("waiters");
        const auto events = std::make_unique<E[]>(waiters + 1);
        const auto of_sleeper = [&](std::size_t i) -> E& { return events[i < waiters / 2 ? i : i + 1]; };
        std::atomic<std::size_t> left{0};
        thread_group sleepers(waiters, [&](std::size_t i) {
            of_sleeper(i).wait();
            left.fetch_add(1);
        });
        if (!sleepers.shortage().empty()) run.note(sleepers.shortage());
        sleepers.go();
        if (!wait_until_asleep(sleepers.ids())) run.note("some waiters never slept: they spin");
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");

        const std::uint64_t before = context_switches_of(sleepers.ids());
        time_batches(run, "time", events[waiters / 2], [](E& subject) {
            subject.set();
            subject.wait();
        });
        if (counts_switches)
            run.value("disturbed", static_cast<double>(context_switches_of(sleepers.ids()) - before) /
                                       static_cast<double>(run.operations()));
        run.require(left.load() == 0, "a set of one event releases nobody that waits for another");
        for (std::size_t i = 0; i < sleepers.size(); ++i) of_sleeper(i).set();
        sleepers.join();
    }
};

const registration<bystanders> registered{lineup{}};

}  // namespace

}  // namespace lab

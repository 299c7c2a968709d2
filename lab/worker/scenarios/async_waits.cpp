// SPDX-License-Identifier: Apache-2.0
// What a wait costs that blocks no thread, and what very many of them take.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/allocations.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/threads.hpp"
#include "physical.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

namespace lab {
namespace {

struct async_wait : scenario_of<async_wait, async_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "async_wait",
            .question = "What does a wait cost that blocks no thread?",
            .method =
                "one thread pinned to a core, in batches; a second thread sleeps, so that mutexes lock as "
                "in other programs. ready: sets an auto event, then starts a wait, which ends at once. "
                "comes: starts the wait, then sets. timed: the same, with a deadline in an hour. cancelled: "
                "starts the wait, then cancels it (a "
                "coroutine is destroyed and made again). A sender is connected for each wait. Not here: Go "
                "and Java, whose waits block a goroutine or a virtual thread and call no function",
            .columns = {{"time", "median", "time", "ns", true},
                        {"time", "p99", "p99", "ns"},
                        {"allocations", "value", "allocations", "count"},
                        {"cpu", "value", "CPU", "ns"},
                        syscalls_column},
            .cases = {{{{"outcome", "ready"}}, tier::quick},
                      {{{"outcome", "comes"}}, tier::quick},
                      {{{"outcome", "timed"}}, tier::quick},
                      {{{"outcome", "cancelled"}}, tier::quick}},
            .floor = "two exchanges of one byte",
        };
        return about;
    }

    template <class E>
    static std::string refuses_type(const parameters& given) {
        const std::string& outcome = given.text("outcome");
        if (outcome != "ready" && requires { E::never_waits; }) return "never waits";
        if (outcome == "timed" && !requires { typename E::timed_wait; }) return "has no deadlines";
        return outcome == "cancelled" && !can_cancel<E> ? "can't cancel a wait" : "";
    }

    static void run_floor(context& run) {
        pin(run);
        std::atomic<std::uint8_t> byte{0};
        time_batches(run, "time", byte, [](auto& word) { physical::two_exchanges(word); });
        run.value("allocations", 0);
    }

    template <class E, class Wait = typename E::wait>
    struct waited {
        E event;
        Wait wait{event};
        std::uint64_t rounds = 0;
    };

    template <class E>
    static void run_with(context& run) {
        pin(run);
        const std::string& outcome = run.given.text("outcome");
        if (outcome == "ready") {
            time_rounds<E>(run, [](waited<E>& one) {
                ++one.rounds;
                one.event.set();
                one.wait.start();
            });
        } else if (outcome == "comes") {
            time_rounds<E>(run, [](waited<E>& one) {
                ++one.rounds;
                one.wait.start();
                one.event.set();
            });
        } else if (outcome == "timed") {
            if constexpr (requires { typename E::timed_wait; }) {
                time_rounds<E, typename E::timed_wait>(run, [](waited<E, typename E::timed_wait>& one) {
                    ++one.rounds;
                    one.wait.start();
                    one.event.set();
                });
            }
        } else if constexpr (can_cancel<E>) {
            time_rounds<E>(run, [](waited<E>& one) {
                ++one.rounds;
                one.wait.start();
                (void)one.wait.cancel();
            });
        }
    }

    template <class E, class Wait = typename E::wait, class Round>
    static void time_rounds(context& run, Round round) {
        thread_group sleeper(1, [](std::size_t) {});  // its thread sleeps until go()
        if (!run.require(sleeper.shortage().empty(), "the system creates a thread")) return;
        waited<E, Wait> subject;
        time_batches(run, "time", subject, round);
        constexpr std::uint64_t counted = 1'000;
        const std::uint64_t before = allocations();
        repeat(counted, subject, round);
        run.value("allocations", static_cast<double>(allocations() - before) / counted);
        sleeper.go();
        sleeper.join();
        run.require(subject.wait.ended() == subject.rounds, "each wait that was started ends once");
    }

    static void pin(context& run) {
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
    }
};

struct pending_operations : scenario_of<pending_operations, async_events> {
    static constexpr std::string_view no_floor = "the machine needs nothing for a wait that is pending";

    static const scenario_info& info() {
        static const scenario_info about{
            .name = "pending_operations",
            .question = "What do very many pending waits take?",
            .method =
                "one thread makes and starts n waits that nothing ends, on one auto event or on an event "
                "each, with or without a deadline in an hour. Then it cancels all in the order of their "
                "starts. bytes: heap a wait, without the events",
            .columns = {{"start", "value", "start", "ns", true},
                        {"cancel", "value", "cancel", "ns", true},
                        {"bytes", "value", "bytes", "bytes", true}},
            .cases = cases(),
            .floor = {},
        };
        return about;
    }

    static std::vector<scenario_case> cases() {
        std::vector<scenario_case> all;
        for (const char* waits : {"10000", "100000"}) {
            for (const char* on : {"one", "each"}) {
                for (const char* deadline : {"none", "hour"}) {
                    const bool many = std::string_view(waits) == "100000";
                    all.push_back({{{"waits", waits}, {"events", on}, {"deadline", deadline}},
                                   many ? tier::full : tier::standard});
                }
            }
        }
        return all;
    }

    template <class E>
    static constexpr bool has_deadlines = requires { typename E::timed_wait; };

    template <class E>
    static std::string refuses_type(const parameters& given) {
        if (!can_cancel<E>) return "can't cancel a wait";
        return !has_deadlines<E> && given.text("deadline") != "none" ? "has no deadlines" : "";
    }

    template <class E>
    static void run_with(context& run) {
        if constexpr (can_cancel<E>) {
            if (run.given.text("deadline") == "none") {
                start_and_cancel<E, typename E::wait>(run);
            } else if constexpr (has_deadlines<E>) {
                start_and_cancel<E, typename E::timed_wait>(run);
            }
        }
    }

    template <class E, class Wait>
    static void start_and_cancel(context& run) {
        const std::size_t count = run.given.number("waits");
        const bool one = run.given.text("events") == "one";
        const auto events = std::make_unique<E[]>(one ? 1 : count);
        const auto a_wait = [&](double all) { return all / static_cast<double>(count); };
        std::deque<Wait> waits;
        const double before = heap_in_use();
        const std::int64_t start = now();
        for (std::size_t i = 0; i != count; ++i) waits.emplace_back(events[one ? 0 : i]).start();
        const std::int64_t started = now();
        run.value("bytes", a_wait(heap_in_use() - before));
        const std::int64_t cancel = now();
        std::size_t cancelled = 0;
        for (Wait& each : waits) cancelled += each.cancel() ? 1 : 0;
        run.value("cancel", a_wait(static_cast<double>(now() - cancel)));
        run.value("start", a_wait(static_cast<double>(started - start)));
        run.require(cancelled == count, "each pending wait can be cancelled");
        bool ended = true;
        for (const Wait& each : waits) ended &= each.ended() == 1;
        run.require(ended, "each cancelled wait ends once");
    }
};

const registration<async_wait> async_wait_registered{lineup{}};
const registration<pending_operations> pending_operations_registered{lineup{}};

}  // namespace

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// One thread waits for several events at once: for any of them, or for all.
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/threads.hpp"
#include "physical.hpp"

#include <atomic>
#include <string_view>

namespace lab {
namespace {

// Whether a group of events can be waited for as a whole, not only for any of them.
template <class Group>
constexpr bool can_wait_for_all = requires(Group group) { group.wait_all(); };

struct event_groups {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_event_group<C>) f(std::type_identity<typename C::event_group>{});
    }

    template <class C>
    static std::string refuses(const parameters&) {
        return has_event_group<C> ? "" : "has no wait for several";
    }

    template <class Group>
    static void check(context& run) {
        Group group(3);
        group.set(2);
        group.set(1);
        run.require(group.wait_any() == 1 && group.wait_any() == 2, "the lowest that is set is taken first");
    }
};

struct wait_many : scenario_of<wait_many, event_groups> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "wait_many",
            .question = "What does it cost to wait for several events at once?",
            .method =
                "ready: one thread sets the last of n auto events and waits for any, in batches. "
                "ready_first: the same, but all n are set, and it takes the first. comes: it "
                "waits for any of n; another thread, on another core, sets them in turn and waits for the "
                "answer: a round trip. all: each round the other sets all n, one after the other, and it "
                "waits for all; time per round. comes_one_core, all_one_core: the same with both on one "
                "core, where the waiter is asleep before the first is set: two switches a round are one "
                "sleep and one wake-up, in all_one_core for all n",
            .columns = {{"time", "median", "time", "ns", true},
                        {"time", "p99", "p99", "ns"},
                        cpu_column,
                        switches_column,
                        syscalls_column},
            .cases = cases(),
            .floor =
                "ready, ready_first: two exchanges, as for a single event; on one core: a futex hand-off "
                "there and "
                "back; else a cache line that goes there and back",
        };
        return about;
    }

    static std::vector<scenario_case> cases() {
        std::vector<scenario_case> all;
        for (const char* what : {"ready", "ready_first", "comes", "comes_one_core", "all", "all_one_core"}) {
            for (const std::uint64_t events : {2u, 8u, 64u}) {
                parameters given{{"what", what}};
                given.add("events", events);
                const bool standard = events == 2 || what == std::string_view("comes_one_core");
                all.push_back({given, events == 8 ? tier::quick : standard ? tier::standard : tier::full});
            }
        }
        return all;
    }

    static bool is_ready(std::string_view what) { return what.starts_with("ready"); }
    static bool on_one_core(std::string_view what) { return what.ends_with("_one_core"); }

    template <class C>
    static std::string refuses_contestant(const parameters& given) {
        const std::string& what = given.text("what");
        return !is_ready(what) && !on_one_core(what) && usable_cores().size() < 2 ? "needs two cores" : "";
    }

    template <class Group>
    static std::string refuses_type(const parameters& given) {
        const bool for_all = given.text("what").starts_with("all");
        return for_all && !can_wait_for_all<Group> ? "can't wait for all" : "";
    }

    static void run_floor(context& run) {
        const std::string& what = run.given.text("what");
        if (is_ready(what)) {
            pin_to_nth(0);
            std::atomic<std::uint8_t> byte{0};
            time_batches(run, "time", byte, [](auto& word) { physical::two_exchanges(word); });
        } else if (on_one_core(what)) {
            physical::hand_offs_on_one_core(run, "time", 1.0);
        } else {
            physical::cache_line_round_trips(run, "time");
        }
    }

    template <class Group>
    static void run_with(context& run) {
        if (is_ready(run.given.text("what")))
            run_ready<Group>(run);
        else
            run_two<Group>(run);
    }

    template <class Group>
    static void run_ready(context& run) {
        struct {
            std::size_t taken;
            Group group;
        } subject{run.given.number("events") - 1, Group(run.given.number("events"))};
        if (run.given.text("what") == "ready_first") {
            for (std::size_t i = 1; i <= subject.taken; ++i) subject.group.set(i);
            subject.taken = 0;
        }
        pin_to_nth(0);
        time_batches(run, "time", subject, [](auto& one) {
            one.group.set(one.taken);
            (void)one.group.wait_any();
        });
    }

    template <class Group>
    static void run_two(context& run) {
        const std::size_t events = run.given.number("events");
        const std::string& what = run.given.text("what");
        const bool all = what.starts_with("all");
        const std::size_t other_core = on_one_core(what) ? 0 : 1;
        Group group(events);
        Group answer(1);
        std::atomic<bool> over{false};
        bool in_turn = true;
        std::size_t round = 0;
        thread_group answerer(1, [&](std::size_t) {
            pin_to_nth(other_core);
            // Reads `over` before it answers, because the other thread continues at once after the answer.
            for (bool last = false; !last;) {
                if (!all) {
                    in_turn &= group.wait_any() == round++ % events;
                } else if constexpr (can_wait_for_all<Group>) {
                    group.wait_all();
                }
                last = over.load(std::memory_order_relaxed);
                answer.set(0);
            }
        });
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        answerer.go();
        histogram& times = run.distribution("time");
        std::size_t rounds = 0;
        const auto once = [&] {
            if (all) {
                for (std::size_t i = 0; i != events; ++i) group.set(i);
            } else {
                group.set(rounds % events);
            }
            (void)answer.wait_any();
            ++rounds;
        };
        const std::int64_t warm = now() + run.budget_ns() / 10;
        while (now() < warm) once();
        timed_section section(run);
        const std::size_t before = rounds;
        std::int64_t last = now();
        for (const std::int64_t end = last + run.budget_ns(); last < end;) {
            once();
            const std::int64_t time = now();
            times.record_nanoseconds(time - last);
            last = time;
        }
        section.stop(rounds - before);
        over = true;
        once();
        answerer.join();
        run.require(in_turn, "the events come in turn");
    }
};

const registration<wait_many> registered{lineup{}};

}  // namespace

}  // namespace lab

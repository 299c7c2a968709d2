// One thread waits for several events at once: for any of them, or for all.
#include LAB_LINEUP
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/threads.hpp"
#include "physical.hpp"

#include <atomic>

namespace lab {
namespace {

struct wait_many {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "wait_many",
            .question = "What does it cost to wait for several events at once?",
            .method =
                "ready: one thread sets the last of n auto events and waits for any, in batches. comes: it "
                "waits for "
                "any of n, another thread, on another core, sets them in turn and waits for the answer; a "
                "round "
                "trip. all: the other sets all n, one after the other, each round; time per round. "
                "all_one_core: the same with both on one core, where the waiter has gone to sleep before "
                "the first is set: two switches a round are one sleep and one wake-up for all n",
            .columns = {{"time", "median", "time", "ns", true},
                        {"time", "p99", "p99", "ns"},
                        cpu_column,
                        switches_column,
                        syscalls_column},
            .cases = cases(),
            .floor =
                "ready: two exchanges, as for a single event; all_one_core: a futex hand-off there and back; "
                "else a cache line that goes there and back",
        };
        return about;
    }

    static std::vector<scenario_case> cases() {
        std::vector<scenario_case> all;
        for (const char* what : {"ready", "comes", "all", "all_one_core"}) {
            for (const std::uint64_t events : {2u, 8u, 64u}) {
                parameters given{{"what", what}};
                given.add("events", events);
                all.push_back({given, events == 8 ? tier::quick : events == 2 ? tier::standard : tier::full});
            }
        }
        return all;
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        const std::string& what = given.text("what");
        const bool one_core = what == "ready" || what == "all_one_core";
        if (!one_core && usable_cores().size() < 2) return "needs two cores";
        if constexpr (is_floor<C>)
            return {};
        else if constexpr (!has_event_group<C>)
            return "has no wait for several";
        else if constexpr (!can_wait_for_all<C>)
            return what.starts_with("all") ? "can't wait for all" : "";
        else
            return {};
    }

    template <class C>
    static constexpr bool can_wait_for_all = requires(typename C::event_group group) { group.wait_all(); };

    template <class C>
    static void check(context& run) {
        if constexpr (has_event_group<C>) {
            typename C::event_group group(3);
            group.set(2);
            group.set(1);
            run.require(group.wait_any() == 1 && group.wait_any() == 2,
                        "the lowest that is set is taken first");
        }
    }

    template <class C>
    static void run(context& run) {
        const bool alone = run.given.text("what") == "ready";
        if constexpr (is_floor<C>) {
            if (alone) {
                pin_to_nth(0);
                std::atomic<std::uint8_t> byte{0};
                time_batches(run, "time", byte, [](auto& word) { physical::two_exchanges(word); });
            } else if (run.given.text("what") == "all_one_core") {
                physical::hand_offs_on_one_core(run, "time", 1.0);
            } else {
                physical::cache_line_round_trips(run, "time");
            }
        } else if constexpr (has_event_group<C>) {
            if (alone)
                run_ready<C>(run);
            else
                run_two<C>(run);
        }
    }

    template <class C>
    static void run_ready(context& run) {
        struct {
            std::size_t last;
            typename C::event_group group;
        } subject{run.given.number("events") - 1, typename C::event_group(run.given.number("events"))};
        pin_to_nth(0);
        time_batches(run, "time", subject, [](auto& one) {
            one.group.set(one.last);
            (void)one.group.wait_any();
        });
    }

    template <class C>
    static void run_two(context& run) {
        const std::size_t events = run.given.number("events");
        const bool all = run.given.text("what") != "comes";
        const std::size_t other_core = run.given.text("what") == "all_one_core" ? 0 : 1;
        typename C::event_group group(events);
        typename C::event_group answer(1);
        std::atomic<bool> over{false};
        bool in_turn = true;
        std::size_t round = 0;
        thread_group answerer(1, [&](std::size_t) {
            pin_to_nth(other_core);
            // Whether it is the last is looked up before the answer: after it the other goes on at once.
            for (bool last = false; !last;) {
                if (!all) {
                    in_turn &= group.wait_any() == round++ % events;
                } else if constexpr (can_wait_for_all<C>) {
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
        run.require(in_turn, "each event in its turn");
    }
};

}  // namespace

void add_many(registry& all) { all.add<wait_many>(lineup{}); }

}  // namespace lab

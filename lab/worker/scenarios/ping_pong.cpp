// SPDX-License-Identifier: Apache-2.0
// Two threads wake each other in turn, on two cores or on one, with the same settings.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

namespace lab {
namespace {

struct ping_pong : scenario_of<ping_pong, auto_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "ping_pong",
            .question = "How fast do two threads hand something back and forth?",
            .method =
                "two auto events; wall time per round trip in batches of 8. Two cores: one thread pinned to "
                "each; one core: both pinned to the same. CPU and system calls of both, per trip",
            .columns = {{"trip", "median", "a round trip", "ns", true},
                        {"trip", "p99", "p99", "ns"},
                        cpu_column,
                        switches_column,
                        syscalls_column},
            .cases = {{{{"cores", "2"}}, tier::quick}, {{{"cores", "1"}}, tier::quick}},
            .floor = "two cores: a cache line that goes there and back; one core: two futex hand-offs",
        };
        return about;
    }

    template <class C>
    static std::string refuses_contestant(const parameters& given) {
        if (given.number("cores") == 2 && usable_cores().size() < 2) return "needs two cores";
        if (given.number("cores") == 1 && burns_a_core<C>) return "never sleeps, so it needs two cores";
        return {};
    }

    static void run_floor(context& run) {
        if (run.given.number("cores") == 2)
            physical::cache_line_round_trips(run, "trip");
        else
            physical::hand_offs_on_one_core(run, "trip", 1.0);
    }

    static constexpr std::uint64_t batch = 8;

    template <class E>
    static void run_with(context& run) {
        struct alignas(128) side {
            E event;
        };
        side there, back;
        std::uint64_t answer = 0;  // plain: the events must order it
        std::atomic<bool> over{false};
        const std::size_t partner_core = run.given.number("cores") == 2 ? 1 : 0;
        thread_group partner(1, [&](std::size_t) {
            if (!pin_to_nth(partner_core)) run.note("not permitted to pin threads to cores");
            for (;;) {
                there.event.wait();
                if (over.load(std::memory_order_relaxed)) return;
                ++answer;
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
        const std::int64_t warm = now() + run.budget_ns() / 10;
        do {
            round_trips();
        } while (now() < warm);

        histogram& times = run.distribution("trip");
        const std::uint64_t before = answer;
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
        run.require(answer - before == trips, "each trip is answered once");
        over = true;
        there.event.set();
        partner.join();
    }
};

const registration<ping_pong> registered{lineup{}};

}  // namespace

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// Whether two threads that answer each other are fast again after something has held one of them up.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

namespace lab {
namespace {

struct disturbed : scenario_of<disturbed, auto_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "disturbed",
            .question = "Are two threads that answer each other fast again after a disturbance?",
            .method =
                "two auto events, a core for each thread. Again and again, something disturbs the two: one "
                "of them "
                "pauses for 10 ms, or a third thread is busy on one of the cores for 50 ms, now on this core "
                "and now "
                "on the other. Wall time per round trip in batches of 8, in the first 20 ms after the "
                "disturbance and "
                "in the 20 ms that follow; CPU and system calls of both threads in these 40 ms, per trip",
            .columns = {{"later", "median", "a round trip from 20 ms on", "ns", true},
                        {"later", "p99", "p99", "ns"},
                        {"soon", "median", "in the first 20 ms", "ns", true},
                        cpu_column,
                        syscalls_column},
            .cases = {{{{"by", "pause"}}, tier::standard}, {{{"by", "busy_thread"}}, tier::standard}},
            .floor = "a cache line that goes there and back",
        };
        return about;
    }

    template <class C>
    static std::string refuses_contestant(const parameters&) {
        return usable_cores().size() < 2 ? "needs two cores" : "";
    }

    static void run_floor(context& run) {
        physical::cache_line_round_trips(run, "later");
        physical::cache_line_round_trips(run, "soon");
    }

    static constexpr std::uint64_t batch = 8;
    static constexpr std::int64_t ms = 1'000'000;

    template <class E>
    static void run_with(context& run) {
        struct alignas(128) side {
            E event;
        };
        side there, back;
        std::uint64_t answers = 0;  // plain: the events must order it
        std::atomic<bool> over{false};
        std::atomic<bool> pause{false};
        thread_group partner(1, [&](std::size_t) {
            if (!pin_to_nth(1)) run.note("not permitted to pin threads to cores");
            for (;;) {
                there.event.wait();
                if (over.load(std::memory_order_relaxed)) return;
                if (pause.load(std::memory_order_relaxed)) sleep_until(now() + 10 * ms);
                ++answers;
                back.event.set();
            }
        });
        pin_to_nth(0);
        partner.go();

        const auto round_trip = [&] {
            there.event.set();
            back.event.wait();
        };
        std::uint64_t trips = 0;
        const auto trips_for = [&](std::int64_t duration, histogram* times) {
            std::int64_t start = now();
            for (const std::int64_t end = start + duration; start < end;) {
                for (std::uint64_t i = 0; i < batch; ++i) round_trip();
                const std::int64_t stop = now();
                if (times != nullptr) times->record_batch(stop - start, batch);
                start = stop;
                trips += batch;
            }
        };
        // The threads answer each other while the third is busy, and one of them pauses between two round trips.
        const auto disturb = [&](std::size_t core) {
            if (run.given.text("by") == "busy_thread") {
                thread_group third(1, [&](std::size_t) {
                    pin_to_nth(core);
                    for (const std::int64_t end = now() + 50 * ms; now() < end;) {
                    }
                });
                third.go();
                trips_for(50 * ms, nullptr);
                third.join();
            } else if (core == 0) {
                sleep_until(now() + 10 * ms);
            } else {
                pause = true;
                round_trip();
                pause = false;
                ++trips;
            }
        };

        trips_for(run.budget_ns() / 10, nullptr);
        histogram& soon = run.distribution("soon");
        histogram& later = run.distribution("later");
        std::uint64_t measured = 0;
        timed_section section(run, true);
        const std::int64_t end = now() + run.budget_ns();
        for (std::size_t turn = 0; turn < 2 || now() < end; ++turn) {
            disturb(turn % 2);
            const std::uint64_t before = trips;
            section.resume();
            trips_for(20 * ms, &soon);
            trips_for(20 * ms, &later);
            section.pause();
            measured += trips - before;
        }
        section.stop(measured);
        run.require(answers == trips, "each trip is answered once");
        over = true;
        there.event.set();
        partner.join();
    }
};

const registration<disturbed> registered{lineup{}};

}  // namespace

}  // namespace lab

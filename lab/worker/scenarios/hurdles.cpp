// SPDX-License-Identifier: Apache-2.0
// The gate's second benchmark (docs/requirements.md#the-gate): at each hurdle every thread waits for the last one to
// arrive.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"

#include <algorithm>
#include <array>

namespace lab {
namespace {

// Each hurdle is on cache lines of its own. There are four in a ring; two would be enough, because when all threads
// have arrived at one hurdle, all have left the one before.
template <class E>
struct alignas(128) hurdle {
    std::atomic<std::uint64_t> arrived{0};
    alignas(128) E event;
};

struct hurdles : scenario_of<hurdles, manual_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "hurdles",
            .question = "How fast do threads that wait for each other get over a hurdle together?",
            .method =
                "each hurdle has a manual event: the last thread to arrive resets the next hurdle's event "
                "and sets this one's, the others wait. Wall time per hurdle, in batches of 16, and CPU time "
                "of all threads per hurdle; thread i pinned to core i if there are cores for all, else "
                "unpinned",
            .columns = {{"hurdle", "median", "a hurdle", "ns", true},
                        {"hurdle", "p99", "p99", "ns"},
                        cpu_column,
                        switches_column,
                        syscalls_column},
            .cases = {{{{"threads", "1"}}, tier::standard},
                      {{{"threads", "2"}}, tier::quick},
                      {{{"threads", "4"}}, tier::standard},
                      {{{"threads", "8"}}, tier::standard},
                      {{{"threads", "16"}}, tier::quick}},
            .floor = "one exchange per thread and hurdle, on one shared word",
        };
        return about;
    }

    static constexpr std::uint64_t chunk = 16;

    // Written only by the last to arrive. Relaxed: the event must order it, and the run checks that it does.
    struct alignas(128) progress {
        std::atomic<std::uint64_t> taken{0};
        std::atomic<std::uint64_t> last{~std::uint64_t{0}};  // the hurdle after which all stop
    };

    // Written by the last to arrive, which is alone then: all others wait for it.
    struct timing {
        histogram& times;
        std::int64_t end;
        std::int64_t start;

        // False when the time is up.
        bool another_chunk() noexcept {
            const std::int64_t stop = now();
            times.record_batch(stop - start, chunk);
            start = stop;
            return stop < end;
        }
    };

    template <class E>
    static void run_with(context& run) {
        const std::uint64_t wanted = run.given.number("threads");
        std::array<hurdle<E>, 4> ring;
        progress sofar;
        std::atomic<bool> passed_early{false};
        std::uint64_t members = wanted;
        timing clock{run.distribution("hurdle"), 0, 0};
        thread_group threads(wanted, [&](std::size_t index) {
            if (members <= usable_cores().size() && !pin_to_nth(index)) {
                run.note("not permitted to pin threads to cores");
            }
            for (std::uint64_t i = 0;; ++i) {
                hurdle<E>& here = ring[i % ring.size()];
                if (here.arrived.fetch_add(1) + 1 == members) {
                    here.arrived.store(0, std::memory_order_relaxed);
                    sofar.taken.store(i + 1, std::memory_order_relaxed);
                    if (i % chunk == chunk - 1 && !clock.another_chunk()) {
                        sofar.last.store(i, std::memory_order_relaxed);
                    }
                    rearm(ring[(i + 1) % ring.size()].event);
                    here.event.set();
                } else {
                    here.event.wait();
                    if (sofar.taken.load(std::memory_order_relaxed) <= i) passed_early = true;
                }
                if (sofar.last.load(std::memory_order_relaxed) == i) return;
            }
        });
        members = threads.size();
        if (!threads.shortage().empty()) run.note(threads.shortage());
        timed_section section(run);
        clock.start = now();
        clock.end = clock.start + run.budget_ns();
        threads.go();
        threads.join();
        section.stop(sofar.taken);
        run.require(!passed_early, "nobody passes a hurdle before the last one has arrived");
    }

    // One exchange per thread makes a hurdle. Now and then the first thread looks how many exchanges there were.
    static void run_floor(context& run) {
        const std::uint64_t wanted = run.given.number("threads");
        histogram& times = run.distribution("hurdle");
        std::atomic<std::uint64_t> word{0};
        std::atomic<bool> done{false};
        std::int64_t end = 0;
        const auto watch = [&, start = now(), counted = std::uint64_t{0}]() mutable {
            const std::int64_t stop = now();
            const std::uint64_t count = word.load(std::memory_order_relaxed);
            if (counted != 0)
                times.record_batch(stop - start, std::max<std::uint64_t>((count - counted) / wanted, 1));
            start = stop;
            counted = count;
            if (stop >= end) done = true;
        };
        thread_group threads(wanted, [&](std::size_t index) {
            if (wanted <= usable_cores().size()) pin_to_nth(index);
            auto look = watch;
            for (std::uint64_t own = 1; !done.load(std::memory_order_relaxed); ++own) {
                keep(word.fetch_add(1, std::memory_order_relaxed));
                if (index == 0 && own % 4096 == 0) look();
            }
        });
        timed_section section(run);
        end = now() + run.budget_ns();
        threads.go();
        threads.join();
        section.stop(std::max<std::uint64_t>(word.load() / wanted, 1));
        if (times.total() == 0)
            times.record_batch(run.budget_ns(), std::max<std::uint64_t>(word.load() / wanted, 1));
    }
};

const registration<hurdles> registered{lineup{}};

}  // namespace

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// The benchmark of waits on addresses (docs/requirements.md#waits-on-addresses): how long it takes from set() until a
// thread runs that has slept for a while.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"

#include <algorithm>

namespace lab {
namespace {

// The floor's event: its waiter never stops looking.
class spinning_event {
public:
    void set() noexcept { set_.store(true, std::memory_order_release); }
    void wait() noexcept {
        while (!set_.load(std::memory_order_acquire)) {
        }
        set_.store(false, std::memory_order_relaxed);
    }

private:
    std::atomic<bool> set_{false};
};

struct wake_latency : scenario_of<wake_latency, auto_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "wake_latency",
            .question = "How long does it take from set() until the waiting thread runs?",
            .method =
                "one thread waits on an auto event; another sleeps for the delay, reads the clock and sets "
                "it; the woken thread reads the clock. Two cores: each thread pinned to its own; one core: "
                "both to the same. CPU: of the process per wake-up, including the setter's timer",
            .columns = {{"latency", "median", "latency", "ns", true},
                        {"latency", "p99", "p99", "ns", true},
                        cpu_column,
                        switches_column,
                        syscalls_column},
            .cases = {{{{"delay_ms", "1"}, {"cores", "2"}}, tier::standard},
                      {{{"delay_ms", "10"}, {"cores", "2"}}, tier::quick},
                      {{{"delay_ms", "50"}, {"cores", "2"}}, tier::standard},
                      {{{"delay_ms", "1"}, {"cores", "1"}}, tier::full}},
            .floor = "a thread that spins: what a core burnt for it would give",
        };
        return about;
    }

    template <class C>
    static std::string refuses_contestant(const parameters& given) {
        const bool one_core = given.number("cores") == 1;
        if (!one_core && usable_cores().size() < 2) return "needs two cores";
        if (one_core && (is_floor<C> || burns_a_core<C>)) return "never sleeps, so it needs two cores";
        return {};
    }

    static void run_floor(context& run) { run_with<spinning_event>(run); }

    template <class E>
    static void run_with(context& run) {
        const std::int64_t delay = static_cast<std::int64_t>(run.given.number("delay_ms")) * 1'000'000;
        const std::size_t waiter_core = run.given.number("cores") == 1 ? 0 : 1;
        histogram& latency = run.distribution("latency");
        E event;
        std::int64_t set_at = 0;
        std::atomic<std::uint64_t> awake{0};
        std::atomic<bool> over{false};
        std::atomic<bool> early{false};
        thread_group waiter(1, [&](std::size_t) {
            if (!pin_to_nth(waiter_core)) run.note("not permitted to pin threads to cores");
            for (;;) {
                event.wait();
                const std::int64_t woke_at = now();
                if (over.load(std::memory_order_relaxed)) return;
                if (woke_at < set_at) early = true;
                latency.record_nanoseconds(woke_at - set_at);
                awake.fetch_add(1, std::memory_order_release);
            }
        });
        pin_to_nth(0);
        exact_timers();
        waiter.go();
        sleep_until(now() + delay);

        // A sample with a handful of wake-ups says nothing, so it gets three times the budget.
        const auto wakes =
            std::max<std::uint64_t>(6, static_cast<std::uint64_t>(3 * run.budget_ns() / delay));
        timed_section section(run);
        for (std::uint64_t i = 0; i < wakes; ++i) {
            sleep_until(now() + delay);
            while (awake.load(std::memory_order_acquire) != i) sleep_until(now() + delay);  // woken very late
            set_at = now();
            event.set();
        }
        while (awake.load(std::memory_order_acquire) != wakes) sleep_until(now() + delay);
        section.stop(wakes, 0, wakes + 1);
        over = true;
        event.set();
        waiter.join();
        run.require(!early, "nobody wakes before the set");
    }
};

const registration<wake_latency> registered{lineup{}};

}  // namespace

}  // namespace lab

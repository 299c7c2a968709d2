// Two threads wake each other in turn: across two cores and on one, with the same settings.
#include LAB_LINEUP
#include "../checks.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

namespace lab {
namespace {

struct ping_pong {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "ping_pong",
            .question = "How fast do two threads hand something back and forth?",
            .method =
                "two auto events; wall time per round trip in batches of 8. Two cores: a thread pinned to "
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
    static std::string refuses(const parameters& given) {
        if (given.number("cores") == 2 && usable_cores().size() < 2) return "needs two cores";
        if (given.number("cores") == 1 && burns_a_core<C>) return "never sleeps, so it needs two cores";
        if constexpr (is_floor<C>)
            return {};
        else
            return refuses_auto_event<C>();
    }

    template <class C>
    static void check(context& run) {
        with_auto_event<C>([&]<class E>(std::type_identity<E>) { check_auto_event<E>(run); });
    }

    template <class C>
    static void run(context& run) {
        if constexpr (is_floor<C>) {
            if (run.given.number("cores") == 2)
                physical::cache_line_round_trips(run, "trip");
            else
                physical::hand_offs_on_one_core(run, "trip", 1.0);
        } else {
            with_auto_event<C>([&]<class E>(std::type_identity<E>) { run_event<E>(run); });
        }
    }

    static constexpr std::uint64_t batch = 8;

    template <class E>
    static void run_event(context& run) {
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
        run.require(answer - before == trips, "each trip was answered once");
        over = true;
        there.event.set();
        partner.join();
    }
};

}  // namespace

void add_ping_pong(registry& all) { all.add<ping_pong>(lineup{}); }

}  // namespace lab

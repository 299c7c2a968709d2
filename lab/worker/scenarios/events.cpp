// Whether an event's cost depends on how many there are: a table, or caches, might make it.
#include LAB_LINEUP
#include "../checks.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

#include <cstdint>
#include <memory>

namespace lab {
namespace {

struct events {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "events",
            .question = "What does an event cost that is one of very many?",
            .method =
                "n auto events side by side in memory; one thread pinned to a core sets and consumes one "
                "after the other, never a neighbour next, in batches: what grows is the memory that is gone "
                "through",
            .columns = {{"time", "median", "set and wait", "ns", true},
                        {"time", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = {{{{"events", "1"}}, tier::standard},
                      {{{"events", "1024"}}, tier::standard},
                      {{{"events", "32768"}}, tier::standard},
                      {{{"events", "1048576"}}, tier::quick}},
            .floor = "two exchanges on each of n bytes side by side, in the same order",
        };
        return about;
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if constexpr (is_floor<C>) {
            return {};
        } else {
            if (requires { C::is_descriptor; } && given.number("events") > 1) {
                return "more descriptors than a process may have";
            }
            return refuses_auto_event<C>();
        }
    }

    template <class C>
    static void check(context& run) {
        with_auto_event<C>([&]<class E>(std::type_identity<E>) { check_auto_event<E>(run); });
    }

    template <class C>
    static void run(context& run) {
        if constexpr (is_floor<C>) {
            go_round<std::atomic<std::uint8_t>>(run, [](auto& byte) { physical::two_exchanges(byte); });
        } else {
            with_auto_event<C>([&]<class E>(std::type_identity<E>) {
                go_round<E>(run, [](E& event) {
                    event.set();
                    event.wait();
                });
            });
        }
    }

    // Every event once in each round: the number of them is a power of two and the step odd. The step is the golden
    // section of them, so that no two that follow each other share a line.
    template <class E>
    struct ring {
        explicit ring(std::size_t count)
            : all(std::make_unique<E[]>(count)), last(count - 1), step(count * 618 / 1000 | 1) {}
        E& next() noexcept { return all[at = (at + step) & last]; }

        std::unique_ptr<E[]> all;
        std::size_t last, step, at = 0;
    };

    template <class E, class Operation>
    static void go_round(context& run, Operation) {
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        ring<E> subject(run.given.number("events"));
        for (std::size_t i = 0; i <= subject.last; ++i) Operation{}(subject.next());  // touches the memory
        time_batches(run, "time", subject, [](ring<E>& one) { Operation{}(one.next()); });
    }
};

}  // namespace

void add_events(registry& all) { all.add<events>(lineup{}); }

}  // namespace lab

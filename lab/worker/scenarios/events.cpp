// SPDX-License-Identifier: Apache-2.0
// Whether the cost of an event depends on how many there are, because of a table or of the caches.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

#include <cstdint>
#include <memory>

namespace lab {
namespace {

struct events : scenario_of<events, auto_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "events",
            .question = "What does an event cost when it is one of very many?",
            .method =
                "n auto events side by side in memory; one thread pinned to a core sets and consumes one "
                "after the other, never two neighbours in a row, in batches: what grows is the memory that "
                "it walks through",
            .columns = {{"time", "median", "set and wait", "ns", true},
                        {"time", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = {{{{"events", "1"}}, tier::standard},
                      {{{"events", "1024"}}, tier::quick},
                      {{{"events", "32768"}}, tier::standard},
                      {{{"events", "1048576"}}, tier::standard}},
            .floor = "two exchanges on each of n bytes side by side, in the same order",
        };
        return about;
    }

    template <class C>
    static std::string refuses_contestant(const parameters& given) {
        const bool too_many = requires { C::is_descriptor; } && given.number("events") > 1;
        return too_many ? "more descriptors than a process may have" : "";
    }

    static void run_floor(context& run) {
        go_round<std::atomic<std::uint8_t>>(run, [](auto& byte) { physical::two_exchanges(byte); });
    }

    template <class E>
    static void run_with(context& run) {
        go_round<E>(run, [](E& event) {
            event.set();
            event.wait();
        });
    }

    // Visits every event once in each round, because their number is a power of two and the step is odd. The step is
    // the golden section of their number, so that no two visits in a row are to the same cache line.
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

const registration<events> registered{lineup{}};

}  // namespace

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// The floors alone: what this machine needs for the operations that all others are made of.
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

namespace lab {
namespace {

struct floors {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "floors",
            .question = "What do the operations cost that make up every wake-up?",
            .method =
                "one thread pinned to a core, in batches; hand-offs between two threads, pinned. "
                "futex_wake_sleeper: how long the call takes when the sleeper's core is idle, or is the "
                "caller's own (one_core). wake_to_running: from the call until the sleeper runs on the "
                "caller's core, which the caller leaves at once; the sleeper ran there before, or on "
                "another core (migrated)",
            .columns = {{"time", "median", "time", "ns", false}, {"time", "p99", "p99", "ns", false}},
            .cases = {{{{"operation", "load"}}, tier::quick},
                      {{{"operation", "exchange"}}, tier::quick},
                      {{{"operation", "two_exchanges"}}, tier::quick},
                      {{{"operation", "fence_load"}}, tier::quick},
                      {{{"operation", "system_call"}}, tier::quick},
                      {{{"operation", "futex_wake_nobody"}}, tier::quick},
                      {{{"operation", "futex_wake_sleeper"}}, tier::quick},
                      {{{"operation", "futex_wake_sleeper_one_core"}}, tier::quick},
                      {{{"operation", "wake_to_running_one_core"}}, tier::quick},
                      {{{"operation", "wake_to_running_migrated"}}, tier::quick},
                      {{{"operation", "cache_line_round_trip"}}, tier::quick},
                      {{{"operation", "futex_hand_off_one_core"}}, tier::quick}},
            .floor = "the operation itself",
        };
        return about;
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if constexpr (!is_floor<C>) return "is not a floor";
        const std::string& operation = given.text("operation");
        const bool takes_two = operation == "cache_line_round_trip" || operation == "futex_wake_sleeper" ||
                               operation == "wake_to_running_migrated";
        if (takes_two && usable_cores().size() < 2) return "needs two cores";
        return {};
    }

    template <class C>
    static void check(context&) {}

    template <class C>
    static void run(context& run) {
        if constexpr (is_floor<C>) {
            if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
            const std::string& operation = run.given.text("operation");
            std::atomic<std::uint8_t> byte{0};
            futex_word word{0};
            if (operation == "load") {
                time_batches(run, "time", byte, [](auto& subject) { physical::load(subject); });
            } else if (operation == "exchange") {
                time_batches(run, "time", byte, [](auto& subject) { physical::exchange(subject); });
            } else if (operation == "two_exchanges") {
                time_batches(run, "time", byte, [](auto& subject) { physical::two_exchanges(subject); });
            } else if (operation == "fence_load") {
                time_batches(run, "time", byte, [](auto& subject) { physical::fence_and_load(subject); });
            } else if (operation == "system_call") {
                time_batches(run, "time", byte, [](auto&) { enter_kernel(); });
            } else if (operation == "futex_wake_nobody") {
                time_batches(run, "time", word, [](futex_word& subject) { keep(futex_wake(subject, 1)); });
            } else if (operation == "futex_wake_sleeper") {
                physical::wake_one_sleeper(run, "time");
            } else if (operation == "futex_wake_sleeper_one_core") {
                physical::wake_one_sleeper_here(run, "time");
            } else if (operation == "wake_to_running_one_core") {
                physical::wakes_to_running_here(run, "time", 0);
            } else if (operation == "wake_to_running_migrated") {
                physical::wakes_to_running_here(run, "time", 1);
            } else if (operation == "cache_line_round_trip") {
                physical::cache_line_round_trips(run, "time");
            } else {
                physical::hand_offs_on_one_core(run, "time");
            }
        }
    }
};

const registration<floors> registered{lineup{}};

}  // namespace

}  // namespace lab

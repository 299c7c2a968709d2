// SPDX-License-Identifier: Apache-2.0
// The benchmark of the economical event (docs/requirements.md#the-economical-event) and its relatives: what operations
// cost that meet no other thread.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

namespace lab {
namespace {

bool is_manual(const parameters& given) {
    const std::string& operation = given.text("operation");
    return operation == "manual_set_reset" || operation == "wait_on_set";
}

struct pairs : scenario_of<pairs, events_of_case<is_manual>> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "pairs",
            .question = "What do operations cost when there is nobody to wake and nothing to wait for?",
            .method = "one thread pinned to a core, in batches",
            .columns = {{"time", "median", "time", "ns", true},
                        {"time", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = {{{{"operation", "auto_set_wait"}}, tier::quick},
                      {{{"operation", "manual_set_reset"}}, tier::quick},
                      {{{"operation", "wait_on_set"}}, tier::standard},
                      {{{"operation", "try_wait_unset"}}, tier::quick},
                      {{{"operation", "wait_for_0_unset"}}, tier::standard}},
            .floor = "pairs: two exchanges of one byte; wait on set, try_wait and wait_for(0): a plain load",
        };
        return about;
    }

    template <class E>
    static std::string refuses_type(const parameters& given) {
        if (given.text("operation") == "manual_set_reset" && !resettable<E>) return "works once";
        if (given.text("operation") == "wait_for_0_unset" && !timed<E>) return "has no timed wait";
        return {};
    }

    static void run_floor(context& run) {
        pin(run);
        const std::string& operation = run.given.text("operation");
        std::atomic<std::uint8_t> byte{0};
        if (operation == "auto_set_wait" || operation == "manual_set_reset") {
            time_batches(run, "time", byte, [](auto& word) { physical::two_exchanges(word); });
        } else {
            time_batches(run, "time", byte, [](auto& word) { physical::load(word); });
        }
    }

    template <class E>
    static void run_with(context& run) {
        pin(run);
        if constexpr (consumable<E>)
            run_auto<E>(run, run.given.text("operation"));
        else
            run_manual<E>(run, run.given.text("operation"));
    }

    static void pin(context& run) {
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
    }

    template <class E>
    static void run_manual(context& run, const std::string& operation) {
        E event;
        if (operation == "wait_on_set") {
            event.set();
            time_batches(run, "time", event, [](E& subject) { subject.wait(); });
            run.require(event.is_set(), "a wait leaves a manual event set");
        } else if constexpr (resettable<E>) {
            time_batches(run, "time", event, [](E& subject) {
                subject.set();
                subject.reset();
            });
            run.require(!event.is_set(), "set and reset leave the event unset");
        }
    }

    template <class E>
    static void run_auto(context& run, const std::string& operation) {
        E event;
        if (operation == "auto_set_wait") {
            time_batches(run, "time", event, [](E& subject) {
                subject.set();
                subject.wait();
            });
        } else if (operation == "try_wait_unset") {
            time_batches(run, "time", event, [](E& subject) {
                if (subject.try_wait()) [[unlikely]]
                    stay_a_branch();
            });
        } else if constexpr (timed<E>) {
            time_batches(run, "time", event, [](E& subject) {
                if (subject.wait_for(std::chrono::nanoseconds(0))) [[unlikely]]
                    stay_a_branch();
            });
        }
        run.require(!event.try_wait(), "as many waits as sets leave the event unset");
    }
};

const registration<pairs> registered{lineup{}};

}  // namespace

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// The gate's first benchmark (docs/requirements.md#the-gate): threads poll an event that doesn't change.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "each_thread.hpp"
#include "physical.hpp"

namespace lab {
namespace {

struct polling : scenario_of<polling, manual_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "polling",
            .question = "What does it cost to check whether an event is set?",
            .method =
                "all threads poll the same unset manual event, which nobody changes; CPU time of the thread "
                "per poll, in batches; thread i pinned to core i if there are cores for all",
            .columns = {{"poll", "median", "a poll", "ns", true},
                        {"poll", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = {{{{"threads", "1"}}, tier::quick},
                      {{{"threads", "2"}}, tier::standard},
                      {{{"threads", "4"}}, tier::standard},
                      {{{"threads", "8"}}, tier::standard},
                      {{{"threads", "16"}}, tier::standard}},
            .floor = "a plain load and a test",
        };
        return about;
    }

    static void run_floor(context& run) {
        std::atomic<std::uint8_t> byte{0};
        poll(run, byte, [](auto& word) { physical::load(word); });
    }

    template <class E>
    static void run_with(context& run) {
        E event;
        poll(run, event, [](E& polled) {
            if (polled.is_set()) [[unlikely]]
                stay_a_branch();
        });
    }

    // Eight polls a turn, so that the loop around them costs little.
    template <class Subject, class Poll>
    static void poll(context& run, Subject& subject, Poll) {
        const auto eight = [](Subject& polled) {
            constexpr Poll look{};
            look(polled), look(polled), look(polled), look(polled);
            look(polled), look(polled), look(polled), look(polled);
        };
        time_each_thread<8>(run, "poll", run.given.number("threads"), subject, eight);
    }
};

const registration<polling> registered{lineup{}};

}  // namespace

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// The benchmark of the broadcast (docs/requirements.md#the-broadcast): many sleeping threads, and one set that wakes
// them all.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "crowd.hpp"
#include "physical.hpp"

namespace lab {
namespace {

struct broadcast : scenario_of<broadcast, manual_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "broadcast",
            .question = "How long is the waker held, and when is the last of many sleeping threads awake?",
            .method =
                "threads wait on one manual event until all of them sleep in the kernel; then another calls "
                "set(). held: until set() returns. last: until the last thread has read the clock. CPU: of "
                "all threads from set() until all sleep again at a futex gate that is the same for every "
                "contestant, per thread. Unpinned. The distribution `awake` is the curve of threads awake "
                "over time",
            .columns = {{"held", "median", "waker held", "ns", true},
                        {"last", "median", "last awake", "ns", true},
                        {"awake", "median", "half awake", "ns"},
                        {"cpu", "value", "CPU a thread", "ns", true},
                        {"switches", "value", "switches a thread", "count"},
                        {"syscalls", "value", "system calls a thread", "count"}},
            .cases = {{{{"threads", "10"}}, tier::standard},
                      {{{"threads", "100"}}, tier::standard},
                      {{{"threads", "1000"}}, tier::quick},
                      {{{"threads", "5000"}}, tier::standard}},
            .floor =
                "held: one FUTEX_WAKE of one sleeper; CPU: one hand-off (wake, switch, sleep) between two "
                "threads on a core",
        };
        return about;
    }

    template <class C>
    static std::string refuses_contestant(const parameters& given) {
        if constexpr (requires { C::max_threads; }) {
            if (given.number("threads") > C::max_threads) return "would take minutes with so many threads";
        }
        return {};
    }

    template <class E>
    struct event_to_set {
        void arm() { rearm(event); }
        void wait() { event.wait(); }
        void fire() {
            start = now();
            event.set();
            returned = now();
        }

        E event;
        std::int64_t start = 0, returned = 0;
    };

    template <class E>
    static void run_with(context& run) {
        event_to_set<E> subject;
        crowd(run, subject).wake_again_and_again();
    }

    static void run_floor(context& run) {
        physical::wake_one_sleeper(run, "held");
        physical::hand_offs_on_one_core(run, "hand_off");
        run.value("cpu", static_cast<double>(run.distribution("hand_off").quantile(0.5)) / 1e3);
    }
};

const registration<broadcast> registered{lineup{}};

}  // namespace

}  // namespace lab

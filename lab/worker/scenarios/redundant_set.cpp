// SPDX-License-Identifier: Apache-2.0
// Sets on an event that is already set: a producer that is faster than its consumer.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "each_thread.hpp"
#include "physical.hpp"

namespace lab {
namespace {

// Events of either kind, whether or not anybody can wait for them.
struct events_to_set {
    template <class C, class F>
    static void with(const parameters& given, F f) {
        if (names_manual_event(given)) {
            if constexpr (has_manual_event<C>) f(std::type_identity<typename C::manual_event>{});
        } else {
            if constexpr (has_auto_event<C>) f(std::type_identity<typename C::auto_event>{});
        }
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if (names_manual_event(given)) {
            if constexpr (!has_manual_event<C>) return std::string(C::info.no_manual_event);
        } else {
            if constexpr (!has_auto_event<C>)
                return std::string(C::info.no_auto_event);
            else if constexpr (requires { C::missing_here(); })
                return C::missing_here();
        }
        return {};
    }

    template <class E>
    static void check(context& run) {
        if constexpr (waitable<E>) events_of_case<names_manual_event>::check<E>(run);
    }
};

struct redundant_set : scenario_of<redundant_set, events_to_set> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "redundant_set",
            .question = "What does it cost to set an event that is already set?",
            .method =
                "all producers set the same event, which is already set, again and again; CPU time of the "
                "thread per set, in batches; thread i pinned to core i if there are cores for all",
            .columns = {{"set", "median", "a set", "ns", true}, {"set", "p99", "p99", "ns"}, syscalls_column},
            .cases = {{{{"event", "auto"}, {"producers", "1"}}, tier::quick},
                      {{{"event", "auto"}, {"producers", "4"}}, tier::standard},
                      {{{"event", "manual"}, {"producers", "1"}}, tier::standard},
                      {{{"event", "manual"}, {"producers", "4"}}, tier::standard}},
            .floor = "a full fence and a load: a set must publish what came before it",
        };
        return about;
    }

    template <class E>
    static std::string refuses_type(const parameters& given) {
        if (names_manual_event(given) && !resettable<E>) return "may be set once only";
        return counting<E> ? "counts: a set on a set one adds to it" : "";
    }

    static void run_floor(context& run) {
        std::atomic<std::uint8_t> byte{0};
        time_each_thread(run, "set", run.given.number("producers"), byte,
                         [](auto& word) { physical::fence_and_load(word); });
    }

    template <class E>
    static void run_with(context& run) {
        E event;
        event.set();
        time_each_thread(run, "set", run.given.number("producers"), event,
                         [](E& set_already) { set_already.set(); });
        if constexpr (has_is_set<E>)
            run.require(event.is_set(), "a set on a set event leaves it set");
        else if constexpr (consumable<E>)
            run.require(event.try_wait(), "a set on a set event leaves it set");
    }
};

const registration<redundant_set> registered{lineup{}};

}  // namespace

}  // namespace lab

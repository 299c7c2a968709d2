// Sets on an event that is set: the producer that is faster than its consumer.
#include LAB_LINEUP
#include "../checks.hpp"
#include "each_thread.hpp"
#include "physical.hpp"

namespace lab {
namespace {

struct redundant_set {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "redundant_set",
            .question = "What does it cost to set an event that is set already?",
            .method =
                "each producer sets the same set event again and again; CPU time of the thread per set, in "
                "batches; thread i pinned to core i as long as there are cores",
            .columns = {{"set", "median", "a set", "ns", true}, {"set", "p99", "p99", "ns"}, syscalls_column},
            .cases = {{{{"event", "auto"}, {"producers", "1"}}, tier::quick},
                      {{{"event", "auto"}, {"producers", "4"}}, tier::quick},
                      {{{"event", "manual"}, {"producers", "1"}}, tier::standard},
                      {{{"event", "manual"}, {"producers", "4"}}, tier::standard}},
            .floor = "a full fence and a load: a set must publish what came before it",
        };
        return about;
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if constexpr (is_floor<C>) {
            return {};
        } else if (given.text("event") == "auto") {
            if constexpr (!has_auto_event<C>)
                return std::string(C::info.no_auto_event);
            else if constexpr (counting<typename C::auto_event>)
                return "counts: a set on a set one adds to it";
            else if constexpr (requires { C::missing_here(); })
                return C::missing_here();
        } else {
            if constexpr (!has_manual_event<C>)
                return std::string(C::info.no_manual_event);
            else if constexpr (!resettable<typename C::manual_event>)
                return "may be set once only";
            else if constexpr (counting<typename C::manual_event>)
                return "counts: a set on a set one adds to it";
        }
        return {};
    }

    template <class C>
    static void check(context& run) {
        if (run.given.text("event") == "manual") {
            with_manual_event<C>([&]<class E>(std::type_identity<E>) { check_manual_event<E>(run); });
        } else {
            with_auto_event<C>([&]<class E>(std::type_identity<E>) { check_auto_event<E>(run); });
        }
    }

    template <class C>
    static void run(context& run) {
        if constexpr (is_floor<C>) {
            std::atomic<std::uint8_t> byte{0};
            time_each_thread(run, "set", run.given.number("producers"), byte,
                             [](auto& word) { physical::fence_and_load(word); });
        } else if (run.given.text("event") == "auto") {
            if constexpr (has_auto_event<C>) run_event<typename C::auto_event>(run);
        } else {
            if constexpr (has_manual_event<C>) run_event<typename C::manual_event>(run);
        }
    }

    template <class E>
    static void run_event(context& run) {
        E event;
        event.set();
        time_each_thread(run, "set", run.given.number("producers"), event,
                         [](E& set_already) { set_already.set(); });
        if constexpr (pollable<E>)
            run.require(event.is_set(), "a set on a set event leaves it set");
        else if constexpr (consumable<E>)
            run.require(event.try_wait(), "a set on a set event leaves it set");
    }
};

}  // namespace

void add_redundant_set(registry& all) { all.add<redundant_set>(lineup{}); }

}  // namespace lab

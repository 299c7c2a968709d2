// Document 000, first benchmark: threads poll an event that doesn't change.
#include LAB_LINEUP
#include "../checks.hpp"
#include "each_thread.hpp"
#include "physical.hpp"

namespace lab {
namespace {

struct polling {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "polling",
            .question = "What does it cost to look whether an event is set?",
            .method =
                "each thread polls one unset manual event that nobody changes; CPU time of the thread per "
                "poll, in batches; thread i pinned to core i as long as there are cores",
            .columns = {{"poll", "median", "a poll", "ns", true},
                        {"poll", "p99", "p99", "ns"},
                        syscalls_column},
            .cases = {{{{"threads", "1"}}, tier::quick},
                      {{{"threads", "2"}}, tier::standard},
                      {{{"threads", "4"}}, tier::standard},
                      {{{"threads", "8"}}, tier::standard},
                      {{{"threads", "16"}}, tier::quick}},
            .floor = "a plain load and a test",
        };
        return about;
    }

    template <class C>
    static std::string refuses(const parameters&) {
        if constexpr (is_floor<C>)
            return {};
        else
            return refuses_manual_event<C>();
    }

    template <class C>
    static void check(context& run) {
        with_manual_event<C>([&]<class E>(std::type_identity<E>) { check_manual_event<E>(run); });
    }

    template <class C>
    static void run(context& run) {
        if constexpr (is_floor<C>) {
            std::atomic<std::uint8_t> byte{0};
            poll(run, byte, [](auto& word) { physical::load(word); });
        } else {
            with_manual_event<C>([&]<class E>(std::type_identity<E>) {
                E event;
                poll(run, event, [](E& polled) {
                    if (polled.is_set()) [[unlikely]]
                        stay_a_branch();
                });
            });
        }
    }

    // Eight polls a turn, so that the loop around them counts for little.
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

}  // namespace

void add_polling(registry& all) { all.add<polling>(lineup{}); }

}  // namespace lab

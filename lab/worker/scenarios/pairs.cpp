// Document 003's benchmark and its relatives: what operations cost that meet nobody.
#include LAB_LINEUP
#include "../checks.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "physical.hpp"

namespace lab {
namespace {

struct pairs {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "pairs",
            .question = "What do operations cost that have nobody to wake and nothing to wait for?",
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

    static bool is_manual(const parameters& given) {
        const std::string& operation = given.text("operation");
        return operation == "manual_set_reset" || operation == "wait_on_set";
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if constexpr (is_floor<C>) {
            return {};
        } else if (is_manual(given)) {
            std::string why = refuses_manual_event<C>();
            with_manual_event<C>([&]<class E>(std::type_identity<E>) {
                if (given.text("operation") == "manual_set_reset" && !resettable<E>) why = "works once";
            });
            return why;
        } else {
            std::string why = refuses_auto_event<C>();
            with_auto_event<C>([&]<class E>(std::type_identity<E>) {
                if (given.text("operation") == "wait_for_0_unset" && !timed<E>) why = "has no timed wait";
            });
            return why;
        }
    }

    template <class C>
    static void check(context& run) {
        if (is_manual(run.given)) {
            with_manual_event<C>([&]<class E>(std::type_identity<E>) { check_manual_event<E>(run); });
        } else {
            with_auto_event<C>([&]<class E>(std::type_identity<E>) { check_auto_event<E>(run); });
        }
    }

    template <class C>
    static void run(context& run) {
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        const std::string& operation = run.given.text("operation");
        if constexpr (is_floor<C>) {
            run_floor(run, operation);
        } else if (is_manual(run.given)) {
            with_manual_event<C>([&]<class E>(std::type_identity<E>) { run_manual<E>(run, operation); });
        } else {
            with_auto_event<C>([&]<class E>(std::type_identity<E>) { run_auto<E>(run, operation); });
        }
    }

    static void run_floor(context& run, const std::string& operation) {
        std::atomic<std::uint8_t> byte{0};
        if (operation == "auto_set_wait" || operation == "manual_set_reset") {
            time_batches(run, "time", byte, [](auto& word) { physical::two_exchanges(word); });
        } else {
            time_batches(run, "time", byte, [](auto& word) { physical::load(word); });
        }
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

}  // namespace

void add_pairs(registry& all) { all.add<pairs>(lineup{}); }

}  // namespace lab

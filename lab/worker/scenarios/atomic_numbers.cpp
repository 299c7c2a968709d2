// SPDX-License-Identifier: Apache-2.0
// One change of a number that no other thread uses: Windows' Interlocked functions alongside the compiler's own.
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"

#include <atomic>
#include <string>

namespace lab {
namespace {

struct atomic_numbers_of_contestant {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_atomic_number<C>) f(std::type_identity<typename C::atomic_number>{});
    }

    template <class C>
    static std::string refuses(const parameters&) {
        return has_atomic_number<C> ? "" : "has no functions for numbers";
    }

    template <class Number>
    static void check(context& run) {
        Number number;
        run.require(number.increment() == 1 && number.increment() == 2, "increments return the new value");
        run.require(number.exchange(7) == 2, "an exchange returns the old value");
        run.require(number.compare_exchange(9, 8) == 7 && number.compare_exchange(9, 7) == 7 &&
                        number.exchange(0) == 9,
                    "a compare-and-exchange replaces the expected value only");
    }
};

struct atomic_numbers : scenario_of<atomic_numbers, atomic_numbers_of_contestant> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "atomic_numbers",
            .question = "What does one atomic change of a number cost?",
            .method =
                "one thread pinned to a core, in batches, with a number of 32 bits. The compare-and-exchange "
                "replaces a 0 by a 0",
            .columns = {{"time", "median", "time", "ns"}, {"time", "p99", "p99", "ns"}},
            .cases = {{{{"operation", "increment"}}, tier::quick},
                      {{{"operation", "exchange"}}, tier::standard},
                      {{{"operation", "compare_exchange"}}, tier::standard}},
            .floor = "the same operation of std::atomic",
        };
        return about;
    }

    struct standard {
        int increment() noexcept { return ++number_; }
        int exchange(int value) noexcept { return number_.exchange(value); }
        int compare_exchange(int value, int expected) noexcept {
            number_.compare_exchange_strong(expected, value);
            return expected;
        }

    private:
        std::atomic<int> number_{0};
    };

    static void run_floor(context& run) { run_with<standard>(run); }

    template <class Number>
    static void run_with(context& run) {
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        const std::string& operation = run.given.text("operation");
        Number number;
        if (operation == "increment") {
            time_batches(run, "time", number, [](Number& subject) { keep(subject.increment()); });
        } else if (operation == "exchange") {
            time_batches(run, "time", number, [](Number& subject) { keep(subject.exchange(1)); });
        } else {
            time_batches(run, "time", number, [](Number& subject) { keep(subject.compare_exchange(0, 0)); });
        }
    }
};

const registration<atomic_numbers> registered{lineup{}};

}  // namespace

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// Locks of 1 to 8 bytes made of address waits (docs/requirements.md#waits-on-addresses), alongside the system's own.
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/work.hpp"
#include "physical.hpp"
#include "width.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

namespace lab {
namespace {

constexpr std::uint64_t work_inside = 30, work_outside = 100;  // units of one to two nanoseconds

// How much work a thread does with the lock: the usual 30 units, or as long as the case says.
std::uint64_t units_inside(const parameters& given) {
    for (const auto& [name, value] : given.all()) {
        if (name == "hold_us") return work_units(static_cast<std::int64_t>(std::stod(value) * 1'000));
    }
    return work_inside;
}

// Locks in a word or in a bit, as the case asks for; a contestant's lock of its own size counts as one in a word.
struct locks_of_case {
    template <class C, class F>
    static bool offer(const parameters& given, F f) {
        return with_width(given, [&]<class Word>(std::type_identity<Word>) {
            if (given.text("lock") == "bit") return offer_bit_lock<C, Word>(f);
            return offer_word_lock<C, Word>(f) || offer_own_lock<C>(f);
        });
    }

    template <class C, class F>
    static void with(const parameters& given, F f) {
        offer<C>(given, f);
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if (offer<C>(given, [](auto) {})) return {};
        return has_own_lock<C> ? "has no lock in a bit" : std::string(C::info.no_lock);
    }

    template <class Lock>
    static void check(context& run) {
        check_lock<Lock>(run);
    }
};

struct locks : scenario_of<locks, locks_of_case> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "locks",
            .question = "What does a lock cost that is made of an address wait?",
            .method =
                "each thread takes the lock, works for 30 units (30 to 50 ns), releases it and works for "
                "100 outside, until the time is up; with hold_us it works for so many microseconds inside. "
                "Wall time and CPU of all threads per use; the share of "
                "the thread that got least (1 is fair). Unpinned. Locks with a size of their own run "
                "alongside "
                "the word locks of every size",
            .columns = {{"use", "value", "time a use", "ns", true},
                        cpu_column,
                        {"least_share", "value", "least share", "count"},
                        switches_column,
                        syscalls_column},
            .cases = cases(),
            .floor = "the same work with two exchanges of a word that only the thread itself uses",
        };
        return about;
    }

    static std::vector<scenario_case> cases() {
        std::vector<scenario_case> all;
        for (const char* kind : {"word", "bit"}) {
            for (const std::uint64_t bytes : {1u, 2u, 4u, 8u}) {
                for (const std::uint64_t threads : {1u, 2u, 4u, 8u}) {
                    parameters given;
                    given.add("lock", kind);
                    given.add("bytes", bytes);
                    given.add("threads", threads);
                    const bool common = kind == std::string_view("word") ? bytes == 4 : bytes == 1;
                    const bool wanted = bytes == 4 || bytes == 1;
                    all.push_back({given, common && threads == 4 ? tier::quick
                                          : wanted               ? tier::standard
                                                                 : tier::full});
                }
            }
        }
        for (const char* hold : {"0.1", "1", "10", "100"}) {
            for (const std::uint64_t threads : {2u, 4u, 8u, 16u, 64u}) {
                const bool common = threads == 16 && hold == std::string_view("10");
                const bool wanted = threads == 2 || threads == 16 || threads == 64;
                all.push_back({{{"lock", "word"},
                                {"bytes", "4"},
                                {"threads", std::to_string(threads)},
                                {"hold_us", hold}},
                               common   ? tier::quick
                               : wanted ? tier::standard
                                        : tier::full});
            }
        }
        return all;
    }

    // The floor's: no thread shares it with another.
    struct alignas(128) private_word {
        std::atomic<std::uint8_t> word{0};
    };

    static void run_floor(context& run) {
        std::vector<private_word> words(run.given.number("threads"));
        use_in_threads(
            run, [&](std::size_t thread) { keep(words[thread].word.exchange(1, std::memory_order_relaxed)); },
            [&](std::size_t thread) { keep(words[thread].word.exchange(0, std::memory_order_relaxed)); });
    }

    template <class Lock>
    static void run_with(context& run) {
        struct alignas(128) shared {
            Lock lock;
            alignas(128) std::uint64_t inside = 0;
        };
        const auto data = std::make_unique<shared>();
        const std::uint64_t uses = use_in_threads(
            run,
            [&](std::size_t) {
                data->lock.lock();
                ++data->inside;
            },
            [&](std::size_t) { data->lock.unlock(); });
        run.require(data->inside == uses, "one thread at a time holds the lock");
    }

    template <class Enter, class Leave>
    static std::uint64_t use_in_threads(context& run, Enter enter, Leave leave) {
        const std::uint64_t wanted = run.given.number("threads");
        const std::uint64_t inside = units_inside(run.given);
        std::atomic<bool> over{false};
        std::vector<std::uint64_t> uses(wanted);
        thread_group threads(wanted, [&](std::size_t i) {
            std::uint64_t own = 0;
            do {  // at least one use, however late this thread starts
                enter(i);
                work(inside);
                leave(i);
                work(work_outside);
                ++own;
            } while (!over.load(std::memory_order_relaxed));
            uses[i] = own;
        });
        if (!threads.shortage().empty()) run.note(threads.shortage());
        timed_section section(run);
        const std::int64_t start = now();
        threads.go();
        sleep_until(start + run.budget_ns());
        over = true;
        threads.join();
        const std::int64_t took = now() - start;
        const std::uint64_t total = std::accumulate(uses.begin(), uses.end(), std::uint64_t{0});
        section.stop(total, 0, 1 + wanted);  // one sleep; about as many as threads to open the gate and join
        run.value("use", static_cast<double>(took) / static_cast<double>(total));
        run.value("least_share", static_cast<double>(*std::ranges::min_element(uses)) *
                                     static_cast<double>(threads.size()) / static_cast<double>(total));
        return total;
    }
};

const registration<locks> registered{lineup{}};

}  // namespace

}  // namespace lab

// What the table of waiters does in one place when several threads come there at once, without a system call between:
// coroutines park, and sets take them out again and go on with them.
#include LAB_LINEUP
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/threads.hpp"
#include "physical.hpp"

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace lab {
namespace {

// Runs until it waits, and ends by itself.
struct on_its_own {
    struct promise_type {
        on_its_own get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
    };
};

struct lot {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "lot",
            .question = "What does parking and releasing cost while other threads do it, too?",
            .method =
                "each thread, pinned to a core of its own, sets an auto event on which as many coroutines "
                "wait as "
                "threads set it; the set takes the first out of the queue and goes on with it, and it waits "
                "again: two turns at the lock of a bucket and no system call. Time of a set and a wait, by "
                "the wall clock: the mean of a thread. own: each thread has an event with one coroutine; "
                "shared: all "
                "have one event",
            .columns = {{"turn", "value", "release and park", "ns"},
                        {"time", "median", "by batch", "ns"},
                        {"time", "p99", "p99", "ns"},
                        {"cpu", "value", "CPU", "ns"},
                        switches_column,
                        syscalls_column},
            .cases = cases(),
            .floor = "four exchanges: two locks taken and freed; on one byte, or on one for each thread",
        };
        return about;
    }

    static std::vector<scenario_case> cases() {
        std::vector<scenario_case> all;
        for (const char* event : {"own", "shared"}) {
            for (const std::uint64_t threads : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 96u, 128u, 256u}) {
                parameters given{{"event", event}};
                given.add("threads", threads);
                all.push_back({given, threads <= 2 ? tier::quick : tier::standard});
            }
        }
        return all;
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if (given.number("threads") > usable_cores().size()) return "needs a core for each thread";
        if constexpr (!is_floor<C> && !has_coroutine_event<C>)
            return "has no coroutines that wait";
        else
            return {};
    }

    template <class C>
    static void check(context& run) {
        if constexpr (has_coroutine_event<C>) {
            place<typename C::coroutine_event> one;
            wait_on(one);
            one.event.set();
            one.over = true;
            run.require(one.left.load() == 0, "it waits again");
            one.event.set();
            run.require(one.left.load() == 1 && one.released == 2, "each set resumes it");
        }
    }

    template <class C>
    static void run(context& run) {
        if constexpr (is_floor<C>) {
            std::vector<byte_place> places(places_of(run.given));
            time_all(run, places, [](byte_place& one) {
                physical::two_exchanges(one.byte);
                physical::two_exchanges(one.byte);
            });
        } else if constexpr (has_coroutine_event<C>) {
            run_coroutines<typename C::coroutine_event>(run);
        }
    }

    struct alignas(128) byte_place {
        std::atomic<std::uint8_t> byte{0};
    };

    template <class E>
    struct alignas(128) place {
        E event;
        std::atomic<bool> over{false};
        // Of coroutines that have ended.
        std::atomic<std::uint64_t> released{0}, left{0};
    };

    static std::size_t places_of(const parameters& given) {
        return given.text("event") == "own" ? given.number("threads") : 1;
    }

    template <class E>
    static on_its_own wait_on(place<E>& at) {
        std::uint64_t released = 0;  // counted here, so that the count is no line that threads share
        while (!at.over.load(std::memory_order_relaxed)) {
            co_await at.event.coming();
            ++released;
        }
        at.released.fetch_add(released);
        at.left.fetch_add(1);
    }

    template <class E>
    static void run_coroutines(context& run) {
        const std::uint64_t threads = run.given.number("threads");
        std::vector<place<E>> places(places_of(run.given));
        const std::uint64_t at_each = threads / places.size();
        for (place<E>& each : places) {
            for (std::uint64_t i = 0; i != at_each; ++i) wait_on(each);
        }
        const std::uint64_t sets = time_all(run, places, [](place<E>& one) { one.event.set(); });
        std::uint64_t released = 0;
        for (place<E>& each : places) {
            each.over = true;
            // A set each, and one more where an earlier one had found nobody and been kept.
            for (std::uint64_t i = 0; i <= at_each; ++i) each.event.set();
            run.require(each.left.load() == at_each, "every coroutine ends");
            released += each.released.load();
        }
        // The last of each is the one that ended it. Alone, every set finds its coroutine waiting; of several that set
        // one event, one may find all on their way back.
        const std::uint64_t timed = released - threads;
        run.require(at_each == 1 ? timed == sets : timed <= sets && timed > 0, "a set resumes one coroutine");
    }

    // How often it was done altogether.
    template <class Place, class Operation>
    static std::uint64_t time_all(context& run, std::vector<Place>& places, Operation operation) {
        const std::uint64_t wanted = run.given.number("threads");
        std::vector<histogram> times(wanted);
        std::vector<std::uint64_t> done(wanted);
        std::vector<double> took(
            wanted);  // by an operation, on average: the lock favours who has just had it
        std::atomic<bool> pinned{true};
        thread_group threads(wanted, [&](std::size_t i) {
            if (!pin_to_nth(i)) pinned = false;
            Place& own = places[i % places.size()];
            const batch found = find_batch(own, operation, run.budget_ns() / 10);
            done[i] = found.executed;
            const std::int64_t begin = now();
            std::int64_t start = begin;
            do {
                repeat(found.size, own, operation);
                const std::int64_t stop = now();
                times[i].record_batch(stop - start, found.size);
                start = stop;
                done[i] += found.size;
            } while (start - begin < run.budget_ns());
            took[i] = static_cast<double>(start - begin) / static_cast<double>(done[i] - found.executed);
        });
        if (!threads.shortage().empty()) run.note(threads.shortage());
        timed_section section(run);
        threads.go();
        threads.join();
        if (!pinned) run.note("not permitted to pin threads to cores");
        std::uint64_t sum = 0;
        double each_ns = 0;  // operations that one thread does in a nanosecond, summed up
        for (std::size_t i = 0; i != wanted; ++i) {
            run.distribution("time").merge(times[i]);
            sum += done[i];
            each_ns += 1 / took[i];
        }
        run.value("turn", static_cast<double>(wanted) / each_ns);
        section.stop(sum, 0, threads.size());
        return sum;
    }
};

}  // namespace

void add_lot(registry& all) { all.add<lot>(lineup{}); }

}  // namespace lab

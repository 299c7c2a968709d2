// SPDX-License-Identifier: Apache-2.0
// What the lot does when several threads use it at once, with no system call in between: coroutines park, and sets
// take them out again and resume them.
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/on_its_own.hpp"
#include "../measure/threads.hpp"
#include "physical.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace lab {
namespace {

template <class E>
struct alignas(128) awaited_event {
    E event;
    std::atomic<bool> over{false};
    // Of coroutines that have ended: how often they were released, and how many they are.
    std::atomic<std::uint64_t> released{0}, left{0};
};

template <class E>
on_its_own await_again_and_again(awaited_event<E>& at) {
    std::uint64_t released = 0;  // counted here, so that threads share no cache line for it
    while (!at.over.load(std::memory_order_relaxed)) {
        co_await at.event.coming();
        ++released;
    }
    at.released.fetch_add(released);
    at.left.fetch_add(1);
}

struct alignas(128) padded_byte {
    std::atomic<std::uint8_t> byte{0};
};

struct coroutine_events {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_coroutine_event<C>) f(std::type_identity<typename C::coroutine_event>{});
    }

    template <class C>
    static std::string refuses(const parameters&) {
        return has_coroutine_event<C> ? "" : "has no coroutines that wait";
    }

    template <class E>
    static void check(context& run) {
        awaited_event<E> one;
        await_again_and_again(one);
        one.event.set();
        one.over = true;
        run.require(one.left.load() == 0, "a coroutine waits again");
        one.event.set();
        run.require(one.left.load() == 1 && one.released == 2, "each set resumes the coroutine");
    }
};

struct lot : scenario_of<lot, coroutine_events> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "lot",
            .question = "What do parking and releasing cost while other threads do the same?",
            .method =
                "each thread, pinned to a core of its own, sets an auto event on which as many coroutines "
                "wait as threads set it. The set takes the first out of the queue and resumes it, and it "
                "waits again: a bucket is locked twice, and no system call is made. Wall time of a set and "
                "a wait, the mean of a thread. own: each thread has an event with one coroutine; shared: "
                "all threads share one event",
            .columns = {{"use", "value", "release and park", "ns"},
                        {"time", "median", "by batch", "ns"},
                        {"time", "p99", "p99", "ns"},
                        {"cpu", "value", "CPU", "ns"},
                        switches_column,
                        syscalls_column},
            .cases = cases(),
            .floor =
                "four exchanges, as if two locks were taken and released: on one shared byte, or on a byte "
                "for each thread",
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
    static std::string refuses_contestant(const parameters& given) {
        return given.number("threads") > usable_cores().size() ? "needs a core for each thread" : "";
    }

    static void run_floor(context& run) {
        std::vector<padded_byte> bytes(events_of(run.given));
        time_all(run, bytes, [](padded_byte& one) {
            physical::two_exchanges(one.byte);
            physical::two_exchanges(one.byte);
        });
    }

    template <class E>
    static void run_with(context& run) {
        const std::uint64_t threads = run.given.number("threads");
        std::vector<awaited_event<E>> events(events_of(run.given));
        const std::uint64_t at_each = threads / events.size();
        for (awaited_event<E>& each : events) {
            for (std::uint64_t i = 0; i != at_each; ++i) await_again_and_again(each);
        }
        const std::uint64_t sets = time_all(run, events, [](awaited_event<E>& one) { one.event.set(); });
        std::uint64_t released = 0;
        for (awaited_event<E>& each : events) {
            each.over = true;
            // A set for each coroutine, and one more in case an earlier set found no waiter and the event is set.
            for (std::uint64_t i = 0; i <= at_each; ++i) each.event.set();
            run.require(each.left.load() == at_each, "every coroutine ends");
            released += each.released.load();
        }
        // The last release of each coroutine is the one that ended it. A thread with an event of its own always finds
        // its coroutine waiting; if several threads set one event, a set may find every coroutine on its way back.
        const std::uint64_t timed = released - threads;
        run.require(at_each == 1 ? timed == sets : timed <= sets && timed > 0, "a set resumes one coroutine");
    }

    // How many events there are.
    static std::size_t events_of(const parameters& given) {
        return given.text("event") == "own" ? given.number("threads") : 1;
    }

    // Returns how many operations all threads have done.
    template <class Subject, class Operation>
    static std::uint64_t time_all(context& run, std::vector<Subject>& subjects, Operation operation) {
        const std::uint64_t wanted = run.given.number("threads");
        std::vector<histogram> times(wanted);
        std::vector<std::uint64_t> done(wanted);
        // What an operation takes in each thread, on average: a lock favours the thread that has just had it.
        std::vector<double> took(wanted);
        std::atomic<bool> pinned{true};
        thread_group threads(wanted, [&](std::size_t i) {
            if (!pin_to_nth(i)) pinned = false;
            Subject& own = subjects[i % subjects.size()];
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
        double each_ns = 0;  // operations per nanosecond, the sum over all threads
        for (std::size_t i = 0; i != wanted; ++i) {
            run.distribution("time").merge(times[i]);
            sum += done[i];
            each_ns += 1 / took[i];
        }
        run.value("use", static_cast<double>(wanted) / each_ns);
        section.stop(sum, 0, threads.size());
        return sum;
    }
};

const registration<lot> registered{lineup{}};

}  // namespace

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// How much memory an event and a waiter take.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/machine.hpp"

#include <memory>
#include <vector>

namespace lab {
namespace {

struct memory : scenario_of<memory, events_of_case<names_manual_event>> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "memory",
            .question = "How much memory do an event and a waiting thread take?",
            .method =
                "an array of events, each set once: their size, heap beyond that size, descriptors, and how "
                "much more RAM the process has than before. Then 64 threads sleep on one of them: heap per "
                "waiter. Not timed",
            .columns = {{"size", "value", "size", "bytes", true},
                        {"heap", "value", "heap an event", "bytes"},
                        {"kernel_objects", "value", "kernel objects an event", "count"},
                        {"resident", "value", "RAM an event", "bytes"},
                        {"waiter_heap", "value", "heap a waiter", "bytes"}},
            .cases = {{{{"event", "auto"}, {"events", "1000"}}, tier::quick},
                      {{{"event", "manual"}, {"events", "1000"}}, tier::standard},
                      {{{"event", "auto"}, {"events", "1000000"}}, tier::full},
                      {{{"event", "manual"}, {"events", "1000000"}}, tier::full}},
            .floor = "one byte",
        };
        return about;
    }

    template <class C>
    static std::string refuses_contestant(const parameters& given) {
        const bool too_many = requires { C::is_descriptor; } && given.number("events") > 1'000;
        return too_many ? "more descriptors than a process may have" : "";
    }

    static void run_floor(context& run) {
        run.value("size", 1);
        run.value("heap", 0);
        run.value("kernel_objects", 0);
        run.value("resident", 1);
        run.value("waiter_heap", 0);
    }

    template <class E>
    static void run_with(context& run) {
        allow_descriptors();  // a thousand events may be two thousand
        const std::size_t count = run.given.number("events");
        const auto an_event = [&](double all) { return all / static_cast<double>(count); };
        const auto before_descriptors = open_descriptors();
        const auto before_array = heap_in_use();
        // Neither the array itself, which is one allocation, nor what rounding adds to it is counted.
        auto plain_array = std::make_unique<std::byte[]>(count * sizeof(E) + alignof(E));
        const double array = heap_in_use() - before_array;
        plain_array.reset();
        const double before = heap_in_use();
        const std::uint64_t before_resident = resident_bytes();
        auto events = std::make_unique<E[]>(count);
        for (std::size_t i = 0; i < count; ++i) events[i].set();
        const double heap = heap_in_use() - before - array;
        run.value("size", sizeof(E));
        run.value("heap", heap > 64 ? an_event(heap) : 0);
        run.value("kernel_objects", an_event(static_cast<double>(open_descriptors() - before_descriptors)));
        run.value("resident", an_event(static_cast<double>(resident_bytes() - before_resident)));
        for (std::size_t i = 0; i < count; ++i) take_back(events[i]);
        weigh_waiters(run, events[0]);
    }

    template <class E>
    static void take_back(E& event) {
        if constexpr (consumable<E>)
            event.wait();
        else
            rearm(event);
    }

    template <class E>
    static void weigh_waiters(context& run, E& event) {
        constexpr std::size_t waiters = 64;
        std::atomic<std::size_t> left{0};
        thread_group threads(waiters, [&](std::size_t) {
            event.wait();
            left.fetch_add(1);
        });
        const double before = heap_in_use();
        threads.go();
        run.require(wait_until_asleep(threads.ids()), "the waiters sleep");
        run.value("waiter_heap", (heap_in_use() - before) / static_cast<double>(threads.size()));
        if (run.given.text("event") == "manual") {
            event.set();
        } else if constexpr (counting<E>) {
            for (std::size_t i = 0; i < threads.size(); ++i) event.set();
        } else {
            // A set is absorbed if nobody has consumed the one before.
            while (left.load() != threads.size()) {
                event.set();
                sleep_until(now() + 50'000);
            }
        }
        threads.join();
    }
};

const registration<memory> registered{lineup{}};

}  // namespace

}  // namespace lab

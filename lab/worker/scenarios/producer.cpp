// SPDX-License-Identifier: Apache-2.0
// How the economical event is used (docs/requirements.md#the-economical-event): producers hand items to one consumer,
// slowly, about as fast as it can consume them, and as fast as they can. The same settings must serve all three.
#include "../kinds.hpp"
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/work.hpp"

#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace lab {
namespace {

constexpr std::int64_t paced_interval = 100'000;
constexpr std::int64_t consumer_work = 700;
constexpr std::int64_t producer_work_least = 500, producer_work_spread = 1'000;

// What each side does for an item, in units of work.
struct workload {
    bool paced = false;
    std::uint64_t consume = 0, produce_least = 0, produce_spread = 1;

    static workload of(const parameters& given) {
        if (given.text("pace") == "paced") return {.paced = true};
        if (given.text("pace") == "full") return {};
        return {.consume = work_units(consumer_work),
                .produce_least = work_units(producer_work_least),
                .produce_spread = work_units(producer_work_spread)};
    }
};

// A ring that one thread fills and another empties; each counts its items.
struct items {
    static constexpr std::uint64_t capacity = 4096;
    std::array<std::int64_t, capacity> content{};
    alignas(128) std::atomic<std::uint64_t> produced{0};
    alignas(128) std::atomic<std::uint64_t> consumed{0};
};

// An item is handed over through a ring and an auto event, or as a job posted to a handler thread.
struct events_or_handlers {
    template <class C, class F>
    static void with(const parameters& given, F f) {
        if constexpr (has_handler<C>)
            f(std::type_identity<typename C::handler>{});
        else
            auto_events::with<C>(given, f);
    }

    template <class C>
    static std::string refuses(const parameters& given) {
        if constexpr (has_handler<C>)
            return {};
        else if constexpr (requires { C::auto_event::once_only; })
            return "may not be set twice in a row";
        else
            return auto_events::refuses<C>(given);
    }

    template <class P>
    static void check(context& run) {
        if constexpr (consumable<P>) check_auto_event<P>(run);
    }
};

struct producer : scenario_of<producer, events_or_handlers> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "producer",
            .question = "What does it cost to hand an item from one thread to another?",
            .method =
                "each producer fills a ring of its own, and all set one auto event; the consumer empties "
                "the rings, then waits. paced: each producer makes an item every 100 us. balanced: 0.5 to "
                "1.5 us of work to make one, 0.7 us to consume it. full: no work at all. A core each if "
                "there are cores for all, else unpinned. CPU of all threads per item, including work and "
                "timers; wake-ups: how often a wait returned; latency from just before set() (paced)",
            .columns = {cpu_column,
                        {"latency", "median", "latency", "ns"},
                        {"latency", "p99", "p99", "ns"},
                        {"wall", "value", "time an item", "ns"},
                        {"wakeups", "value", "wake-ups", "count"},
                        switches_column,
                        syscalls_column},
            .cases = cases(),
            .floor = "the timer or the work alone, in one thread",
        };
        return about;
    }

    static std::vector<scenario_case> cases() {
        std::vector<scenario_case> all;
        for (const char* pace : {"paced", "balanced", "full"}) {
            const bool full = pace == std::string_view("full");
            for (const std::uint64_t producers : {1u, 2u, 3u, 4u}) {
                parameters given{{"pace", pace}};
                given.add("producers", producers);
                const bool common = full ? producers == 4 : producers == 1;
                const bool standard =
                    producers == 4 || (producers == 2 && pace == std::string_view("balanced"));
                all.push_back({given, common ? tier::quick : standard ? tier::standard : tier::full});
            }
        }
        return all;
    }

    template <class C>
    static std::string refuses_contestant(const parameters&) {
        return usable_cores().size() < 2 ? "needs two cores" : "";
    }

    template <class P>
    static void run_with(context& run) {
        if constexpr (consumable<P>)
            run_event<P>(run);
        else
            run_handler<P>(run);
    }

    // Makes items until the budget is spent; `publish(i)` hands over the i-th. Returns how many there were.
    template <class Publish>
    static std::uint64_t produce(const context& run, const workload& load, std::size_t index,
                                 Publish publish) {
        dice varied(run.seed + index);
        const auto producers = static_cast<std::int64_t>(run.given.number("producers"));
        const std::int64_t start = now() + static_cast<std::int64_t>(index) * paced_interval / producers;
        const std::int64_t end = start + run.budget_ns();
        std::uint64_t i = 0;
        for (;; ++i) {
            if (load.paced) {
                const std::int64_t due = start + static_cast<std::int64_t>(i) * paced_interval;
                if (i != 0 && due >= end) break;
                sleep_until(due);
            } else {
                if (i % 64 == 0 && i != 0 && now() >= end) break;
                if (load.produce_least != 0) work(load.produce_least + varied.below(load.produce_spread));
            }
            publish(i);
        }
        return i;
    }

    // What the consumer does with an item, and what it has seen of each producer.
    class consumer {
    public:
        consumer(context& run, const workload& load)
            : load_(load), latency_(run.distribution("latency")), next_(run.given.number("producers")) {}

        void consume(std::size_t from, std::int64_t item) {
            if (load_.paced) {
                latency_.record_nanoseconds(now() - item);
            } else {
                if (item != next_[from]) in_order_ = false;
                work(load_.consume);
            }
            ++next_[from];
        }
        std::uint64_t count() const {
            return static_cast<std::uint64_t>(std::reduce(next_.begin(), next_.end()));
        }
        bool in_order() const noexcept { return in_order_; }

    private:
        const workload& load_;
        histogram& latency_;
        std::vector<std::int64_t> next_;
        bool in_order_ = true;
    };

    // Runs the producers to their end. `publish(index, i, item)` hands over an item and returns how many system calls
    // the harness made for it; `finish` returns when all items are consumed.
    template <class Publish, class Finish>
    static void run_producers(context& run, const workload& load, consumer& sink, Publish publish,
                              Finish finish) {
        const std::size_t wanted = run.given.number("producers");
        std::atomic<std::uint64_t> made{0}, harness_calls{0};
        thread_group producers(wanted, [&](std::size_t index) {
            if (wanted < usable_cores().size()) pin_to_nth(index + 1);
            exact_timers();
            std::uint64_t calls = 0;
            const std::uint64_t own = produce(run, load, index, [&](std::uint64_t i) {
                calls += publish(index, i, load.paced ? now() : static_cast<std::int64_t>(i));
            });
            made.fetch_add(own);
            harness_calls.fetch_add(calls + (load.paced ? own : 0));
        });
        timed_section section(run);
        const std::int64_t start = now();
        producers.go();
        producers.join();
        finish();
        run.value("wall", static_cast<double>(now() - start) / static_cast<double>(made.load()));
        section.stop(made.load(), 0, harness_calls.load() + wanted + 1);
        run.require(sink.count() == made.load() && sink.in_order(), "every item arrives once, in order");
    }

    static void pin_consumer(context& run) {
        if (run.given.number("producers") >= usable_cores().size()) return;
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
    }

    template <class E>
    static void run_event(context& run) {
        const workload load = workload::of(run.given);
        const std::size_t producers = run.given.number("producers");
        auto rings = std::make_unique<items[]>(producers);
        consumer sink(run, load);
        E event;
        std::atomic<bool> over{false};
        std::uint64_t wakeups = 0;
        thread_group emptier(1, [&](std::size_t) {
            pin_consumer(run);
            for (bool last = false; !last; ++wakeups) {
                event.wait();
                last = over.load(std::memory_order_acquire);
                while (empty_once({rings.get(), producers}, sink)) {
                }
            }
        });
        emptier.go();
        run_producers(
            run, load, sink,
            [&](std::size_t index, std::uint64_t i, std::int64_t item) {
                items& ring = rings[index];
                std::uint64_t calls = 0;
                while (i - ring.consumed.load(std::memory_order_acquire) >= items::capacity) {
                    sleep_until(now() + 50'000);
                    ++calls;
                }
                ring.content[i % items::capacity] = item;
                ring.produced.store(i + 1, std::memory_order_release);
                event.set();
                return calls;
            },
            [&] {
                over = true;
                event.set();
                emptier.join();
            });
        run.value("wakeups", static_cast<double>(wakeups) / static_cast<double>(sink.count()));
    }

    // Takes what each ring holds. Returns whether there was anything.
    static bool empty_once(std::span<items> rings, consumer& sink) {
        bool any = false;
        for (std::size_t index = 0; index < rings.size(); ++index) {
            items& ring = rings[index];
            std::uint64_t next = ring.consumed.load(std::memory_order_relaxed);
            const std::uint64_t end = ring.produced.load(std::memory_order_acquire);
            any |= next != end;
            while (next != end) {
                sink.consume(index, ring.content[next % items::capacity]);
                ring.consumed.store(++next, std::memory_order_release);
            }
        }
        return any;
    }

    template <class Handler>
    static void run_handler(context& run) {
        const workload load = workload::of(run.given);
        consumer sink(run, load);
        Handler handler(items::capacity);
        handler.post([&run] { pin_consumer(run); });
        run_producers(
            run, load, sink,
            [&](std::size_t index, std::uint64_t, std::int64_t item) {
                handler.post([&sink, index, item] { sink.consume(index, item); });
                return std::uint64_t{0};
            },
            [&] { handler.join(); });
    }

    static void run_floor(context& run) {
        const workload load = workload::of(run.given);
        pin_to_nth(0);
        exact_timers();
        timed_section section(run);
        const std::int64_t start = now();
        const std::uint64_t made = produce(run, load, 0, [&](std::uint64_t) { work(load.consume); });
        run.value("wall", static_cast<double>(now() - start) / static_cast<double>(made));
        section.stop(made, 0, load.paced ? made : 0);
    }
};

const registration<producer> registered{lineup{}};

}  // namespace

}  // namespace lab

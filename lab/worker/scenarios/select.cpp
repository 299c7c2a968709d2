// SPDX-License-Identifier: Apache-2.0
// One thread receives from whichever of several channels has an item.
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/threads.hpp"
#include "../measure/work.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace lab {
namespace {

constexpr std::size_t capacity = 128;  // of each channel

struct channel_groups {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_channel_group<C>) f(std::type_identity<typename C::channel_group>{});
    }

    template <class C>
    static std::string refuses(const parameters&) {
        return has_channel_group<C> ? "" : "receives from no group of channels";
    }

    template <class Group>
    static void check(context& run) {
        Group group(2);
        for (std::size_t i = 0; i != 2 * channels_in_group; ++i) group.send(i % channels_in_group, i);
        std::array<std::size_t, channels_in_group> received{};
        bool in_order = true;
        for (std::size_t i = 0; i != 2 * channels_in_group; ++i) {
            const std::uint64_t item = group.receive_any();
            in_order &= item / channels_in_group == received.at(item % channels_in_group)++;
        }
        run.require(in_order,
                    "each item is received once, and items of one channel in the order of their sends");
    }
};

// To which channel each item goes.
class order {
public:
    explicit order(const context& run) {
        dice random(run.seed);
        const bool in_turn = run.given.text("order") == "turn";
        for (std::size_t i = 0; i != channels_.size(); ++i)
            channels_[i] =
                static_cast<std::uint8_t>(in_turn ? i % channels_in_group : random.below(channels_in_group));
    }
    std::size_t operator[](std::uint64_t item) const noexcept { return channels_[item % channels_.size()]; }

private:
    std::array<std::uint8_t, 1024> channels_;
};

struct select : scenario_of<select, channel_groups> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "select",
            .question = "What does it cost to receive from whichever of eight channels has an item?",
            .method =
                "items go to eight channels in turn, or at random, and one thread receives. ready: one "
                "pinned thread sends an item and receives it, in batches. comes: two threads, on a core "
                "each; the sender sends an item and watches a counter until the other thread has received "
                "it, and the CPU time includes the watching. streams: one thread sends until the time is "
                "up, unpinned; the time is divided by the number of items. Each channel has room for 128 "
                "items",
            .columns = {{"time", "median", "time an item", "ns", true},
                        {"cpu", "value", "CPU", "ns"},
                        switches_column,
                        syscalls_column},
            .cases = cases(),
            .floor = "none",
        };
        return about;
    }

    static std::vector<scenario_case> cases() {
        std::vector<scenario_case> all;
        for (const char* what : {"ready", "comes", "streams"}) {
            all.push_back({{{"what", what}, {"order", "turn"}}, tier::quick});
            all.push_back({{{"what", what}, {"order", "random"}}, tier::standard});
        }
        return all;
    }

    static constexpr std::string_view no_floor = "is no channel";

    template <class C>
    static std::string refuses_contestant(const parameters& given) {
        return given.text("what") == "comes" && usable_cores().size() < 2 ? "needs two cores" : "";
    }

    template <class Group>
    static void run_with(context& run) {
        const std::string& what = run.given.text("what");
        if (what == "ready")
            run_ready<Group>(run);
        else if (what == "comes")
            run_comes<Group>(run);
        else
            run_streams<Group>(run);
    }

    template <class Group>
    struct alone {
        explicit alone(const context& run) : where(run) {}
        Group group{capacity};
        order where;
        std::uint64_t items = 0, differing = 0;
    };

    template <class Group>
    static void run_ready(context& run) {
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        const auto subject = std::make_unique<alone<Group>>(run);
        time_batches(run, "time", *subject, [](alone<Group>& one) {
            one.group.send(one.where[one.items], one.items);
            one.differing += one.group.receive_any() ^ one.items;
            ++one.items;
        });
        run.require(subject->differing == 0, "what is received is what was sent");
    }

    template <class Group>
    static void run_comes(context& run) {
        const auto group = std::make_unique<Group>(capacity);
        const order where(run);
        std::atomic<std::uint64_t> received{0};
        bool in_order = true;
        thread_group receiver(1, [&](std::size_t) {
            pin_to_nth(1);
            for (std::uint64_t expected = 1;; ++expected) {
                const std::uint64_t item = group->receive_any();
                if (item == 0) return;
                in_order &= item == expected;
                received.store(item, std::memory_order_release);  // with the acquire in `once`
            }
        });
        if (!pin_to_nth(0)) run.note("not permitted to pin threads to cores");
        receiver.go();
        std::uint64_t items = 0;
        const auto once = [&] {
            group->send(where[items], items + 1);
            ++items;
            while (received.load(std::memory_order_acquire) != items) {
            }
        };
        const std::int64_t warm = now() + run.budget_ns() / 10;
        while (now() < warm) once();
        histogram& times = run.distribution("time");
        timed_section section(run);
        const std::uint64_t before = items;
        std::int64_t last = now();
        for (const std::int64_t end = last + run.budget_ns(); last < end;) {
            once();
            const std::int64_t time = now();
            times.record_nanoseconds(time - last);
            last = time;
        }
        section.stop(items - before);
        group->send(0, 0);  // the end
        receiver.join();
        run.require(in_order, "each item is received before the next one is sent");
    }

    template <class Group>
    static void run_streams(context& run) {
        constexpr std::uint64_t end = std::uint64_t{1}
                                      << 63;  // an item that says how many were sent before it
        const auto group = std::make_unique<Group>(capacity);
        const order where(run);
        std::atomic<bool> over{false};
        std::uint64_t items = 0, sent = 0, received = 0;
        const auto send = [&] {
            std::uint64_t count = 0;
            do {
                group->send(where[count], count);
                sent += count++;
            } while (!over.load(std::memory_order_relaxed));
            group->send(where[count], end + count);
            items = count;
        };
        const auto receive = [&] {
            for (std::uint64_t count = 0, all = end; count != all;) {
                const std::uint64_t item = group->receive_any();
                if (item >= end) {
                    all = item - end;
                } else {
                    received += item;
                    ++count;
                }
            }
        };
        thread_group threads(2, [&](std::size_t self) { self == 0 ? send() : receive(); });
        if (!run.require(threads.shortage().empty(), "the system creates the threads")) {
            over = true;
            return;
        }
        timed_section section(run);
        const std::int64_t start = now();
        threads.go();
        sleep_until(start + run.budget_ns());
        over = true;
        threads.join();
        const std::int64_t took = now() - start;
        section.stop(items, 0, 1 + 2);  // one sleep; the threads' start and end
        run.distribution("time").record_batch(took, items);
        run.require(sent == received, "what is received is what was sent");
    }
};

const registration<select> registered{lineup{}};

}  // namespace

}  // namespace lab

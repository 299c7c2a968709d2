// SPDX-License-Identifier: Apache-2.0
// Items that threads send to other threads through a bounded channel.
#include "../lineup.hpp"
#include "../measure/clock.hpp"
#include "../measure/threads.hpp"

#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace lab {
namespace {

template <class Channel>
constexpr bool can_rendezvous = requires { requires Channel::can_rendezvous; };

struct item_channels {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_item_channel<C>) f(std::type_identity<typename C::item_channel>{});
    }

    template <class C>
    static std::string refuses(const parameters&) {
        return has_item_channel<C> ? "" : "is no channel";
    }

    template <class Channel>
    static void check(context& run) {
        Channel channel(4);
        for (std::uint64_t i = 1; i != 5; ++i) channel.send(i);
        bool in_order = true;
        for (std::uint64_t i = 1; i != 5; ++i) in_order = channel.receive() == i && in_order;
        run.require(in_order, "items come out in the order in which they went in");
    }
};

struct channels : scenario_of<channels, item_channels> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "channels",
            .question = "What does it cost to send an item to another thread?",
            .method =
                "each sender sends numbers until the time is up, and each receiver receives; the time is "
                "divided by "
                "the number of items. Unpinned. The receivers' sum must be the senders'",
            .columns = {{"item", "median", "time an item", "ns", true},
                        cpu_column,
                        switches_column,
                        syscalls_column},
            .cases = cases(),
            .floor = "none",
        };
        return about;
    }

    static std::vector<scenario_case> cases() {
        std::vector<scenario_case> all;
        for (const std::uint64_t capacity : {1024u, 1u, 0u}) {
            for (const std::uint64_t threads : {1u, 4u}) {
                parameters given;
                given.add("capacity", capacity);
                given.add("senders", threads);
                given.add("receivers", threads);
                all.push_back({given, capacity == 1024 ? tier::quick : tier::standard});
            }
        }
        return all;
    }

    static constexpr std::string_view no_floor = "is no channel";

    template <class Channel>
    static std::string refuses_type(const parameters& given) {
        return given.number("capacity") == 0 && !can_rendezvous<Channel> ? "has no rendezvous" : "";
    }

    template <class Channel>
    static void run_with(context& run) {
        const std::uint64_t senders = run.given.number("senders"), receivers = run.given.number("receivers");
        const auto channel = std::make_unique<Channel>(run.given.number("capacity"));
        std::atomic<bool> over{false};
        std::atomic<std::uint64_t> still_sending{senders};
        std::vector<std::uint64_t> sums(senders + receivers), counts(senders + receivers);
        const auto send = [&](std::size_t self) {
            std::uint64_t sum = 0, count = 0;
            do {
                channel->send(++count);
                sum += count;
            } while (!over.load(std::memory_order_relaxed));
            sums[self] = sum;
            counts[self] = count;
            if (still_sending.fetch_sub(1) != 1) return;
            for (std::uint64_t i = 0; i != receivers; ++i) channel->send(0);  // ends one receiver each
        };
        const auto receive = [&](std::size_t self) {
            std::uint64_t sum = 0;
            while (const std::uint64_t item = channel->receive()) sum += item;
            sums[self] = sum;
        };
        thread_group threads(senders + receivers,
                             [&](std::size_t self) { self < senders ? send(self) : receive(self); });
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
        const auto middle = static_cast<std::ptrdiff_t>(senders);
        const std::uint64_t items = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
        section.stop(items, 0, 1 + senders + receivers);  // one sleep; the threads' start and end
        run.distribution("item").record_batch(took, items);
        run.require(std::accumulate(sums.begin(), sums.begin() + middle, std::uint64_t{0}) ==
                        std::accumulate(sums.begin() + middle, sums.end(), std::uint64_t{0}),
                    "what is received is what was sent");
    }
};

const registration<channels> registered{lineup{}};

}  // namespace

}  // namespace lab

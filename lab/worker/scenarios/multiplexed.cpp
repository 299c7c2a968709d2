// SPDX-License-Identifier: Apache-2.0
// The multiplexed sleeper (docs/requirements.md#the-multiplexed-sleeper): one thread waits for an event and for idle
// sockets at once; another wakes it.
#include "../lineup.hpp"
#include "../measure/batch.hpp"
#include "../measure/machine.hpp"
#include "../measure/threads.hpp"

#include <array>
#include <atomic>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace lab {
namespace {

// Pairs of connected sockets on which nothing ever arrives.
class idle_sockets {
public:
    explicit idle_sockets(std::size_t count) {
        allow_descriptors();
        for (std::size_t i = 0; i != count; ++i) {
            std::array<int, 2> pair;
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) break;
            near_.push_back(pair[0]);
            far_.push_back(pair[1]);
        }
    }
    ~idle_sockets() {
        for (const int each : near_) close(each);
        for (const int each : far_) close(each);
    }
    idle_sockets(const idle_sockets&) = delete;
    idle_sockets& operator=(const idle_sockets&) = delete;

    const std::vector<int>& near() const noexcept { return near_; }

private:
    std::vector<int> near_, far_;
};

struct loop_wakers {
    template <class C, class F>
    static void with(const parameters&, F f) {
        if constexpr (has_loop_waker<C>) f(std::type_identity<typename C::loop_waker>{});
    }

    template <class C>
    static std::string refuses(const parameters&) {
        return has_loop_waker<C> ? "" : "wakes no loop";
    }

    template <class Waker>
    static void check(context& run) {
        const idle_sockets idle(2);
        Waker waker(idle.near());
        waker.wake();
        waker.wait();
        run.require(true, "a wake before the wait ends it");
    }
};

struct multiplexed : scenario_of<multiplexed, loop_wakers> {
    static const scenario_info& info() {
        static const scenario_info about{
            .name = "multiplexed",
            .question = "What does it cost to wake a thread that also waits for sockets?",
            .method =
                "a thread on one core waits for a wake-up and for n idle sockets; a thread on another core "
                "wakes it at a steady rate: up to 1,000 a second it sleeps between two wakes, above that it "
                "watches the clock. CPU, switches and system calls of both per wake, without the pacing; "
                "wake-ups: how often the wait returned; latency from just before wake() to the return that "
                "saw it",
            .columns = {cpu_column,
                        syscalls_column,
                        {"latency", "median", "latency", "ns"},
                        {"latency", "p99", "p99", "ns"},
                        {"wakeups", "value", "wake-ups", "count"},
                        switches_column},
            .cases = cases(),
            .floor = "none",
        };
        return about;
    }

    static std::vector<scenario_case> cases() {
        std::vector<scenario_case> all;
        for (const std::uint64_t rate : {30u, 1'000u, 100'000u, 1'000'000u}) {
            for (const std::uint64_t sockets : {1u, 8u, 64u, 1024u}) {
                parameters given;
                given.add("rate", rate);
                given.add("sockets", sockets);
                const bool quick = rate == 1'000 && sockets == 64;
                const bool common = (sockets == 64 && rate == 100'000) ||
                                    (sockets == 1024 && rate == 1'000) || (sockets == 1 && rate == 100'000);
                all.push_back({given, quick ? tier::quick : common ? tier::standard : tier::full});
            }
        }
        return all;
    }

    static constexpr std::string_view no_floor = "wakes no loop";

    template <class C>
    static std::string refuses_contestant(const parameters&) {
        return usable_cores().size() < 2 ? "needs two cores" : "";
    }

    template <class Waker>
    static std::string refuses_type(const parameters& given) {
        if constexpr (requires { Waker::max_descriptors; }) {
            if (given.number("sockets") > Waker::max_descriptors) return "can't have that many descriptors";
        }
        return {};
    }

    template <class Waker>
    static void run_with(context& run) {
        const idle_sockets idle(run.given.number("sockets"));
        if (idle.near().size() < run.given.number("sockets"))
            run.note("not permitted to open so many sockets");
        Waker waker(idle.near());
        const auto interval = static_cast<std::int64_t>(1'000'000'000 / run.given.number("rate"));
        const bool sleeps = interval >= 1'000'000;
        std::atomic<std::int64_t> sent{0};  // when the latest wake began; the lowest bit: it was the last one
        std::uint64_t wakeups = 0;
        thread_group waiter(1, [&](std::size_t) {
            pin_to_nth(0);
            histogram& latency = run.distribution("latency");
            for (bool last = false; !last; ++wakeups) {
                waker.wait();
                const std::int64_t when = sent.load();
                latency.record_nanoseconds(now() - when);
                last = (when & 1) != 0;
            }
        });
        if (!pin_to_nth(1)) run.note("not permitted to pin threads to cores");
        exact_timers();
        waiter.go();
        wait_until_asleep(waiter.ids());

        timed_section section(run);
        const std::int64_t cpu_before = thread_cpu();
        const std::int64_t start = now();
        const std::int64_t end = start + run.budget_ns();
        std::int64_t waking = 0;
        std::uint64_t wakes = 0;
        for (bool last = false; !last; ++wakes) {
            const std::int64_t due = start + static_cast<std::int64_t>(wakes) * interval;
            last = due + interval >= end;
            if (sleeps) sleep_until(due);
            std::int64_t begin = now();
            while (begin < due) begin = now();
            sent.store(last ? begin | 1 : begin & ~std::int64_t{1});
            waker.wake();
            waking += now() - begin;
        }
        const std::int64_t pace = thread_cpu() - cpu_before - waking;
        waiter.join();
        section.stop(wakes, std::max<std::int64_t>(pace, 0), sleeps ? wakes : 0);
        run.value("wakeups", static_cast<double>(wakeups) / static_cast<double>(wakes));
    }
};

const registration<multiplexed> registered{lineup{}};

}  // namespace

}  // namespace lab

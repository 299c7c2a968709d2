// SPDX-License-Identifier: Apache-2.0
// As many tokens come out as go in while coroutines on a pool of threads wait, time out, are stopped and are destroyed.
#include "executor.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "stress.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stop_token>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using support::task;  // not the library's
using namespace tocsin;

#if TOCSIN_ON_POSIX
// A descriptor that is never ready.
class quiet_pipe {
public:
    quiet_pipe() { EXPECT_EQ(::pipe(ends_), 0); }
    quiet_pipe(const quiet_pipe&) = delete;
    quiet_pipe& operator=(const quiet_pipe&) = delete;
    ~quiet_pipe() {
        for (const int each : ends_) ::close(each);
    }
    operator tocsin::source() const { return tocsin::readable(ends_[0]); }

private:
    int ends_[2] = {-1, -1};
};
#else
struct quiet_pipe {
    quiet_pipe() {}
    operator tocsin::source() const { return tocsin::source(tocsin::deadline::never()); }
};
#endif

struct stage {
    static constexpr std::size_t event_count = 3;

    const quiet_pipe quiet;

    std::array<auto_reset_event, event_count> events;
    std::array<std::atomic<long>, event_count> in{};
    std::array<std::atomic<long>, event_count> out{};
    std::atomic<long> timed_out{0};
    std::atomic<long> stopped{0};
    std::atomic<long> destroyed{0};
    std::atomic<bool> enough{false};

    void took(std::size_t event) { out[event].fetch_add(1); }
    void count(wait_status how) {
        if (how == wait_status::timed_out) timed_out.fetch_add(1);
        if (how == wait_status::stopped) stopped.fetch_add(1);
    }
};

task wait_somehow(stage& on, executor& where, std::stop_token stop, random_source& random) {
    while (!on.enough.load()) {
        const auto longest = std::chrono::microseconds(1 + random.below(300));
        const std::size_t first = random.below(stage::event_count);
        const std::size_t second = (first + 1) % stage::event_count;
        if (random.one_in(3)) {
            const auto how = co_await tocsin::async_wait_all({.until = longest, .stop = stop},
                                                             on.events[first], on.events[second])
                                 .on(where);
            on.count(how);
            if (how != wait_status::signaled) continue;
            on.took(first);
            on.took(second);
        } else if (random.one_in(3)) {
            const quiet_pipe own;  // closed when the wait has ended
            const auto how =
                co_await tocsin::async_wait_any({.until = longest}, on.events[first], on.quiet, own)
                    .on(where);
            on.count(how.status);
            if (how.status == wait_status::signaled) on.took(first);
        } else if (random.one_in(2)) {
            const auto how = co_await tocsin::async_wait({.until = longest}, on.events[first]).on(where);
            on.count(how);
            if (how == wait_status::signaled) on.took(first);
        } else {
            const auto how = co_await tocsin::async_wait_any({.stop = stop}, on.events[first],
                                                             tocsin::after(longest), on.events[second])
                                 .on(where);
            on.count(how.status);
            if (how.status == wait_status::signaled && how.index != 1)
                on.took(how.index == 0 ? first : second);
        }
        if (stop.stop_requested()) co_return;
    }
}

void work(stage& on, int seed) {
    random_source random(static_cast<std::uint64_t>(seed));
    executor self;
    struct job {
        std::stop_source stop;
        task running;
    };
    std::vector<job> jobs(8);
    while (!on.enough.load()) {
        job& each = jobs[random.below(jobs.size())];
        const auto handle = each.running.handle();
        if (!handle || each.running.done()) {
            each.running = task();
            each.stop = std::stop_source();
            each.running = wait_somehow(on, self, each.stop.get_token(), random);
        } else if (random.one_in(4)) {
            each.running.destroy();
            self.forget(handle);
            on.destroyed.fetch_add(1);
        } else if (random.one_in(4)) {
            each.stop.request_stop();
        }
        self.run();
        self.wait(std::chrono::microseconds(random.below(50)));
    }
    for (job& each : jobs) {
        const auto handle = each.running.handle();
        each.running.destroy();
        if (handle) self.forget(handle);
    }
}

// A setter gives a token only when the last token has been taken, so that none is absorbed.
TEST(AwaitStress, TokensInAreTokensOut) {
    const stress_time time;
    stage on;
    thread_group threads;
    threads.start_many(3, "worker", [&](int number) { work(on, number + 1); });
    threads.start_many(static_cast<int>(stage::event_count), "setter", [&](int number) {
        random_source random(static_cast<std::uint64_t>(number + 100));
        const auto event = static_cast<std::size_t>(number);
        while (!on.enough.load()) {
            if (on.in[event].load() == on.out[event].load()) {
                on.in[event].fetch_add(1);
                on.events[event].set();
            }
            jitter(random);
        }
    });
    threads.start("clock", [&] {
        while (!time.is_over()) std::this_thread::sleep_for(5ms);  // no fact to wait for
        on.enough = true;
    });
    threads.join();
    for (std::size_t i = 0; i != stage::event_count; ++i) {
        const long left = on.events[i].try_wait() ? 1 : 0;
        std::printf("event %zu: %ld in, %ld out, %ld left\n", i, on.in[i].load(), on.out[i].load(), left);
        EXPECT_EQ(on.in[i].load(), on.out[i].load() + left);
        EXPECT_EQ(tocsin::waiting_on(&on.events[i]), 0u);
    }
    std::printf("%ld timed out, %ld stopped, %ld destroyed\n", on.timed_out.load(), on.stopped.load(),
                on.destroyed.load());
}

// Coroutines resume inside set(), in whatever thread calls it, alongside threads that wait for the same event.
TEST(AwaitStress, CoroutinesAndThreadsShareTheTokens) {
    const stress_time time;
    auto_reset_event there;
    auto_reset_event back;
    std::atomic<long> taken{0};
    std::atomic<bool> enough{false};
    std::vector<task> tasks;
    for (int i = 0; i != 4; ++i) {
        tasks.push_back([](auto& on, auto& answer, auto& count, auto& end) -> task {
            for (;;) {
                co_await tocsin::async_wait(on);
                if (end) co_return;
                ++count;
                answer.set();
            }
        }(there, back, taken, enough));
    }
    thread_group threads;
    threads.start_many(2, "thread", [&](int) {
        for (;;) {
            there.wait();
            if (enough) return;
            ++taken;
            back.set();
        }
    });
    long given = 0;
    while (!time.is_over()) {
        ++given;
        there.set();
        back.wait();
    }
    EXPECT_EQ(taken, given);
    enough = true;
    support::until("all have ended", [&] {
        if (!there.is_set()) there.set();
        return threads.finished() == 2 && tocsin::waiting_on(&there) == 0;
    });
    threads.join();
    std::printf("%ld tokens\n", given);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// <tocsin/uv.hpp>
#include "sanitizer.hpp"
#include "watch_contract.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/uv.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include <unistd.h>
#include <uv.h>

namespace {

class loop {
public:
    loop() { EXPECT_EQ(uv_loop_init(&loop_), 0); }
    ~loop() { EXPECT_EQ(uv_loop_close(&loop_), 0) << "a handle is left"; }
    loop(const loop&) = delete;
    uv_loop_t* get() { return &loop_; }
    void run() { uv_run(&loop_, UV_RUN_DEFAULT); }
    template <class Fact>
    void run_until(Fact holds) {
        while (!holds()) uv_run(&loop_, UV_RUN_ONCE);
    }

    using id = uv_handle_t*;
    template <class... Arguments>
    id watch(Arguments&&... given) {
        return tocsin::uv::watch(&loop_, std::forward<Arguments>(given)...);
    }
    template <class... Arguments>
    id watch_by(tocsin::driver& by, Arguments&&... given) {
        return tocsin::uv::watch(tocsin::uv::on(&loop_).by(by), std::forward<Arguments>(given)...);
    }
    static void unwatch(id which) { tocsin::uv::unwatch(which); }
    bool is_watched(id) { return uv_loop_alive(&loop_) != 0; }

private:
    uv_loop_t loop_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Uv, Watch, loop);

TEST(UvWatch, ItsIdleTimeIsThatOfEachWait) {
    loop loop;
    auto_reset_event event;
    int timed_out = 0;
    int served = 0;
    const auto begin = std::chrono::steady_clock::now();
    tocsin::uv::watch(
        loop.get(),
        [&](any_result how) {
            if (how.status == wait_status::signaled) return ++served != 2;
            ++timed_out;
            EXPECT_GE(std::chrono::steady_clock::now() - begin, timed_out * 3ms)
                << "each wait has all its time";
            if (timed_out == 3 || timed_out == 5) event.set();
            return true;
        },
        tocsin::uv::idle(3ms), event);
    loop.run();
    EXPECT_EQ(served, 2);
    EXPECT_EQ(timed_out, 5);
}

// A set meets unwatch(): a permit that the watch has taken was given to its function, or is still there.
TEST(UvWatch, EndsOnceIfASetAndUnwatchMeet) {
    loop loop;
    const int rounds = support::rounds(2'000, 200);
    for (int i = 0; i != rounds; ++i) {
        auto_reset_event event;
        std::atomic<bool> go{false};
        auto* const watched = tocsin::uv::watch(loop.get(), [](any_result) { return true; }, event);
        std::thread setter([&] {
            while (!go.load()) {
            }
            event.set();
        });
        go.store(true);
        if (i % 2 == 0) std::this_thread::yield();
        tocsin::uv::unwatch(watched);
        loop.run();
        setter.join();
        ASSERT_EQ(tocsin::waiting_on(&event), 0u);
    }
}

// A foreign loop that knows nothing but a descriptor.
struct polled {
    uv_poll_t handle{};
    std::function<void()> call;

    polled(loop& in, int descriptor, std::function<void()> on_readable) : call(std::move(on_readable)) {
        handle.data = this;
        EXPECT_EQ(uv_poll_init(in.get(), &handle, descriptor), 0);
        EXPECT_EQ(uv_poll_start(&handle, UV_READABLE,
                                [](uv_poll_t* it, int, int) { static_cast<polled*>(it->data)->call(); }),
                  0);
    }
    void close() { uv_close(reinterpret_cast<uv_handle_t*>(&handle), nullptr); }
};

#if TOCSIN_TEST_EPOLL
TEST(UvPoll, ServesAWaitSetByItsDescriptor) {
    loop loop;
    auto_reset_event job;
    auto_reset_event done;
    tocsin::wait_timer tick;
    tocsin::wait_set set;
    set.add(job, 1);
    set.add(tick, 2);
    tick.reset_every(tocsin::deadline(1ms), 1ms);
    int jobs = 0;
    std::uint64_t ticks = 0;
    std::optional<polled> here;
    here.emplace(loop, set.descriptor(), [&] {
        std::array<tocsin::ready_item, 2> items;
        for (const auto& each : std::span(items).first(set.wait({.until = 0ns}, items).count)) {
            if (each.tag == 1) {
                ++jobs;
                done.set();
            } else {
                ticks += tick.ticks();
            }
        }
        if (jobs == 100 && ticks >= 3) here->close();
    });
    std::thread producer([&] {
        for (int i = 0; i != 100; ++i) {
            job.set();
            done.wait();
        }
    });
    loop.run();
    producer.join();
    EXPECT_EQ(jobs, 100);
}

TEST(UvPoll, ServesADriverByItsDescriptor) {
    loop loop;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    tocsin::driver driver;
    int left = 2;
    std::optional<polled> here;
    here.emplace(loop, driver.descriptor(), [&] {
        driver.run_ready();
        if (left == 0) here->close();
    });
    auto_reset_event never;
    auto late =
        tocsin::any_operation([&](any_result how) noexcept { left -= how.status == wait_status::timed_out; },
                              {.until = 5ms}, never);
    late.by(driver);
    late.start();
    auto end =
        tocsin::any_operation([&](any_result how) noexcept { left -= how.status == wait_status::signaled; },
                              tocsin::readable(ends[0]));
    end.by(driver);
    end.start();
    std::thread writer([&] { EXPECT_EQ(write(ends[1], "x", 1), 1); });
    loop.run();
    writer.join();
    EXPECT_EQ(left, 0);
    for (const int each : ends) close(each);
}
#endif

}  // namespace

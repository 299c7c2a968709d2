// SPDX-License-Identifier: Apache-2.0
// <tocsin/uv.hpp>
#include "clocks.hpp"
#include "sanitizer.hpp"

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

using namespace std::chrono_literals;
using support::hand_clock;
using tocsin::any_result;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;

class loop {
public:
    loop() { EXPECT_EQ(uv_loop_init(&loop_), 0); }
    ~loop() { EXPECT_EQ(uv_loop_close(&loop_), 0) << "a handle is left"; }
    void run() { uv_run(&loop_, UV_RUN_DEFAULT); }
    uv_loop_t* get() { return &loop_; }

private:
    uv_loop_t loop_;
};

TEST(UvWatch, CallsTheFunctionInTheLoopForEachSet) {
    loop loop;
    auto_reset_event job;
    auto_reset_event done;
    manual_reset_event closed;
    int taken = 0;
    tocsin::uv::watch(
        loop.get(),
        [&, here = std::this_thread::get_id()](any_result how) {
            EXPECT_EQ(std::this_thread::get_id(), here);
            if (how.index != 0) return false;
            ++taken;
            done.set();
            return true;
        },
        job, closed);
    std::thread producer([&] {
        for (int i = 0; i != 100; ++i) {
            job.set();
            done.wait();
        }
        closed.set();
    });
    loop.run();
    producer.join();
    EXPECT_EQ(taken, 100);
}

TEST(UvWatch, NeverCallsTheFunctionInsideWatch) {
    loop loop;
    manual_reset_event event(true);
    int calls = 0;
    tocsin::uv::watch(loop.get(), [&](any_result) { return ++calls != 10; }, event);
    EXPECT_EQ(calls, 0);
    loop.run();
    EXPECT_EQ(calls, 10) << "a source that stays ready is found again and again";
}

TEST(UvWatch, TellsTheDeadline) {
    loop loop;
    auto_reset_event event;
    any_result found{wait_status::signaled};
    tocsin::uv::watch(loop.get(), [&](any_result how) { return found = how, false; }, {.until = 1ms}, event);
    loop.run();
    EXPECT_EQ(found.status, wait_status::timed_out);
}

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

TEST(UvWatch, IsServedByItsDriver) {
    loop loop;
    tocsin::driver driver;
    auto_reset_event event;
    any_result found{wait_status::signaled};
    const auto due = hand_clock::now() + 2ms;
    tocsin::uv::watch(
        tocsin::uv::on(loop.get()).by(driver), [&](any_result how) { return found = how, false; },
        {.until = due}, event);
    EXPECT_FALSE(driver.next_deadline().is_never());
    hand_clock::set(due);
    while (driver.run_due() == 0 && !driver.next_deadline().is_never()) std::this_thread::yield();
    loop.run();
    EXPECT_EQ(found.status, wait_status::timed_out);
}

TEST(UvWatch, ItsDriverServesEachWait) {
    loop loop;
    tocsin::driver driver;
    auto_reset_event event;
    int calls = 0;
    uv_handle_t* const watched = tocsin::uv::watch(
        tocsin::uv::on(loop.get()).by(driver), [&](any_result) { return ++calls != 0; }, event,
        tocsin::after(1h));
    for (int i = 1; i <= 2; ++i) {
        EXPECT_FALSE(driver.next_deadline().is_never());
        event.set();
        EXPECT_TRUE(driver.next_deadline().is_never());
        uv_run(loop.get(), UV_RUN_ONCE);
        EXPECT_EQ(calls, i);
    }
    tocsin::uv::unwatch(watched);
    loop.run();
}

TEST(UvWatch, EndsWhenItIsUnwatched) {
    loop loop;
    auto_reset_event event;
    auto owned = std::make_shared<int>(0);
    uv_handle_t* const watched = tocsin::uv::watch(loop.get(), [owned](any_result) { return true; }, event);
    tocsin::uv::unwatch(watched);
    loop.run();
    EXPECT_EQ(owned.use_count(), 1);
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
}

TEST(UvWatch, MayBeUnwatchedByItsFunction) {
    loop loop;
    manual_reset_event event(true);
    uv_handle_t* watched = nullptr;
    int calls = 0;
    watched = tocsin::uv::watch(
        loop.get(),
        [&](any_result) {
            ++calls;
            tocsin::uv::unwatch(watched);
            return true;
        },
        event);
    loop.run();
    EXPECT_EQ(calls, 1);
}

TEST(UvWatch, ThrowsIfTheWaitCannotBegin) {
    loop loop;
    tocsin::source empty;
    EXPECT_THROW(
        tocsin::uv::watch(loop.get(), [](any_result) { return true; }, empty), std::invalid_argument);
    loop.run();  // closes the handle
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

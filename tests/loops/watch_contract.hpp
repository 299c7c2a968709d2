// SPDX-License-Identifier: Apache-2.0
// What tocsin::uv::watch() and tocsin::glib::watch() promise alike. A `Loop` calls one of them:
//
//   id          what watch() returns
//   watch(...)  watch() with this loop; watch_by(driver, ...) lets the driver serve the wait
//   unwatch     ends the watch with this id; is_watched() is false once it has ended
//   run_until   runs the loop until the fact holds
//   run         runs whatever is pending. What is watched has ended, or its end is pending.
#pragma once

#include "clocks.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

namespace {

using namespace std::chrono_literals;
using support::hand_clock;
using tocsin::any_result;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;

template <class Loop>
class Watch : public testing::Test {
protected:
    Loop loop_;
};
TYPED_TEST_SUITE_P(Watch);

TYPED_TEST_P(Watch, CallsTheFunctionInTheLoopForEachSet) {
    auto& loop = this->loop_;
    auto_reset_event job;
    auto_reset_event done;
    manual_reset_event closed;
    int taken = 0;
    bool over = false;
    const auto id = loop.watch(
        [&, here = std::this_thread::get_id()](any_result how) {
            EXPECT_EQ(std::this_thread::get_id(), here);
            over = how.index != 0;
            if (over) return false;
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
    loop.run_until([&] { return over; });
    producer.join();
    EXPECT_EQ(taken, 100);
    loop.run();
    EXPECT_FALSE(loop.is_watched(id));
}

TYPED_TEST_P(Watch, NeverCallsTheFunctionInsideWatch) {
    manual_reset_event event(true);
    int calls = 0;
    this->loop_.watch([&](any_result) { return ++calls != 10; }, event);
    EXPECT_EQ(calls, 0);
    this->loop_.run();
    EXPECT_EQ(calls, 10) << "a source that stays ready is found again and again";
}

TYPED_TEST_P(Watch, TellsTheDeadline) {
    auto_reset_event event;
    any_result found{wait_status::signaled};
    this->loop_.watch([&](any_result how) { return found = how, false; }, tocsin::limits{.until = 1ms},
                      event);
    this->loop_.run_until([&] { return found.status == wait_status::timed_out; });
    this->loop_.run();
}

TYPED_TEST_P(Watch, IsServedByItsDriver) {
    tocsin::driver driver;
    auto_reset_event event;
    any_result found{wait_status::signaled};
    const auto due = hand_clock::now() + 2ms;
    this->loop_.watch_by(
        driver, [&](any_result how) { return found = how, false; }, tocsin::limits{.until = due}, event);
    EXPECT_FALSE(driver.next_deadline().is_never());
    hand_clock::set(due);
    while (driver.run_due() == 0 && !driver.next_deadline().is_never()) std::this_thread::yield();
    this->loop_.run_until([&] { return found.status == wait_status::timed_out; });
    this->loop_.run();
}

TYPED_TEST_P(Watch, ItsDriverServesEachWait) {
    tocsin::driver driver;
    auto_reset_event event;
    int calls = 0;
    const auto id =
        this->loop_.watch_by(driver, [&](any_result) { return ++calls != 0; }, event, tocsin::after(1h));
    for (int i = 1; i <= 2; ++i) {
        EXPECT_FALSE(driver.next_deadline().is_never());
        event.set();
        EXPECT_TRUE(driver.next_deadline().is_never());
        this->loop_.run_until([&] { return calls >= i; });
        EXPECT_EQ(calls, i);
    }
    this->loop_.unwatch(id);
    this->loop_.run();
}

TYPED_TEST_P(Watch, EndsWhenItIsUnwatched) {
    auto_reset_event event;
    auto owned = std::make_shared<int>(0);
    this->loop_.unwatch(this->loop_.watch([owned](any_result) { return true; }, event));
    this->loop_.run();
    EXPECT_EQ(owned.use_count(), 1);
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
}

TYPED_TEST_P(Watch, MayBeUnwatchedByItsFunction) {
    auto& loop = this->loop_;
    manual_reset_event event(true);
    auto owned = std::make_shared<int>(0);
    int calls = 0;
    typename TypeParam::id id{};
    id = loop.watch(
        [&, owned](any_result) {
            ++calls;
            loop.unwatch(id);
            return true;
        },
        event);
    loop.run();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(owned.use_count(), 1);
}

TYPED_TEST_P(Watch, ThrowsIfTheWaitCannotBegin) {
    tocsin::source empty;
    auto owned = std::make_shared<int>(0);
    EXPECT_THROW(this->loop_.watch([owned](any_result) { return true; }, empty), std::invalid_argument);
    this->loop_.run();  // libuv closes the handle
    EXPECT_EQ(owned.use_count(), 1);
}

REGISTER_TYPED_TEST_SUITE_P(Watch, CallsTheFunctionInTheLoopForEachSet, NeverCallsTheFunctionInsideWatch,
                            TellsTheDeadline, IsServedByItsDriver, ItsDriverServesEachWait,
                            EndsWhenItIsUnwatched, MayBeUnwatchedByItsFunction, ThrowsIfTheWaitCannotBegin);

}  // namespace

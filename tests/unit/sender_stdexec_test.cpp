// SPDX-License-Identifier: Apache-2.0
// Senders with stdexec, where it is installed (tests/CMakeLists.txt looks).
#include <gtest/gtest.h>

#if defined(TOCSIN_TEST_STDEXEC)

#include "facts.hpp"

#include <tocsin/event.hpp>
#include <tocsin/sender.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <exec/when_any.hpp>
#include <thread>
#include <tuple>
#include <utility>

namespace {

using namespace std::chrono_literals;
using tocsin::any_result;
using tocsin::as_sender;
using tocsin::as_sender_all;
using tocsin::auto_reset_event;

using sender = decltype(as_sender(std::declval<auto_reset_event&>()));
static_assert(stdexec::sender<sender> && stdexec::sender_in<sender, stdexec::env<>>);

TEST(SenderWithStdexec, ComposesWithThenAndSyncWait) {
    auto_reset_event event(true);
    const auto found =
        stdexec::sync_wait(as_sender(event) | stdexec::then([](any_result how) { return how.index + 7; }));
    EXPECT_EQ(std::get<0>(*found), 7u);
}

TEST(SenderWithStdexec, ComposesWithContinuesOn) {
    auto_reset_event event;
    stdexec::run_loop loop;
    std::thread runs([&] { loop.run(); });
    std::thread setter([&] {
        support::until_parked(&event, 1);
        event.set();
    });
    const auto found =
        stdexec::sync_wait(stdexec::then(stdexec::continues_on(as_sender(event), loop.get_scheduler()),
                                         [](any_result) { return std::this_thread::get_id(); }));
    EXPECT_EQ(std::get<0>(*found), runs.get_id());
    setter.join();
    loop.finish();
    runs.join();
}

TEST(SenderWithStdexec, ComposesWithWhenAnyAndWhenAll) {
    auto_reset_event first;
    auto_reset_event second;
    EXPECT_EQ(
        std::get<0>(*stdexec::sync_wait(exec::when_any(as_sender(first), as_sender({.until = 1ms}, second)))),
        any_result{tocsin::wait_status::timed_out});
    EXPECT_EQ(tocsin::waiting_on(&first), 0u) << "the other was stopped";
    first.set();
    second.set();
    EXPECT_TRUE(stdexec::sync_wait(stdexec::when_all(as_sender(first), as_sender_all(second))));
}

}  // namespace

#else

TEST(SenderWithStdexec, IsSkipped) {
    GTEST_SKIP() << "no <stdexec/execution.hpp> that compiles and has sender_tag or sender_t";
}

#endif

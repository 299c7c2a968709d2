// SPDX-License-Identifier: Apache-2.0
// Senders, with the small implementation of the algorithms in support/senders.hpp.
#define TOCSIN_EXECUTION_OWN  // also where stdexec is installed

#include "allocations.hpp"
#include "clocks.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "printing.hpp"
#include "sanitizer.hpp"
#include "senders.hpp"
#include "threads.hpp"

#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/sender.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using senders::inplace_stop_source;
using senders::inplace_stop_token;
using senders::sync_wait;
using senders::token_env;
using senders::with_token;
using namespace support;
using namespace tocsin;

namespace ex = tocsin::execution;

// What a receiver was told, and in which thread.
struct told {
    enum class by { nothing, value, error, stopped };

    by how = by::nothing;
    any_result result{wait_status::signaled};
    std::exception_ptr error;
    std::thread::id thread;
    int times = 0;
};

// A receiver with this environment that takes everything.
template <class Env>
struct receiver {
    using receiver_concept = ex::receiver_tag;

    Env get_env() const noexcept { return env; }
    void set_value() && noexcept { note(told::by::value); }
    void set_value(wait_status how) && noexcept {
        to->result = {how};
        note(told::by::value);
    }
    void set_value(any_result how) && noexcept {
        to->result = how;
        note(told::by::value);
    }
    void set_error(std::exception_ptr why) && noexcept {
        to->error = std::move(why);
        note(told::by::error);
    }
    void set_stopped() && noexcept { note(told::by::stopped); }
    void note(told::by how) const noexcept {
        to->how = how;
        to->thread = std::this_thread::get_id();
        ++to->times;
    }

    told* to;
    Env env;
};
using unstoppable = receiver<ex::env<>>;
using stoppable = receiver<token_env<inplace_stop_token>>;

template <class Sender, class Env>
using signatures = ex::completion_signatures_of_t<Sender, Env>;
using value = ex::set_value_t(any_result);
using error = ex::set_error_t(std::exception_ptr);
using stopped = ex::set_stopped_t();

// What it says of itself.
using of_event = decltype(as_sender(std::declval<auto_reset_event&>()));
using of_source = decltype(as_sender(std::declval<tocsin::source&>()));
using of_all =
    decltype(as_sender_all(std::declval<auto_reset_event&>(), std::declval<manual_reset_event&>()));
static_assert(ex::sender<of_event> && std::copyable<of_event> &&
              std::is_nothrow_move_constructible_v<of_event>);
static_assert(ex::sender_to<of_event, unstoppable> && ex::sender_to<of_event, stoppable>);
static_assert(ex::sender_to<of_all, unstoppable> && ex::sender_to<of_all&, stoppable>);
static_assert(std::same_as<signatures<of_event, ex::env<>>, ex::completion_signatures<value>>);
static_assert(
    std::same_as<signatures<of_event, token_env<ex::never_stop_token>>, ex::completion_signatures<value>>);
static_assert(std::same_as<signatures<of_event, token_env<inplace_stop_token>>,
                           ex::completion_signatures<value, stopped>>);
static_assert(std::same_as<signatures<of_event, token_env<std::stop_token>>,
                           ex::completion_signatures<value, stopped>>);
static_assert(std::same_as<signatures<of_source, ex::env<>>, ex::completion_signatures<value, error>>);
static_assert(std::same_as<signatures<decltype(as_sender({.until = 1s}, std::declval<auto_reset_event&>())),
                                      token_env<inplace_stop_token>>,
                           ex::completion_signatures<value, error, stopped>>);
static_assert(
    std::same_as<signatures<of_all, ex::env<>>, ex::completion_signatures<ex::set_value_t(), error>>);
static_assert(
    std::same_as<
        signatures<decltype(as_sender_all({.until = 1s}, std::declval<auto_reset_event&>())), ex::env<>>,
        ex::completion_signatures<ex::set_value_t(wait_status), error>>);
// As P2300 asked: a member function of the environment.
static_assert(std::same_as<decltype(std::declval<const of_event&>().get_completion_signatures(ex::env<>())),
                           ex::completion_signatures<value>>);

// A token that never stops costs nothing: the state is the operation and the receiver.
struct call {
    void operator()(any_result) const noexcept {}
    void* of;
};
using wait_alone = decltype(tocsin::any_operation(std::declval<call>(), std::declval<auto_reset_event&>()));
struct wait_and_receiver {
    unstoppable to;
    wait_alone wait;
};
static_assert(sizeof(ex::connect(std::declval<of_event>(), std::declval<unstoppable>())) ==
              sizeof(wait_and_receiver));

TEST(Sender, OfAReadySourceCompletesInStartAndTakesIt) {
    auto_reset_event first;
    auto_reset_event second(true);
    told told;
    auto state = ex::connect(as_sender(first, second), unstoppable{&told, {}});
    EXPECT_EQ(told.times, 0) << "nothing happens before start()";
    EXPECT_TRUE(second.is_set());
    ex::start(state);
    EXPECT_EQ(told.how, told::by::value);
    EXPECT_EQ(told.result, (any_result{wait_status::signaled, 1}));
    EXPECT_FALSE(second.is_set());
}

TEST(Sender, CompletesInTheSetThatEndsTheWait) {
    auto_reset_event event;
    told told;
    auto state = ex::connect(as_sender(event), unstoppable{&told, {}});
    ex::start(state);
    EXPECT_EQ(told.times, 0);
    std::thread setter([&] {
        event.set();
        EXPECT_EQ(told.times, 1);
        EXPECT_EQ(told.thread, std::this_thread::get_id());
    });
    setter.join();
    EXPECT_EQ(told.how, told::by::value);
    EXPECT_EQ(told.result.index, 0u);
}

TEST(Sender, IsADescriptionThatCanBeStartedAgainAndMoved) {
    tocsin::counting_semaphore<> permits(1);
    auto sender = as_sender(permits);
    auto moved = std::move(sender);
    told first;
    told second;
    auto one = ex::connect(moved, unstoppable{&first, {}});
    auto two = ex::connect(std::move(moved), unstoppable{&second, {}});
    ex::start(one);
    ex::start(two);
    EXPECT_EQ(first.times, 1);
    EXPECT_EQ(second.times, 0);
    permits.release();
    EXPECT_EQ(second.how, told::by::value);
}

TEST(Sender, MayBeDestroyedWithoutBeingStarted) {
    auto_reset_event event(true);
    told told;
    {
        auto state = ex::connect(as_sender(event), stoppable{&told, {}});
    }
    EXPECT_EQ(told.times, 0);
    EXPECT_TRUE(event.try_wait());
}

TEST(Sender, AllocatesNothing) {
    auto_reset_event event;
    tocsin::latch latch(1);
    told told;
    inplace_stop_source source;
    const long before = support::allocations();
    {
        auto state = ex::connect(as_sender(latch, event), stoppable{&told, {source.get_token()}});
        ex::start(state);
        event.set();
    }
    EXPECT_EQ(support::allocations(), before);
    EXPECT_EQ(told.result.index, 1u);
}

TEST(Sender, SaysThatItsLimitsEndedTheWait) {
    auto_reset_event event;
    const auto late = sync_wait(as_sender({.until = 2ms}, event));
    EXPECT_EQ(std::get<0>(*late), any_result{wait_status::timed_out});

    std::stop_source own;
    told told;
    auto state = ex::connect(as_sender({.stop = own.get_token()}, event), unstoppable{&told, {}});
    ex::start(state);
    own.request_stop();
    EXPECT_EQ(told.how, told::by::value) << "the receiver has asked for nothing";
    EXPECT_EQ(told.result, any_result{wait_status::stopped});
}

TEST(Sender, TakesATimerAsASource) {
    auto_reset_event event;
    EXPECT_EQ(std::get<0>(*sync_wait(as_sender(event, tocsin::after(1ms)))).index, 1u);
}

// The driver ends the wait, in this thread. The sender from which by() has made this one still has no driver.
TEST(Sender, IsServedByItsDriver) {
    tocsin::driver loop;
    auto_reset_event event;
    told told;
    const auto due = hand_clock::now() + 2ms;
    const auto without = as_sender({.until = due}, event);
    auto state = ex::connect(without.by(loop), unstoppable{&told, {}});
    ex::start(state);
    ASSERT_FALSE(loop.next_deadline().is_never());
    EXPECT_EQ(loop.run_due(), 0u);
    hand_clock::set(due);
    support::until("the driver ends the wait", [&] { return loop.run_due() != 0; });
    EXPECT_EQ(told.how, told::by::value);
    EXPECT_EQ(told.result, any_result{wait_status::timed_out});
    EXPECT_EQ(told.thread, std::this_thread::get_id());

    hand_clock::set(due - 2ms);
    thread_group threads;
    threads.start("lets the deadline pass", [&] {
        support::until_parked(&event, 1);
        hand_clock::set(due);
    });
    EXPECT_EQ(std::get<0>(*sync_wait(without)), any_result{wait_status::timed_out});
    EXPECT_TRUE(loop.next_deadline().is_never());
}

template <class Source>
class SenderWithToken : public testing::Test {};
using sources_of_stops = testing::Types<inplace_stop_source, std::stop_source>;
TYPED_TEST_SUITE(SenderWithToken, sources_of_stops);

TYPED_TEST(SenderWithToken, CompletesWithSetStoppedInsideTheRequest) {
    TypeParam source;
    auto_reset_event event;
    told told;
    receiver<token_env<decltype(source.get_token())>> to{&told, {source.get_token()}};
    auto state = ex::connect(as_sender(event), to);
    ex::start(state);
    EXPECT_EQ(told.times, 0);
    source.request_stop();
    EXPECT_EQ(told.how, told::by::stopped);
    event.set();
    EXPECT_TRUE(event.try_wait()) << "the wait that was stopped has taken nothing";
    EXPECT_EQ(told.times, 1);
}

TYPED_TEST(SenderWithToken, CompletesWithAValueIfASourceComesFirst) {
    TypeParam source;
    auto_reset_event event;
    told told;
    {
        receiver<token_env<decltype(source.get_token())>> to{&told, {source.get_token()}};
        auto state = ex::connect(as_sender(event), to);
        ex::start(state);
        event.set();
        EXPECT_EQ(told.how, told::by::value);
    }
    source.request_stop();  // nobody listens any more
    EXPECT_EQ(told.times, 1);
}

TYPED_TEST(SenderWithToken, TakesAReadySourceEvenIfTheStopWasRequestedBefore) {
    TypeParam source;
    source.request_stop();
    auto_reset_event event(true);
    for (const auto expected : {told::by::value, told::by::stopped}) {
        told told;
        receiver<token_env<decltype(source.get_token())>> to{&told, {source.get_token()}};
        auto state = ex::connect(as_sender(event), to);
        ex::start(state);
        EXPECT_EQ(told.how, expected);
        EXPECT_EQ(told.times, 1);
    }
}

TYPED_TEST(SenderWithToken, ATokenWithoutASourceIsIgnored) {
    decltype(std::declval<TypeParam>().get_token()) nobody;
    auto_reset_event event;
    told told;
    receiver<token_env<decltype(nobody)>> to{&told, {nobody}};
    auto state = ex::connect(as_sender(event), to);
    ex::start(state);
    event.set();
    EXPECT_EQ(told.how, told::by::value);
}

// A set and a stop at the same time: one completion, and the event is taken exactly if there is a value. The thread
// that completes lets this one destroy the state at once.
TYPED_TEST(SenderWithToken, EndsOnceIfASetAndAStopMeet) {
    const int rounds = support::rounds(4'000, 400);
    manual_reset_event go[2];
    manual_reset_event done[2];
    auto_reset_event event;
    std::optional<TypeParam> source;
    thread_group threads;
    const auto rival = [&](int which, auto act) {
        threads.start([&, which, act] {
            for (int i = 0; i != rounds; ++i) {
                go[which].wait();
                go[which].reset();
                act();
                done[which].set();
            }
        });
    };
    rival(0, [&] { event.set(); });
    rival(1, [&] { source->request_stop(); });
    for (int i = 0; i != rounds; ++i) {
        source.emplace();
        if (i % 2 == 0) go[1].set();
        go[0].set();
        if (i % 2 != 0) go[1].set();
        const auto found = sync_wait(with_token(as_sender(event), source->get_token()));
        for (auto& each : done) {
            each.wait();
            each.reset();
        }
        ASSERT_EQ(event.try_wait(), !found.has_value()) << "round " << i;
    }
    threads.join();
}

TEST(SenderOfAll, CompletesOnceAllAreReadyAtTheSameTime) {
    auto_reset_event left;
    auto_reset_event right;
    told told;
    auto state = ex::connect(as_sender_all(left, right), unstoppable{&told, {}});
    ex::start(state);
    left.set();
    EXPECT_EQ(told.times, 0);
    EXPECT_TRUE(left.is_set());
    right.set();
    EXPECT_EQ(told.how, told::by::value);
    EXPECT_FALSE(left.is_set() || right.is_set());
}

TEST(SenderOfAll, WithLimitsPassesTheStatus) {
    auto_reset_event left(true);
    auto_reset_event right;
    EXPECT_EQ(std::get<0>(*sync_wait(as_sender_all({.until = 1ms}, left, right))), wait_status::timed_out);
    EXPECT_TRUE(left.is_set());
    right.set();
    EXPECT_EQ(std::get<0>(*sync_wait(as_sender_all({.until = 1h}, left, right))), wait_status::signaled);
}

TEST(SenderOfAll, IsServedByItsDriver) {
    tocsin::driver loop;
    auto_reset_event a;
    auto_reset_event b(true);
    told told;
    const auto due = hand_clock::now() + 2ms;
    auto state = ex::connect(as_sender_all({.until = due}, a, b).by(loop), unstoppable{&told, {}});
    ex::start(state);
    ASSERT_FALSE(loop.next_deadline().is_never());
    EXPECT_EQ(loop.run_due(), 0u);
    hand_clock::set(due);
    support::until("the driver ends the wait", [&] { return loop.run_due() != 0; });
    EXPECT_EQ(told.result, any_result{wait_status::timed_out});
    EXPECT_EQ(told.thread, std::this_thread::get_id());
    EXPECT_TRUE(b.is_set());
}

TEST(SenderOfAll, CanBeStopped) {
    auto_reset_event left(true);
    auto_reset_event right;
    inplace_stop_source source;
    told told;
    auto state = ex::connect(as_sender_all(left, right), stoppable{&told, {source.get_token()}});
    ex::start(state);
    source.request_stop();
    EXPECT_EQ(told.how, told::by::stopped);
    EXPECT_TRUE(left.is_set());
}

TEST(SenderOfAll, RefusesASourceThatOccursTwice) {
    auto_reset_event event;
    EXPECT_THROW((void)sync_wait(as_sender_all(event, event)), std::invalid_argument);
}

TEST(Sender, OfAnEmptySourceFails) {
    tocsin::source empty;
    EXPECT_THROW((void)sync_wait(as_sender(empty)), std::invalid_argument);
}

TEST(SenderComposes, WithThen) {
    auto_reset_event event(true);
    const auto sender = senders::then(as_sender(event), [](any_result how) { return how.index + 7; });
    EXPECT_EQ(std::get<0>(*sync_wait(sender)), 7u);
}

TEST(SenderComposes, WithContinuesOn) {
    auto_reset_event event;
    senders::run_loop loop;
    std::thread runs([&] { loop.run(); });
    std::thread setter([&] {
        support::until_parked(&event, 1);
        event.set();
    });
    const auto where = senders::then(senders::continues_on(as_sender(event), loop),
                                     [](any_result) { return std::this_thread::get_id(); });
    EXPECT_EQ(std::get<0>(*sync_wait(where)), runs.get_id());
    setter.join();
    loop.finish();
    runs.join();
}

TEST(SenderComposes, WithWhenAny) {
    auto_reset_event first;
    auto_reset_event second;
    std::thread setter([&] {
        support::until_parked(&first, 1);
        support::until_parked(&second, 1);
        second.set();
    });
    const auto numbered = [](auto& event, int number) {
        return senders::then(as_sender(event), [number](any_result) { return number; });
    };
    EXPECT_EQ(std::get<0>(*sync_wait(senders::when_any(numbered(first, 1), numbered(second, 2)))), 2);
    setter.join();
    EXPECT_EQ(tocsin::waiting_on(&first), 0u) << "the other was stopped";
    first.set();
    EXPECT_TRUE(first.try_wait());
}

TEST(SenderComposes, WithWhenAnyThatIsStopped) {
    auto_reset_event first;
    auto_reset_event second;
    inplace_stop_source source;
    told told;
    auto state = ex::connect(senders::when_any(as_sender(first), as_sender(second)),
                             stoppable{&told, {source.get_token()}});
    ex::start(state);
    source.request_stop();
    EXPECT_EQ(told.how, told::by::stopped);
}

#if TOCSIN_ON_POSIX
TEST(Sender, OfADescriptorSaysWhatWasFound) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const auto sender = as_sender(tocsin::readable(ends[0]));
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_EQ(std::get<0>(*sync_wait(sender)).found, tocsin::readiness::readable);
    close(ends[0]);
    EXPECT_THROW((void)sync_wait(sender), std::system_error);
    close(ends[1]);
}

TEST(Sender, ItsDriverIsToldOfItsDescriptor) {
    tocsin::driver loop;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    told told;
    auto state = ex::connect(as_sender(tocsin::readable(ends[0])).by(loop), unstoppable{&told, {}});
    ex::start(state);
    tocsin::driver::watch watched;
    loop.update([&](tocsin::driver::watch each) { watched = each; });
    EXPECT_EQ(watched.descriptor, ends[0]);
    EXPECT_EQ(loop.notify(watched.id, tocsin::readiness::readable), 1u);
    EXPECT_EQ(told.result, (any_result{wait_status::signaled, 0, tocsin::readiness::readable}));
    for (const int end : ends) close(end);
}
#endif

}  // namespace

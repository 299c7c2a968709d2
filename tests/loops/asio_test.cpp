// SPDX-License-Identifier: Apache-2.0
// <tocsin/asio.hpp>, with standalone Asio and with Boost's.
#include "clocks.hpp"
#include "facts.hpp"
#include "printing.hpp"
#include "sanitizer.hpp"

#include <tocsin/asio.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>

// Old versions of Asio have no cancellation slots (1.19) and no deferred (1.22).
#if defined(TOCSIN_BOOST_ASIO)
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#if __has_include(<boost/asio/bind_cancellation_slot.hpp>)
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#define HAS_SLOTS 1
#endif
#if __has_include(<boost/asio/deferred.hpp>)
#include <boost/asio/deferred.hpp>
#define DEFERRED net::deferred
#endif
namespace net = boost::asio;
using error_code = boost::system::error_code;
#else
#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#if __has_include(<asio/bind_cancellation_slot.hpp>)
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#define HAS_SLOTS 1
#endif
#if __has_include(<asio/deferred.hpp>)
#include <asio/deferred.hpp>
#define DEFERRED net::deferred
#elif __has_include(<asio/experimental/deferred.hpp>)
#include <asio/experimental/deferred.hpp>
#define DEFERRED net::experimental::deferred
#endif
namespace net = ::asio;
using error_code = std::error_code;
#endif

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using support::hand_clock;
using tocsin::any_result;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;
using tocsin::asio::async_wait;
using tocsin::asio::async_wait_all;
using tocsin::asio::async_wait_any;

// What a handler was called with.
struct called {
    int times = 0;
    error_code error;
    any_result how{wait_status::signaled};
    std::thread::id thread;

    void note(error_code with, any_result result) {
        ++times;
        error = with;
        how = result;
        thread = std::this_thread::get_id();
    }
    auto callback() {
        return [this](error_code with, any_result result) { note(with, result); };
    }
    auto callback_of_one() {
        return [this](error_code with, wait_status status) { note(with, {status}); };
    }
};

TEST(AsioWait, CallsTheHandlerInTheContextAndNotInTheSet) {
    net::io_context context;
    auto_reset_event event;
    called called;
    async_wait(context, event, called.callback_of_one());
    std::thread setter([&] { event.set(); });
    setter.join();
    EXPECT_EQ(called.times, 0);
    EXPECT_EQ(context.run(), 1u);
    EXPECT_EQ(called.times, 1);
    EXPECT_FALSE(called.error);
    EXPECT_EQ(called.how.status, wait_status::signaled);
    EXPECT_EQ(called.thread, std::this_thread::get_id());
    EXPECT_FALSE(event.is_set());
}

TEST(AsioWait, IsOutstandingWorkUntilItsHandlerIsCalled) {
    net::io_context context;
    auto_reset_event first;
    auto_reset_event second;
    called called;
    async_wait_any(context.get_executor(), first, second, called.callback());
    std::thread setter([&] {
        support::until_parked(&second, 1);
        second.set();
    });
    context.run();
    EXPECT_EQ(called.times, 1);
    EXPECT_EQ(called.how.index, 1u);
    setter.join();
}

TEST(AsioWait, OfAReadySourceDoesNotCallTheHandlerInsideTheInitiation) {
    net::io_context context;
    manual_reset_event event(true);
    called called;
    net::post(context, [&] {
        async_wait(context, event, called.callback_of_one());
        EXPECT_EQ(called.times, 0);
    });
    context.run();
    EXPECT_EQ(called.times, 1);
}

TEST(AsioWait, SaysThatItsLimitsEndedIt) {
    net::io_context context;
    auto_reset_event event;
    std::stop_source source;
    called late;
    called stopped;
    async_wait_any(context, {.until = 1ms}, event, late.callback());
    async_wait_any(context, {.stop = source.get_token()}, event, stopped.callback());
    source.request_stop();
    context.run();
    EXPECT_FALSE(late.error);
    EXPECT_EQ(late.how, any_result{wait_status::timed_out});
    EXPECT_FALSE(stopped.error);
    EXPECT_EQ(stopped.how, any_result{wait_status::stopped});
}

// Lets a deadline of the driver pass, and runs what is due until the context has called something.
void serve(tocsin::driver& driver, net::io_context& context, hand_clock::time_point due) {
    EXPECT_FALSE(driver.next_deadline().is_never());
    hand_clock::set(due);
    while (driver.run_due() == 0 && !driver.next_deadline().is_never()) std::this_thread::yield();
    context.run();
    context.restart();
}

// Only the driver knows the deadline. It is given with a context, with an executor, and with a context for later waits.
TEST(AsioWait, IsServedByItsDriver) {
    net::io_context context;
    tocsin::driver driver;
    auto_reset_event event;
    auto_reset_event other(true);
    called called;
    auto due = hand_clock::now() + 2ms;
    async_wait(tocsin::asio::on(context).by(driver), {.until = due}, event, called.callback_of_one());
    serve(driver, context, due);
    EXPECT_EQ(called.how.status, wait_status::timed_out);
    due += 2ms;
    async_wait_any(tocsin::asio::on(context.get_executor()).by(driver), event, tocsin::at(due),
                   called.callback());
    serve(driver, context, due);
    EXPECT_EQ(called.how, (any_result{wait_status::signaled, 1}));
    const auto here = tocsin::asio::on(context).by(driver);
    due += 2ms;
    std::future<wait_status> both = async_wait_all(here, {.until = due}, event, other, net::use_future);
    serve(driver, context, due);
    EXPECT_EQ(both.get(), wait_status::timed_out);
    EXPECT_EQ(called.times, 2);
    EXPECT_TRUE(other.is_set());
}

#if defined(DEFERRED)
TEST(AsioWait, KeepsItsDriverUntilItBegins) {
    net::io_context context;
    tocsin::driver driver;
    auto_reset_event event;
    called called;
    const auto due = hand_clock::now() + 2ms;
    auto later = async_wait(tocsin::asio::on(context).by(driver), {.until = due}, event, DEFERRED);
    EXPECT_TRUE(driver.next_deadline().is_never());
    std::move(later)(called.callback_of_one());
    serve(driver, context, due);
    EXPECT_EQ(called.how.status, wait_status::timed_out);
}
#endif

TEST(AsioWait, ForAllTakesAllAtOnce) {
    net::io_context context;
    auto_reset_event left(true);
    auto_reset_event right;
    called called;
    async_wait_all(context, left, right, called.callback_of_one());
    EXPECT_TRUE(left.is_set());
    right.set();
    context.run();
    EXPECT_EQ(called.times, 1);
    EXPECT_FALSE(left.is_set());
}

TEST(AsioWait, UsesTheHandlersExecutor) {
    net::io_context context;
    net::thread_pool pool(1);
    auto_reset_event event;
    std::promise<std::thread::id> where;
    async_wait(context, event, net::bind_executor(pool, [&](error_code, wait_status) {
                   where.set_value(std::this_thread::get_id());
               }));
    event.set();
    EXPECT_NE(where.get_future().get(), std::this_thread::get_id());
    pool.join();
    context.run();
}

TEST(AsioWait, GivesAFuture) {
    net::thread_pool pool(1);
    auto_reset_event event;
    auto future = async_wait_any(pool, event, net::use_future);
    event.set();
    EXPECT_EQ(future.get().index, 0u);
    pool.join();
}

#if defined(DEFERRED)
TEST(AsioWait, CanBeDeferred) {
    net::io_context context;
    auto_reset_event event(true);
    called called;
    auto later = async_wait(context, event, DEFERRED);
    context.run();
    EXPECT_TRUE(event.is_set()) << "nothing happens before the deferred operation is started";
    std::move(later)(called.callback_of_one());
    context.restart();
    context.run();
    EXPECT_EQ(called.times, 1);
    EXPECT_FALSE(event.is_set());
}
#endif

TEST(AsioWait, CanBeAwaited) {
    net::io_context context;
    auto_reset_event job;
    auto_reset_event done;
    manual_reset_event closed;
    int taken = 0;
    bool in_place = true;
    const auto consume = [&]() -> net::awaitable<void> {
        const auto executor = co_await net::this_coro::executor;
        for (;;) {
            const auto found =
                co_await async_wait_any(executor, {.until = 1h}, job, closed, net::use_awaitable);
            if (found.index != 0) co_return;
            in_place = in_place && context.get_executor().running_in_this_thread();
            ++taken;
            done.set();
        }
    };
    net::co_spawn(context, consume(), net::detached);
    std::thread producer([&] {
        for (int i = 0; i != 100; ++i) {
            job.set();
            done.wait();
        }
        closed.set();
    });
    context.run();
    producer.join();
    EXPECT_EQ(taken, 100);
    EXPECT_TRUE(in_place);
}

// With Asio's operator `||` over a receive and a timer, both may happen, and the item is lost.
TEST(AsioWait, AnItemIsNotLostThoughATimeoutPassesWithIt) {
    net::io_context context;
    constexpr int count = 300;
    tocsin::channel<int> items(count);
    int expected = 0;
    int timeouts = 0;
    const auto consume = [&]() -> net::awaitable<void> {
        auto next = items.receiving();
        while (expected != count) {
            const auto how = co_await async_wait_any(context, {.until = 200us}, next, net::use_awaitable);
            if (how.status == wait_status::timed_out) {
                ++timeouts;
            } else {
                EXPECT_EQ(*next, expected);
                ++expected;
            }
        }
    };
    const auto produce = [&]() -> net::awaitable<void> {
        net::steady_timer pause(context);
        const auto wait = [&] {
            pause.expires_after(200us);
            return pause.async_wait(net::use_awaitable);
        };
        while (timeouts == 0) co_await wait();
        for (int i = 0; i != count; ++i) {
            co_await wait();
            EXPECT_EQ(items.try_send(i), tocsin::channel_status::done);
        }
    };
    net::co_spawn(context, consume(), net::detached);
    net::co_spawn(context, produce(), net::detached);
    context.run();
    EXPECT_EQ(expected, count);
}

#if defined(HAS_SLOTS)
TEST(AsioWait, IsCancelledThroughItsSlot) {
    for (const auto type :
         {net::cancellation_type::terminal, net::cancellation_type::partial, net::cancellation_type::total}) {
        net::io_context context;
        auto_reset_event event;
        net::cancellation_signal signal;
        called called;
        async_wait(context, event, net::bind_cancellation_slot(signal.slot(), called.callback_of_one()));
        signal.emit(net::cancellation_type::none);
        EXPECT_EQ(tocsin::waiting_on(&event), 1u);
        signal.emit(type);
        signal.emit(type);  // comes too late, and changes nothing
        EXPECT_EQ(called.times, 0);
        context.run();
        EXPECT_EQ(called.times, 1);
        EXPECT_EQ(called.error, net::error::operation_aborted);
        event.set();
        EXPECT_TRUE(event.try_wait()) << "the wait that was cancelled has taken nothing";
        EXPECT_FALSE(signal.slot().has_handler());
    }
}

TEST(AsioWait, CancelledTooLateKeepsItsResult) {
    for (const bool by_stop : {false, true}) {
        net::io_context context;
        auto_reset_event event;
        std::stop_source stop;
        net::cancellation_signal signal;
        called called;
        auto token = net::bind_cancellation_slot(signal.slot(), called.callback_of_one());
        if (by_stop) {
            async_wait(context, {.stop = stop.get_token()}, event, std::move(token));
            stop.request_stop();
        } else {
            async_wait(context, event, std::move(token));
            event.set();
        }
        signal.emit(net::cancellation_type::all);
        context.run();
        EXPECT_FALSE(called.error);
        EXPECT_EQ(called.how.status, by_stop ? wait_status::stopped : wait_status::signaled);
    }
}

TEST(AsioWait, IsCancelledByTheOperatorsOfAwaitables) {
    using namespace net::experimental::awaitable_operators;
    net::io_context context;
    auto_reset_event event;
    bool timer_first = false;
    const auto race = [&]() -> net::awaitable<void> {
        net::steady_timer timer(context, 1ms);
        const auto first =
            co_await (async_wait(context, event, net::use_awaitable) || timer.async_wait(net::use_awaitable));
        timer_first = first.index() == 1;
    };
    net::co_spawn(context, race(), net::detached);
    context.run();
    EXPECT_TRUE(timer_first);
    EXPECT_EQ(tocsin::waiting_on(&event), 0u);
}
#endif

TEST(AsioWait, ReportsADescriptorThatIsClosed) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    close(ends[1]);
    net::io_context context;
    called called;
    async_wait_any(context, tocsin::readable(ends[0]), called.callback());
    context.run();
    EXPECT_EQ(called.times, 1);
    EXPECT_EQ(called.error.value(), EBADF);
}

TEST(AsioWait, ThrowsWhatOnlyAMistakeCauses) {
    net::io_context context;
    tocsin::source empty;
    called called;
    EXPECT_THROW(async_wait(context, empty, called.callback_of_one()), std::invalid_argument);
    context.run();
    EXPECT_EQ(called.times, 0);
}

// Counts what it has allocated.
template <class T>
struct counting {
    using value_type = T;
    explicit counting(int& of) noexcept : blocks(&of) {}
    template <class U>
    counting(const counting<U>& from) noexcept : blocks(from.blocks) {}
    T* allocate(std::size_t n) {
        ++*blocks;
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* at, std::size_t n) noexcept {
        --*blocks;
        std::allocator<T>().deallocate(at, n);
    }
    friend bool operator==(const counting& a, const counting& b) noexcept { return a.blocks == b.blocks; }
    int* blocks;
};

TEST(AsioWait, UsesTheHandlersAllocatorAndFreesTheMemoryBeforeTheCall) {
    struct handler {
        using allocator_type = counting<char>;
        allocator_type get_allocator() const noexcept { return allocator_type(*blocks); }
        void operator()(error_code, wait_status) const { EXPECT_EQ(*blocks, 0); }
        int* blocks;
    };
    net::io_context context;
    auto_reset_event event;
    int blocks = 0;
    async_wait(context, event, handler{&blocks});
    EXPECT_EQ(blocks, 1);
    event.set();
    context.run();
    EXPECT_EQ(blocks, 0);
}

TEST(AsioWait, EndsWithItsContextWithoutACall) {
    auto_reset_event waiting;
    auto_reset_event posted;
    auto owned = std::make_shared<int>(0);
    called called;
    {
        net::io_context context;
        async_wait(context, waiting, [owned, &called](error_code, wait_status) { ++called.times; });
        async_wait(context, posted, [owned, &called](error_code, wait_status) { ++called.times; });
        posted.set();
    }
    EXPECT_EQ(called.times, 0);
    EXPECT_EQ(owned.use_count(), 1);
    EXPECT_EQ(tocsin::waiting_on(&waiting), 0u);
    EXPECT_FALSE(posted.is_set()) << "it was taken for the handler that was dropped";
}

// Another thread sets the event while the context is destroyed.
TEST(AsioWait, EndsWithItsContextAlsoIfItsSourceBecomesReadyThen) {
    const int rounds = support::rounds(2'000, 200);
    for (int i = 0; i != rounds; ++i) {
        auto_reset_event event;
        std::atomic<bool> go{false};
        auto owned = std::make_shared<int>(0);
        std::optional<net::io_context> context(std::in_place);
        async_wait(*context, event, [owned](error_code, wait_status) {});
        std::thread setter([&] {
            while (!go.load()) {
            }
            event.set();
        });
        go.store(true);
        context.reset();
        setter.join();
        ASSERT_EQ(owned.use_count(), 1) << "round " << i;
    }
}

#if defined(HAS_SLOTS)
// Waits on the strands of a pool, set and cancelled at the same time: each handler is called once, and no set is lost.
TEST(AsioWait, EndsOnceIfASetAndACancellationMeet) {
    const int rounds = support::rounds(2'000, 200);
    net::thread_pool pool(2);
    for (int i = 0; i != rounds; ++i) {
        auto_reset_event event;
        net::cancellation_signal signal;
        const auto strand = net::make_strand(pool);
        std::promise<bool> aborted;
        async_wait(strand, event,
                   net::bind_cancellation_slot(signal.slot(),
                                               net::bind_executor(strand, [&](error_code error, wait_status) {
                                                   aborted.set_value(error == net::error::operation_aborted);
                                               })));
        std::promise<void> emitted;
        net::post(strand, [&] {
            signal.emit(net::cancellation_type::all);
            emitted.set_value();
        });
        event.set();
        emitted.get_future().get();
        ASSERT_EQ(aborted.get_future().get(), event.try_wait()) << "round " << i;
    }
    pool.join();
}
#endif

}  // namespace

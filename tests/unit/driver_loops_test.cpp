// SPDX-License-Identifier: Apache-2.0
// A driver in seven loops (support/driven_loops.hpp): deadlines and descriptors end waits in the loop's thread, whoever
// began them, and no thread of the library exists.
#define TOCSIN_EXECUTION_OWN  // also where stdexec is installed

#include "clocks.hpp"
#include "driven_loops.hpp"
#include "sanitizer.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/sender.hpp>
#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using namespace support;
using support::task;  // not the library's
using namespace tocsin;

class sockets {
public:
    sockets() { driven::require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0, "socketpair"); }
    ~sockets() {
        ::close(ends_[0]);
        close_theirs();
    }
    sockets(const sockets&) = delete;
    sockets& operator=(const sockets&) = delete;

    int ours() const { return ends_[0]; }
    void write() const { driven::require(::write(ends_[1], "x", 1) == 1, "write"); }
    void close_theirs() {
        if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
    }
    // Makes room for writing to our end.
    void drain() const {
        char bytes[4096];
        while (::recv(ends_[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
        }
    }
    void read() const {
        char byte;
        driven::require(::read(ends_[0], &byte, 1) == 1, "read");
    }

private:
    int ends_[2];
};

#if defined(__linux__)
std::size_t threads_of_this_process() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}
#else
std::size_t threads_of_this_process() { return 0; }
#endif

// A connection over TCP, which can carry urgent data.
class connection {
public:
    connection() {
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* const address = reinterpret_cast<sockaddr*>(&where);
        socklen_t size = sizeof where;
        const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
        driven::require(::bind(listener, address, size) == 0 && ::listen(listener, 1) == 0 &&
                            ::getsockname(listener, address, &size) == 0,
                        "listen");
        theirs_ = ::socket(AF_INET, SOCK_STREAM, 0);
        driven::require(::connect(theirs_, address, size) == 0, "connect");
        ours_ = ::accept(listener, nullptr, nullptr);
        ::close(listener);
    }
    ~connection() {
        ::close(ours_);
        ::close(theirs_);
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    int ours() const { return ours_; }
    void send_urgent() const { driven::require(::send(theirs_, "!", 1, MSG_OOB) == 1, "send"); }

private:
    int ours_ = -1;
    int theirs_ = -1;
};

// Notes how a sender has ended.
struct receiver {
    using receiver_concept = tocsin::execution::receiver_tag;

    void set_value(any_result how) && noexcept { result = how.status; }
    void set_error(const std::exception_ptr&) && noexcept {}
    void set_stopped() && noexcept {}

    wait_status& result;
};

template <class Loop>
class DriverInALoop : public testing::Test {};

// What a case needs of a loop.
template <class Loop>
class served {
public:
    served() { tocsin::set_default_driver(&loop_.driver()); }
    served(const served&) = delete;
    served& operator=(const served&) = delete;

    void run_until(const auto& done) {
        while (!done()) loop_.run_once();
        loop_.forget();
    }
    void run(const task& until) {
        run_until([&] { return until.done(); });
    }
    void forget() { loop_.forget(); }
    void wake() { loop_.wake(); }

private:
    Loop loop_;
};

#define DRIVEN_TEST(name)                                  \
    template <class Loop>                                  \
    void name();                                           \
    TYPED_TEST(DriverInALoop, name) { name<TypeParam>(); } \
    template <class Loop>                                  \
    void name()

using loops = testing::Types<
#if defined(__linux__)
    driven::epoll_loop,
#endif
#if defined(TOCSIN_TEST_LIBUV)
    driven::libuv_loop,
#endif
#if defined(TOCSIN_TEST_GLIB)
    driven::glib_loop,
#endif
#if defined(TOCSIN_TEST_ASIO)
    driven::asio_loop,
#endif
#if TOCSIN_TEST_EPOLL
    driven::descriptor_loop,
#endif
    driven::poll_loop, driven::frame_loop>;
TYPED_TEST_SUITE(DriverInALoop, loops);

TEST(LoopsOfOthers, AreAllInThisBuild) {
    std::string missing;
#if !TOCSIN_TEST_EPOLL
    missing += " epoll, and of its descriptor";
#endif
#if !defined(TOCSIN_TEST_LIBUV)
    missing += " libuv";
#endif
#if !defined(TOCSIN_TEST_GLIB)
    missing += " GLib";
#endif
#if !defined(TOCSIN_TEST_ASIO)
    missing += " Asio";
#endif
    if (!missing.empty())
        GTEST_SKIP() << "no driver in a loop of:" << missing << "; `dev` has those that are installed";
}

DRIVEN_TEST(ADeadlineEndsAWaitInTheLoopsThread) {
    served<Loop> loop;
    auto_reset_event never;
    std::thread::id ended_in;
    wait_status status{};
    const auto begin = std::chrono::steady_clock::now();
    const task one = [](auto& event, auto& result, auto& thread) -> task {
        result = co_await async_wait({.until = 5ms}, event);
        thread = std::this_thread::get_id();
    }(never, status, ended_in);
    loop.run(one);
    EXPECT_EQ(status, wait_status::timed_out);
    EXPECT_EQ(ended_in, std::this_thread::get_id());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 5ms);
}

DRIVEN_TEST(TimersOnBothClocksEndAWaitForAll) {
    served<Loop> loop;
    const auto steady = std::chrono::steady_clock::now() + 3ms;
    const auto system = std::chrono::system_clock::now() + 5ms;
    const task one = [](auto first, auto second) -> task {
        (void)co_await async_wait_all(tocsin::at(first), tocsin::at(second));
    }(steady, system);
    loop.run(one);
    EXPECT_GE(std::chrono::steady_clock::now(), steady);
    EXPECT_GE(std::chrono::system_clock::now(), system);
}

DRIVEN_TEST(ADescriptorEndsAWait) {
    served<Loop> loop;
    const sockets pair;
    any_result result{wait_status::stopped};
    const task one = [](int end, auto& found) -> task {
        found = co_await async_wait_any(tocsin::readable(end));
    }(pair.ours(), result);
    thread_group threads;
    threads.start([&] { pair.write(); });
    loop.run(one);
    EXPECT_EQ(result, (any_result{wait_status::signaled, 0, readiness::readable}));
}

// A wait may also end in the thread that begins it, before its coroutine has suspended. That does not wake the loop.
DRIVEN_TEST(AnotherThreadBeginsWaitsWhileTheLoopSleeps) {
    served<Loop> loop;
    const sockets pair;
    auto_reset_event never;
    std::atomic<int> ended{0};
    const auto note = [&] {
        ++ended;
        loop.wake();
    };
    task one;
    task other;
    thread_group threads;
    threads.start([&] {
        one = [](auto& event, auto& then) -> task {
            (void)co_await async_wait({.until = 2ms}, event);
            then();
        }(never, note);
        other = [](int end, auto& then) -> task {
            (void)co_await async_wait_any(tocsin::readable(end));
            then();
        }(pair.ours(), note);
        pair.write();
    });
    loop.run_until([&] { return ended == 2; });
    threads.join();
    one.join();
    other.join();
}

DRIVEN_TEST(TwoWaitsForTheTwoDirectionsOfASocket) {
    served<Loop> loop;
    const sockets pair;
    any_result reads{wait_status::stopped};
    any_result writes{wait_status::stopped};
    const task reader = [](int end, auto& found) -> task {
        found = co_await async_wait_any(tocsin::readable(end));
    }(pair.ours(), reads);
    while (::send(pair.ours(), "filling up", 10, MSG_DONTWAIT) > 0) {
    }
    const task writer = [](int end, auto& found) -> task {
        found = co_await async_wait_any(tocsin::writable(end));
    }(pair.ours(), writes);
    EXPECT_FALSE(reader.done() || writer.done());
    pair.drain();
    loop.run(writer);
    EXPECT_EQ(writes, (any_result{wait_status::signaled, 0, readiness::writable}));
    pair.write();
    loop.run(reader);
    EXPECT_EQ(reads, (any_result{wait_status::signaled, 0, readiness::readable}));
}

DRIVEN_TEST(WaitsForOneDescriptorFollowEachOther) {
    served<Loop> loop;
    const sockets pair;
    int seen = 0;
    const task reader = [](const sockets& from, int& count) -> task {
        for (; count != 100; ++count) {
            (void)co_await async_wait_any(tocsin::readable(from.ours()));
            from.read();
        }
    }(pair, seen);
    for (int i = 0; i != 100; ++i) {
        pair.write();
        loop.run_until([&] { return seen == i + 1; });
    }
    EXPECT_TRUE(reader.done());
}

// The number of a closed descriptor means something else at once, and somebody waits for it. The loop must register it
// again, although it has been told to watch this number before.
DRIVEN_TEST(ANumberThatIsUsedAgainIsWatched) {
    served<Loop> loop;
    auto_reset_event event;
    auto first = std::make_unique<sockets>();
    const int number = first->ours();
    const auto wait_for = [](auto& on, int end) -> task {
        (void)co_await async_wait_any(on, tocsin::readable(end));
    };
    const task before = wait_for(event, number);
    const task sleeper = [](auto& on) -> task { (void)co_await async_wait({.until = 1ms}, on); }(event);
    loop.run(sleeper);
    event.set();
    ASSERT_TRUE(before.done());
    loop.forget();
    first = nullptr;
    const auto second = std::make_unique<sockets>();
    ASSERT_EQ(second->ours(), number);
    const task after = wait_for(event, number);
    second->write();
    loop.run(after);
}

// A loop that cannot watch the descriptor reports it all the same.
DRIVEN_TEST(ADescriptorThatIsClosedBeforeTheLoopSeesItIsInvalid) {
    served<Loop> loop;
    auto pair = std::make_unique<sockets>();
    int error = 0;
    const task one = [](int end, auto& found) -> task {
        try {
            (void)co_await async_wait_any(tocsin::readable(end));
        } catch (const std::system_error& of) {
            found = of.code().value();
        }
    }(pair->ours(), error);
    pair = nullptr;
    loop.run(one);
    EXPECT_EQ(error, EBADF);
}

DRIVEN_TEST(AHangUpAloneEndsAWait) {
    served<Loop> loop;
    sockets pair;
    any_result result{wait_status::stopped};
    const task one = [](int end, auto& found) -> task {
        found = co_await async_wait_any(tocsin::ready(end, readiness::hang_up));
    }(pair.ours(), result);
    loop.forget();
    pair.close_theirs();
    loop.run(one);
    EXPECT_EQ(result.status, wait_status::signaled);
    EXPECT_EQ(result.found, readiness::hang_up);
}

DRIVEN_TEST(UrgentDataAloneEndsAWait) {
    served<Loop> loop;
    const connection pair;
    any_result result{wait_status::stopped};
    const task one = [](int end, auto& found) -> task {
        found = co_await async_wait_any(tocsin::ready(end, readiness::urgent));
    }(pair.ours(), result);
    loop.forget();
    pair.send_urgent();
    loop.run(one);
    EXPECT_EQ(result, (any_result{wait_status::signaled, 0, readiness::urgent}));
}

DRIVEN_TEST(NoThreadOfTheLibraryRuns) {
    served<Loop> loop;
    const sockets pair;
    auto_reset_event never;
    const std::size_t before = threads_of_this_process();
    constexpr auto still_waits = wait_status::stopped;
    wait_status operation_ended = still_waits;
    auto operation =
        tocsin::any_operation([&](any_result how) noexcept { operation_ended = how.status; }, {.until = 1ms},
                              never, tocsin::ready(pair.ours(), readiness::urgent));
    operation.start();
    wait_status sender_ended = still_waits;
    auto sent = tocsin::as_sender({.until = 1ms}, never, tocsin::ready(pair.ours(), readiness::urgent))
                    .connect(receiver{sender_ended});
    sent.start();
    std::vector<task> all;
    for (int i = 0; i != 10; ++i) {
        all.push_back([](auto& event, int end) -> task {
            (void)co_await async_wait({.until = std::chrono::system_clock::now() + 1ms}, event);
            (void)co_await async_wait_any({.until = 1ms}, event, tocsin::readable(end));
            (void)co_await async_wait_any(event, tocsin::readable(end));
        }(never, pair.ours()));
    }
    pair.write();
    for (const task& each : all) loop.run(each);
    loop.run_until([&] { return operation_ended != still_waits && sender_ended != still_waits; });
    EXPECT_EQ(operation_ended, wait_status::timed_out);
    EXPECT_EQ(sender_ended, wait_status::timed_out);
    EXPECT_EQ(threads_of_this_process(), before);
}

DRIVEN_TEST(ManyThreadsBeginAndStopWaits) {
    served<Loop> loop;
    const sockets pair;
    constexpr int beginners = 3;
    const int rounds = support::rounds(200, 50);
    std::atomic<int> ended{0};
    std::vector<std::vector<task>> kept(beginners);
    for (auto& each : kept) each.reserve(static_cast<std::size_t>(rounds));
    thread_group threads;
    threads.start_many(beginners, "beginner", [&](int own) {
        for (int i = 0; i != rounds; ++i) {
            std::stop_source stop;
            const auto until = std::chrono::microseconds(i % 3 == 0 ? 100 : 10'000'000);
            kept[static_cast<std::size_t>(own)].push_back(
                [](auto limit, auto token, int end, auto& count) -> task {
                    (void)co_await async_wait_any({.until = limit, .stop = token}, tocsin::readable(end));
                    ++count;
                }(until, stop.get_token(), pair.ours(), ended));
            if (i % 3 != 0) stop.request_stop();
        }
    });
    // A wait that ends in another thread does not end the loop's sleep.
    const task ticker = [](const auto& count, int all) -> task {
        auto_reset_event never;
        while (count != all) (void)co_await async_wait({.until = 1ms}, never);
    }(ended, beginners * rounds);
    loop.run(ticker);
    threads.join();
    for (const auto& each : kept) {
        for (const task& one : each) one.join();
    }
}

// A frame's time is that of its beginning. So no frame is longer because its own work makes a deadline pass.
TEST(DriverInALoopOfFrames, ADeadlineInsideAFrameWaitsForTheNextFrame) {
    driven::frame_loop loop;
    tocsin::set_default_driver(&loop.driver());
    const sockets pair;
    auto_reset_event never;
    task inner;
    const task work = [](auto& event, int end, task& started) -> task {
        (void)co_await async_wait_any(tocsin::readable(end));
        const auto due = hand_clock::now() + 1ms;
        started = [](auto& on, auto until) -> task { (void)co_await async_wait({.until = until}, on); }(event,
                                                                                                        due);
        // The driver expects the deadline 1 ms after the wait began: at this time, or a little earlier.
        const auto expected = std::chrono::steady_clock::now() + 1ms;
        hand_clock::set(due);
        while (std::chrono::steady_clock::now() < expected) {
        }
    }(never, pair.ours(), inner);
    loop.run_once();
    pair.write();
    while (!work.done()) loop.run_once();
    EXPECT_FALSE(inner.done());
    loop.run_once();
    EXPECT_TRUE(inner.done());
}

}  // namespace

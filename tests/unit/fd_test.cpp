// SPDX-License-Identifier: Apache-2.0
// Descriptors alongside events in one wait.
#include "child.hpp"
#include "facts.hpp"
#include "printing.hpp"
#include "sanitizer.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using namespace support;
using namespace tocsin;

// A descriptor that is closed at the end of its scope.
class owned {
public:
    explicit owned(int descriptor) : descriptor_(descriptor) { EXPECT_GE(descriptor, 0); }
    owned(const owned&) = delete;
    owned& operator=(const owned&) = delete;
    ~owned() { close(); }

    operator int() const { return descriptor_; }
    void close() {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
    }

private:
    int descriptor_;
};

struct connected {
    connected() {
        int both[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both), 0);
        one = both[0];
        other = both[1];
    }
    ~connected() {
        close(one);
        if (other >= 0) close(other);
    }
    void write_byte() const { EXPECT_EQ(write(other, "x", 1), 1); }
    void close_peer() {
        close(other);
        other = -1;
    }
    int one;
    int other;
};

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Runs the wait in a thread of its own. Runs the act once the event has a parked waiter and that thread is asleep.
template <class Wait, class Act>
any_result result_of(auto_reset_event& parked_on, Wait wait, Act act) {
    any_result result{};
    thread_group threads;
    const auto waiter = threads.start("waiter", [&] { result = wait(); });
    until_parked(&parked_on, 1);
    threads.until_asleep(waiter);
    act();
    threads.join();
    EXPECT_EQ(tocsin::waiting_on(&parked_on), 0u);
    return result;
}

TEST(Descriptor, ThatIsReadyIsFoundInTheOrderOfTheSources) {
    connected pair;
    auto_reset_event a;
    auto_reset_event b(true);
    EXPECT_EQ(wait_any(a, readable(pair.one), b).index, 2u);
    pair.write_byte();
    b.set();
    const auto found = wait_any(a, readable(pair.one), b);
    EXPECT_EQ(found, (any_result{wait_status::signaled, 1, readiness::readable}));
    EXPECT_TRUE(b.is_set());
    EXPECT_EQ(wait_any(b, readable(pair.one)).index, 0u);
    EXPECT_EQ(wait_any(readable(pair.one), writable(pair.one)).index, 0u);
    EXPECT_EQ(wait_any(writable(pair.one), readable(pair.one)).found, readiness::writable);
}

TEST(Descriptor, StaysReadyUntilItIsRead) {
    connected pair;
    pair.write_byte();
    EXPECT_EQ(wait_any(readable(pair.one)).index, 0u);
    EXPECT_EQ(wait_any({.until = 0s}, readable(pair.one)).status, wait_status::signaled);
}

TEST(Descriptor, EndsAWaitThatSleeps) {
    connected pair;
    auto_reset_event event;
    const auto found =
        result_of(event, [&] { return wait_any(event, readable(pair.one)); }, [&] { pair.write_byte(); });
    EXPECT_EQ(found, (any_result{wait_status::signaled, 1, readiness::readable}));
    EXPECT_FALSE(event.is_set());
}

TEST(Descriptor, DoesNotKeepAnEventFromEndingTheWait) {
    connected pair;
    auto_reset_event event;
    for (int i = 0; i < 100; ++i) {
        const auto found =
            result_of(event, [&] { return wait_any(readable(pair.one), event); }, [&] { event.set(); });
        EXPECT_EQ(found, (any_result{wait_status::signaled, 1, readiness::none}));
        EXPECT_FALSE(event.is_set());
    }
}

TEST(Descriptor, WaitsAreStoppedAndTimeOut) {
    connected pair;
    auto_reset_event event;
    std::stop_source stop;
    EXPECT_EQ(result_of(
                  event, [&] { return wait_any({.stop = stop.get_token()}, readable(pair.one), event); },
                  [&] { stop.request_stop(); })
                  .status,
              wait_status::stopped);
    const auto begin = steady_clock::now();
    EXPECT_EQ(wait_any({.until = 3ms}, readable(pair.one), event).status, wait_status::timed_out);
    EXPECT_GE(steady_clock::now() - begin, 3ms);
    EXPECT_EQ(wait_any(readable(pair.one), after(1ms)).index, 1u);
    EXPECT_EQ(wait_any({.until = 0s}, readable(pair.one), event).status, wait_status::timed_out);
}

TEST(Descriptor, PipesEventfdsTimerfdsAndPidfdsAreWaitedFor) {
    auto_reset_event event;
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const owned read_end(ends[0]);
    owned write_end(ends[1]);
    EXPECT_EQ(wait_any(readable(read_end), writable(write_end)).index, 1u);
    EXPECT_TRUE(
        has(result_of(
                event, [&] { return wait_any(event, readable(read_end)); }, [&] { write_end.close(); })
                .found,
            readiness::hang_up));

    const owned counter(eventfd(0, EFD_CLOEXEC));
    EXPECT_EQ(
        result_of(
            event, [&] { return wait_any(event, readable(counter)); }, [&] { eventfd_write(counter, 1); })
            .index,
        1u);

    const owned timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    const itimerspec soon{{0, 0}, {0, 1'000'000}};
    ASSERT_EQ(timerfd_settime(timer, 0, &soon, nullptr), 0);
    EXPECT_EQ(wait_any(event, readable(timer)).index, 1u);

    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    const owned process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    EXPECT_EQ(result_of(
                  event, [&] { return wait_any(event, readable(process)); }, [&] { kill(child, SIGKILL); })
                  .index,
              1u);
    EXPECT_EQ(support::ending_of(child), "ended by signal 9");
}

TEST(Descriptor, ClosedByThePeerIsReadableAndHungUp) {
    auto_reset_event event;
    connected pair;
    const auto found =
        result_of(event, [&] { return wait_any(event, readable(pair.one)); }, [&] { pair.close_peer(); });
    EXPECT_EQ(found.index, 1u);
    EXPECT_TRUE(has(found.found, readiness::hang_up));
    EXPECT_TRUE(has(found.found, readiness::readable));
}

TEST(Descriptor, ThatIsNotOpenIsRefusedByItsNumberAndNothingIsTaken) {
    auto_reset_event event(true);
    connected pair;
    const int closed = dup(pair.one);
    close(closed);
    try {
        wait_any(readable(pair.one), readable(closed), event);
        ADD_FAILURE() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code().value(), EBADF);
        EXPECT_NE(std::string(error.what()).find("source 1, descriptor " + std::to_string(closed)),
                  std::string::npos)
            << error.what();
    }
    EXPECT_TRUE(event.is_set());
    EXPECT_THROW(wait_any(readable(-1)), std::system_error);
}

TEST(Descriptor, IsRefusedByAWaitForAll) {
    connected pair;
    auto_reset_event event(true);
    try {
        tocsin::wait_all(event, tocsin::source(readable(pair.one)));
        ADD_FAILURE() << "no error";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "tocsin::wait_all: source 1 is a descriptor");
    }
    EXPECT_TRUE(event.is_set());
}

TEST(Descriptor, AWaitWithoutOneOpensNone) {
    const std::size_t before = open_descriptors();
    auto_reset_event a;
    auto_reset_event b;
    (void)wait_any({.until = 1ms}, a, b, after(1h));
    (void)tocsin::wait_all({.until = 1ms}, a, b);
    const auto taken = result_of(a, [&] { return wait_any(a, b); }, [&] { a.set(); });
    EXPECT_EQ(taken.index, 0u);
    EXPECT_EQ(open_descriptors(), before);
}

// This thread waits until it sleeps, and then another thread sets `among`, one of the sources. So this thread has a
// doorbell, which it keeps. (A wait with a deadline may end before it needs one.)
void sleep_with_a_doorbell(const std::vector<source>& sources, auto_reset_event& among) {
    const pid_t self = support::thread_id();
    thread_group threads;
    threads.start("ends the sleep", [&] {
        until_parked(&among, 1);
        support::until_asleep(self);
        among.set();
    });
    (void)wait_any(sources);
}

TEST(Descriptor, AThousandWaitsOfAThreadOpenOneDoorbell) {
    connected pair;
    auto_reset_event event;
    sleep_with_a_doorbell({event, readable(pair.one)}, event);
    const std::size_t before = open_descriptors();
    for (int i = 0; i != 1000; ++i) (void)wait_any({.until = 1us}, readable(pair.one));
    EXPECT_EQ(open_descriptors(), before);
}

// Linux: how often the waits polled. Each of them times out. They don't spin, which would be one more poll. `among` is
// one of the sources.
support::system_calls calls_of_waits(int waits, const std::vector<source>& sources, auto_reset_event& among) {
    return support::system_calls_of([&] { sleep_with_a_doorbell(sources, among); },
                                    [&] {
                                        for (int i = 0; i != waits; ++i) {
                                            const auto ended = wait_any(
                                                {.until = 1ms, .spin = tocsin::spin_policy::none()}, sources);
                                            if (ended.status != wait_status::timed_out) _exit(1);
                                        }
                                    });
}

std::size_t polls_among(const support::system_calls& calls) {
    std::size_t found = calls.count(SYS_ppoll);
#if defined(SYS_poll)
    found += calls.count(SYS_poll);
#endif
    return found;
}

TEST(Descriptor, AWaitThatSleepsPollsOnce) {
    constexpr int waits = 10;
    for (const std::size_t descriptors : {std::size_t{14}, std::size_t{64}}) {  // 64 take memory
        std::vector<connected> pairs(descriptors);
        auto_reset_event in_front;
        auto_reset_event behind;
        std::vector<source> sources{in_front};
        for (auto& each : pairs) sources.push_back(readable(each.one));
        sources.push_back(behind);
        const auto calls = calls_of_waits(waits, sources, in_front);
        REQUIRE_KNOWN_CALLS(calls);
        EXPECT_EQ(calls.exit_code, 0);
        EXPECT_EQ(polls_among(calls), waits) << testing::PrintToString(calls);
        // AddressSanitizer maps memory now and then when a wait takes some.
        if (descriptors == 64 && support::address_sanitizer) continue;
        EXPECT_EQ(calls.numbers.size() - calls.looks_at_descriptors(), waits)
            << testing::PrintToString(calls);
    }
}

TEST(Descriptor, AnEventThatIsSetCostsAPollOnlyBehindADescriptor) {
    connected pair;
    auto_reset_event event;
    for (const bool is_behind : {false, true}) {
        std::vector<source> sources{event, readable(pair.one)};
        if (is_behind) std::ranges::reverse(sources);
        const auto calls = support::system_calls_of([&] {
            event.set();
            if (wait_any(sources).status != wait_status::signaled) _exit(1);
        });
        REQUIRE_KNOWN_CALLS(calls);
        EXPECT_EQ(calls.exit_code, 0);
        EXPECT_EQ(calls.numbers.size() - calls.looks_at_descriptors(), is_behind ? 1u : 0u)
            << testing::PrintToString(calls);
    }
}

// A timer behind a descriptor has passed, too; and a custom source can't be looked at without taking from it.
TEST(Descriptor, ThatIsReadyAtTheStartComesBeforeWhatIsBehindIt) {
    struct one_token {
        bool try_wait() noexcept { return std::exchange(there, false); }
        bool enlist(tocsin::wait_entry& entry) noexcept {
            if (there) return false;
            waiting.append(entry);
            return true;
        }
        void delist(tocsin::wait_entry& entry) noexcept { waiting.remove(entry); }
        bool there = true;
        tocsin::entry_list waiting;
    };
    connected pair;
    pair.write_byte();
    one_token token;
    tocsin::manual_reset_event gate(true);
    EXPECT_EQ(wait_any(readable(pair.one), after(0ns)).index, 0u);
    EXPECT_EQ(wait_any(readable(pair.one), token).index, 0u);
    EXPECT_TRUE(token.there);
    EXPECT_EQ(wait_any(readable(pair.one), gate).index, 0u);
    EXPECT_EQ(wait_any({.until = 0s}, readable(pair.one), gate).index, 0u);
    char byte;
    EXPECT_EQ(read(pair.one, &byte, 1), 1);
    EXPECT_EQ(wait_any(readable(pair.one), token).index, 1u);
    EXPECT_EQ(wait_any(readable(pair.one), after(0ns)).index, 1u);
}

TEST(Descriptor, ThatIsReadyIsFoundByAWaitThatIsOverAlready) {
    connected pair;
    pair.write_byte();
    auto_reset_event event;
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(wait_any({.stop = stop.get_token()}, event, readable(pair.one)).index, 1u);
    EXPECT_EQ(wait_any({.until = 0s}, event, readable(pair.one)).index, 1u);
    EXPECT_EQ(wait_any({.until = steady_clock::now() - 1s}, readable(pair.one), event).index, 0u);
}

TEST(Descriptor, AWaitContinuesAfterSignals) {
    support::signal_counter signals(SIGUSR1);
    connected pair;
    auto_reset_event event;
    std::atomic<bool> returned{false};
    thread_group threads;
    const auto waiter = threads.start("waiter", [&] {
        const auto found = wait_any(readable(pair.one), event);
        EXPECT_EQ(found.index, 1u);
        returned.store(true);
    });
    until_parked(&event, 1);
    for (int i = 0; i != 200; ++i) {
        threads.until_asleep(waiter);
        const long before = signals.count();
        pthread_kill(threads.handle(waiter), SIGUSR1);
        support::until("handled", [&] { return signals.count() > before; });
        ASSERT_FALSE(returned.load());
    }
    event.set();
    threads.join();
}

auto_reset_event set_by_handler;

TEST(Descriptor, ASignalHandlerThatSetsEndsTheWait) {
    const support::handled_signal handled(SIGUSR1, [](int) { set_by_handler.set(); });
    constexpr int rounds = 200;
    connected pair;
    std::atomic<int> released{0};
    thread_group threads;
    const auto waiter = threads.start("waiter", [&] {
        for (int i = 0; i != rounds; ++i) {
            EXPECT_EQ(wait_any(readable(pair.one), set_by_handler).index, 1u);
            released.fetch_add(1);
        }
    });
    (void)threads.id(waiter);
    for (int i = 0; i != rounds; ++i) {
        pthread_kill(threads.handle(waiter), SIGUSR1);
        support::until("released", [&] { return released.load() > i; });
    }
    threads.join();
}

TEST(Descriptor, MoreThanSixtyFourInOneWait) {
    std::vector<connected> pairs(100);
    std::vector<source> sources;
    for (auto& each : pairs) sources.push_back(readable(each.one));
    auto_reset_event event;
    sources.push_back(event);
    const auto found = result_of(event, [&] { return wait_any(sources); }, [&] { pairs[70].write_byte(); });
    EXPECT_EQ(found, (any_result{wait_status::signaled, 70, readiness::readable}));
    char byte;
    EXPECT_EQ(read(pairs[70].one, &byte, 1), 1);
    EXPECT_EQ(result_of(event, [&] { return wait_any(sources); }, [&] { event.set(); }).index, 100u);
}

TEST(Descriptor, MayBeGivenTwiceToReadAndToWrite) {
    connected pair;
    EXPECT_EQ(wait_any(readable(pair.one), writable(pair.one)).index, 1u);
    pair.write_byte();
    EXPECT_EQ(wait_any(readable(pair.one), writable(pair.one)).index, 0u);
}

// If no descriptor is left for a doorbell, the wait fails, and an event that is set during the wait stays set.
TEST(Descriptor, ExhaustionIsAnErrorAndLosesNothing) {
    EXPECT_EQ(support::ending_of_child([] {
                  int ends[2];
                  if (pipe(ends) != 0) return 1;
                  std::vector<int> all;
                  const rlimit few{64, 64};
                  setrlimit(RLIMIT_NOFILE, &few);
                  for (int next = dup(0); next >= 0; next = dup(0)) all.push_back(next);
                  auto_reset_event event;
                  try {
                      (void)wait_any({.until = 1s}, readable(ends[0]), event);
                      return 2;
                  } catch (const std::system_error& error) {
                      if (error.code().value() != EMFILE) return 3;
                  }
                  if (tocsin::waiting_on(&event) != 0) return 4;
                  if (write(ends[1], "x", 1) != 1) return 7;
                  if (wait_any(readable(ends[0]), event).index != 0) return 8;  // ready: needs no doorbell
                  char byte;
                  if (read(ends[0], &byte, 1) != 1) return 9;
                  event.set();
                  if (wait_any(readable(ends[0]), event).index != 1) return 5;  // ready: needs no doorbell
                  for (const int each : all) close(each);
                  return wait_any({.until = 1ms}, readable(ends[0]), event).status == wait_status::timed_out
                             ? 0
                             : 6;
              }),
              "");
}

}  // namespace

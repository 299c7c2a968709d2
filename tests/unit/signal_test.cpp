// SPDX-License-Identifier: Apache-2.0
// POSIX signals as sources: every delivery is found, nobody else's handler is robbed, and the former action comes back.
#include "child.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "sanitizer.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/signal.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#if TOCSIN_ON_POSIX
#include <csignal>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::signal_source;
using tocsin::wait_any;
using tocsin::wait_status;

std::atomic<int> handled{0};
std::atomic<int> handled_with_info{0};

void count(int) { ++handled; }
void count_with_info(int, siginfo_t* info, void* context) {
    if (info != nullptr && context != nullptr && info->si_pid == getpid()) ++handled_with_info;
}

struct sigaction action_of(int number) {
    struct sigaction now{};
    sigaction(number, nullptr, &now);
    return now;
}

// Sets an action, and at its end the one before.
class with_action {
public:
    with_action(int number, void (*handler)(int), int flags = 0) : number_(number) {
        struct sigaction made{};
        made.sa_handler = handler;
        made.sa_flags = flags;
        sigaction(number, &made, &before_);
    }
    ~with_action() { sigaction(number_, &before_, nullptr); }
    with_action(const with_action&) = delete;
    with_action& operator=(const with_action&) = delete;

private:
    const int number_;
    struct sigaction before_;
};

// How a child ends that does `body` and then kills itself with `number`.
template <class Body>
std::string ending_after_a_raise(int number, Body body) {
    return support::ending_of_child([&] {
        body();
        raise(number);
        return 0;
    });
}

int error_of(int number) {
    try {
        const signal_source made(number);
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    return 0;
}

TEST(SignalSource, IsReadyAfterEveryDeliveryUntilItIsTaken) {
    signal_source source(SIGUSR1);
    EXPECT_FALSE(source.try_wait());
    for (int round = 0; round != 3; ++round) {
        for (int i = 0; i != 100; ++i) kill(getpid(), SIGUSR1);
        EXPECT_EQ(wait_any(source).index, 0u);
        EXPECT_EQ(wait_any(source).index, 0u);  // a wait does not take it
        errno = 4242;
        EXPECT_TRUE(source.try_wait());
        EXPECT_FALSE(source.try_wait());
        EXPECT_EQ(errno, 4242);
        EXPECT_EQ(wait_any({.until = 1ms}, source).status, wait_status::timed_out);
    }
}

TEST(SignalSource, WakesAThreadThatWaitsForAnEventToo) {
    auto_reset_event event;
    signal_source source(SIGUSR1);
    support::thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(wait_any(event, source).index, 1u); });
    support::until_parked(&event, 1);
    kill(getpid(), SIGUSR1);
    threads.join();
    EXPECT_TRUE(source.try_wait());
}

TEST(SignalSource, EverySourceOfASignalGetsItAndNoOtherDoes) {
    signal_source one(SIGUSR1);
    signal_source two(SIGUSR1);
    signal_source other(SIGUSR2);
    raise(SIGUSR1);
    EXPECT_TRUE(one.try_wait());
    EXPECT_TRUE(two.try_wait());
    EXPECT_FALSE(other.try_wait());
    {
        const signal_source third(SIGUSR1);
    }
    raise(SIGUSR1);
    EXPECT_TRUE(one.try_wait());
}

TEST(SignalSource, ExactlyOneThreadTakesADelivery) {
    signal_source source(SIGUSR1);
    for (int round = 0; round != 200; ++round) {
        raise(SIGUSR1);
        std::atomic<int> taken{0};
        support::thread_group threads;
        for (int i = 0; i != 2; ++i) threads.start("taker", [&] { taken += source.try_wait() ? 1 : 0; });
        threads.join();
        ASSERT_EQ(taken, 1);
    }
}

TEST(SignalSource, CallsTheFormerHandlerAndRestoresIt) {
    const with_action plain(SIGUSR1, count);
    handled = 0;
    {
        signal_source source(SIGUSR1);
        raise(SIGUSR1);
        EXPECT_TRUE(source.try_wait());
        EXPECT_EQ(handled, 1);
    }
    EXPECT_EQ(action_of(SIGUSR1).sa_handler, count);
    raise(SIGUSR1);
    EXPECT_EQ(handled, 2);
}

TEST(SignalSource, CallsAFormerHandlerThatWantsInformation) {
    const with_action restored(SIGUSR1, SIG_DFL);
    struct sigaction made{};
    made.sa_sigaction = count_with_info;
    made.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaddset(&made.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &made, nullptr);
    handled_with_info = 0;
    const signal_source source(SIGUSR1);
    const struct sigaction now = action_of(SIGUSR1);
    EXPECT_NE(now.sa_flags & static_cast<int>(SA_NODEFER), 0);
    EXPECT_EQ(now.sa_flags & SA_RESTART, 0);
    EXPECT_EQ(sigismember(&now.sa_mask, SIGUSR2), 1);
    kill(getpid(), SIGUSR1);
    EXPECT_EQ(handled_with_info, 1);
}

TEST(SignalSource, LeavesChildrenToOthers) {
    const with_action plain(SIGCHLD, count);
    handled = 0;
    signal_source source(SIGCHLD);
    const pid_t child = fork();
    if (child == 0) _exit(5);
    EXPECT_EQ(wait_any(source).index, 0u);
    EXPECT_TRUE(source.try_wait());
    EXPECT_EQ(handled, 1);
    EXPECT_EQ(support::ending_of(child), "exit code 5");
}

// The library blocks all signals while it forks, and the next thread that forks waits meanwhile.
TEST(SignalSource, ThreadsThatForkAtOnceKeepTheirOwnMasks) {
    const signal_source source(SIGUSR1);
    std::atomic<int> wrong_masks{0};
    std::latch started{2};
    support::thread_group threads;
    threads.start_many(2, "forks", [&](int number) {
        sigset_t usr2;
        sigemptyset(&usr2);
        sigaddset(&usr2, SIGUSR2);
        if (number == 1) pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
        started.arrive_and_wait();
        for (int i = 0; i < support::rounds(200, 50); ++i) {
            const pid_t child = fork();
            if (child == 0) _exit(0);
            sigset_t now;
            pthread_sigmask(SIG_SETMASK, nullptr, &now);
            if (sigismember(&now, SIGUSR2) != number || sigismember(&now, SIGTERM) != 0) ++wrong_masks;
            waitpid(child, nullptr, 0);
        }
    });
    threads.join();
    EXPECT_EQ(wrong_masks, 0);
}

TEST(SignalSource, AProcessThatIgnoresItsChildrenStillLeavesNoZombies) {
    const with_action ignored(SIGCHLD, SIG_IGN);
    signal_source source(SIGCHLD);
    const pid_t child = fork();
    if (child == 0) _exit(5);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), -1);
    EXPECT_EQ(errno, ECHILD);
}

TEST(SignalSource, ReplacesTheDefaultActionOnlyWhileASourceExists) {
    EXPECT_EQ(ending_after_a_raise(SIGTERM, [] { new signal_source(SIGTERM); }), "");
    EXPECT_EQ(ending_after_a_raise(SIGTERM, [] { const signal_source gone(SIGTERM); }), "ended by signal 15");
}

// A program that ignored the signal still ignores it.
TEST(SignalSource, LeavesAnIgnoredSignalIgnored) {
    const with_action ignored(SIGUSR1, SIG_IGN);
    {
        signal_source source(SIGUSR1);
        raise(SIGUSR1);
        EXPECT_TRUE(source.try_wait());
    }
    EXPECT_EQ(action_of(SIGUSR1).sa_handler, SIG_IGN);
}

void (*under)(int, siginfo_t*, void*) = nullptr;
void pass_under(int number, siginfo_t* info, void* context) { under(number, info, context); }

// Installs a handler over the library's that calls the library's.
void install_over(int number) {
    struct sigaction made{};
    struct sigaction before{};
    made.sa_sigaction = pass_under;
    made.sa_flags = SA_SIGINFO;
    sigaction(number, nullptr, &before);
    under = before.sa_sigaction;
    sigaction(number, &made, nullptr);
}

TEST(SignalSource, LeavesALaterHandlerInPlace) {
    EXPECT_EQ(support::ending_of_child([] {
                  handled = 0;
                  const with_action plain(SIGUSR1, count);
                  auto source = std::make_unique<signal_source>(SIGUSR1);
                  install_over(SIGUSR1);
                  raise(SIGUSR1);
                  if (!source->try_wait() || handled != 1) return 1;
                  if (error_of(SIGUSR1) != EBUSY) return 2;  // it would call itself without end
                  source = nullptr;
                  if (action_of(SIGUSR1).sa_sigaction != pass_under) return 3;
                  raise(SIGUSR1);
                  return handled == 2 ? 0 : 4;
              }),
              "");
    // The later handler calls the library's without a condition. Without the library it would have found SIG_DFL, which
    // nobody can call. The signal has a handler, so its default action must not happen.
    EXPECT_EQ(ending_after_a_raise(SIGTERM,
                                   [] {
                                       const signal_source source(SIGTERM);
                                       install_over(SIGTERM);
                                   }),
              "");
}

// The usual idiom: calls the handler that was there before, if there was one.
struct sigaction found_by_chainer{};
void chain(int number, siginfo_t* info, void* context) {
    ++handled;
    if (found_by_chainer.sa_handler == SIG_DFL || found_by_chainer.sa_handler == SIG_IGN) return;
    if ((found_by_chainer.sa_flags & SA_SIGINFO) != 0) {
        found_by_chainer.sa_sigaction(number, info, context);
    } else {
        found_by_chainer.sa_handler(number);
    }
}
void install_chainer(int number, int flags = 0) {
    struct sigaction made{};
    made.sa_sigaction = chain;
    made.sa_flags = SA_SIGINFO | flags;
    sigaction(number, &made, &found_by_chainer);
}

// Whether there was a source before makes no difference to a program whose own handler handles the signal.
TEST(SignalSource, LeavesTheSignalToALaterHandlerThatChainsOnCondition) {
    for (const int number : {SIGTERM, SIGTSTP, SIGWINCH}) {
        EXPECT_EQ(support::ending_of_child([number] {
                      handled = 0;
                      auto source = std::make_unique<signal_source>(number);
                      install_chainer(number);
                      raise(number);
                      if (!source->try_wait() || handled != 1) return 1;
                      source = nullptr;
                      raise(number);
                      raise(number);
                      if (action_of(number).sa_sigaction != chain) return 2;
                      return handled == 3 ? 0 : 3;
                  }),
                  "")
            << number;
    }
}

// The system has set the default action before it calls such a handler.
TEST(SignalSource, LeavesTheSignalToALaterHandlerThatIsCalledOnce) {
    EXPECT_EQ(ending_after_a_raise(SIGTERM,
                                   [] {
                                       const signal_source source(SIGTERM);
                                       install_chainer(SIGTERM, static_cast<int>(SA_RESETHAND));
                                   }),
              "");
}

TEST(SignalSource, TheDefaultActionHappensOnceALaterHandlerIsGone) {
    EXPECT_EQ(ending_after_a_raise(SIGTERM,
                                   [] {
                                       auto source = std::make_unique<signal_source>(SIGTERM);
                                       install_chainer(SIGTERM);
                                       source = nullptr;
                                       raise(SIGTERM);
                                       sigaction(SIGTERM, &found_by_chainer, nullptr);
                                   }),
              "ended by signal 15");
}

// The library's handler has taken itself away, so it is in no chain, and a new source is not refused.
TEST(SignalSource, AfterALaterHandlerIsGoneADeliveryRestoresTheFormerHandler) {
    const with_action plain(SIGUSR1, count);
    auto source = std::make_unique<signal_source>(SIGUSR1);
    install_chainer(SIGUSR1);
    source = nullptr;
    sigaction(SIGUSR1, &found_by_chainer, nullptr);
    handled = 0;
    raise(SIGUSR1);
    EXPECT_EQ(handled, 1);
    EXPECT_EQ(action_of(SIGUSR1).sa_handler, count);
    signal_source again(SIGUSR1);
    raise(SIGUSR1);
    EXPECT_TRUE(again.try_wait());
    EXPECT_EQ(handled, 2);
}

// A handler that is about to restore the former action does not take away the handler of a new source.
TEST(SignalSource, ANewSourceKeepsItsHandlerWhileADeliveryRestoresTheFormerOne) {
    const with_action plain(SIGUSR1, count);
    for (int round = 0; round < support::rounds(300, 30); ++round) {
        {
            const signal_source gone(SIGUSR1);
            install_chainer(SIGUSR1);
        }
        sigaction(SIGUSR1, &found_by_chainer, nullptr);  // this library's handler, which has no source
        std::latch started{2};
        support::thread_group threads;
        threads.start("sender", [&] {
            started.arrive_and_wait();
            raise(SIGUSR1);
        });
        started.arrive_and_wait();
        signal_source source(SIGUSR1);
        threads.join();
        (void)source.try_wait();
        raise(SIGUSR1);
        ASSERT_TRUE(source.try_wait());
    }
}

#if defined(__linux__)
// The child of a vfork runs no fork handlers, and shares the memory of its parent.
TEST(SignalSource, TheChildOfAVforkHasTheDefaultAction) {
    signal_source source(SIGTERM);
    const pid_t child = vfork();
    if (child == 0) {
        kill(getpid(), SIGTERM);  // musl's raise() would reach the parent
        _exit(0);
    }
    EXPECT_EQ(support::ending_of(child), "ended by signal 15");
    EXPECT_FALSE(source.try_wait());
    raise(SIGTERM);
    EXPECT_TRUE(source.try_wait());
}
#endif

// Somebody saves this library's handler while a source exists, and puts it back when none does.
TEST(SignalSource, ASavedHandlerThatIsPutBackRestoresTheDefaultAction) {
    const auto child = support::ending_of_child([] {
        struct sigaction saved{};
        {
            const signal_source source(SIGTERM);
            sigaction(SIGTERM, nullptr, &saved);
        }
        sigaction(SIGTERM, &saved, nullptr);
        raise(SIGTERM);
        return 0;
    });
    EXPECT_EQ(child, "ended by signal 15");
}

TEST(SignalSource, MayBeMadeAgainAfterSomebodyRestoredTheDefault) {
    const with_action restored(SIGUSR1, SIG_DFL);
    const signal_source first(SIGUSR1);
    signal(SIGUSR1, SIG_IGN);
    signal_source second(SIGUSR1);
    raise(SIGUSR1);
    EXPECT_TRUE(second.try_wait());
}

TEST(SignalSource, ABlockedSignalIsFoundWhenItIsUnblocked) {
    signal_source source(SIGUSR1);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, nullptr);
    raise(SIGUSR1);
    EXPECT_FALSE(source.try_wait());
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    EXPECT_TRUE(source.try_wait());
}

TEST(SignalSource, BelongsToTheProcessThatMadeIt) {
    signal_source source(SIGUSR1);
    EXPECT_EQ(support::ending_of_child([] {
                  raise(SIGUSR1);  // has no source here: the default action
                  return 1;
              }),
              "ended by signal " + std::to_string(SIGUSR1));
    EXPECT_EQ(support::ending_of_child([] {
                  signal_source own(SIGUSR1);
                  raise(SIGUSR1);
                  return own.try_wait() ? 0 : 1;
              }),
              "");
    EXPECT_FALSE(source.try_wait()) << "a signal of a child reached the parent's source";
    auto* const left = new signal_source(SIGUSR2);
    EXPECT_EQ(support::ending_of_child([left] {
                  delete left;
                  signal_source own(SIGUSR2);
                  raise(SIGUSR2);
                  return own.try_wait() ? 0 : 1;
              }),
              "");
    raise(SIGUSR2);
    EXPECT_TRUE(left->try_wait());
    delete left;
}

TEST(SignalSource, RefusesWhatItCannotPromise) {
    for (const int refused :
         {-1, 0, 1000, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
        EXPECT_THROW(signal_source{refused}, std::invalid_argument) << refused;
    const with_action once(SIGUSR1, count, static_cast<int>(SA_RESETHAND));
    EXPECT_EQ(error_of(SIGUSR1), ENOTSUP);
    EXPECT_EQ(action_of(SIGUSR1).sa_handler, count);
}

TEST(SignalSource, SaysWhenThereAreTooMany) {
    std::vector<std::unique_ptr<signal_source>> all;
    for (int i = 0; i != signal_source::max; ++i) all.push_back(std::make_unique<signal_source>(SIGUSR1));
    EXPECT_EQ(error_of(SIGUSR2), EAGAIN);
    raise(SIGUSR1);
    for (auto& each : all) EXPECT_TRUE(each->try_wait());
    all.clear();
    EXPECT_EQ(error_of(SIGUSR2), 0);
    EXPECT_EQ(action_of(SIGUSR1).sa_handler, SIG_DFL);
}

TEST(SignalSource, IsAMemberOfASetAndResumesACoroutine) {
    signal_source source(SIGUSR1);
    tocsin::wait_set set;
    set.add(source, 7);
    raise(SIGUSR1);
    tocsin::ready_item found[2];
    ASSERT_EQ(set.wait(found).count, 1u);
    EXPECT_EQ(found[0].tag, 7u);
    EXPECT_TRUE(source.try_wait());
    EXPECT_TRUE(set.remove(source));

    manual_reset_event resumed;
    const support::task waiting = [](const signal_source& what, manual_reset_event& done) -> support::task {
        co_await tocsin::async_wait(what);
        done.set();
    }(source, resumed);
    EXPECT_FALSE(resumed.is_set());
    kill(getpid(), SIGUSR1);
    resumed.wait();
    waiting.join();
    EXPECT_THROW(tocsin::wait_all(resumed, tocsin::source(source)), std::invalid_argument);
}

// Deliveries to all threads while sources come and go: nothing hangs, nothing is used after its end.
TEST(SignalSource, ComesAndGoesUnderAStorm) {
    const with_action plain(SIGUSR1, count);
    signal_source always(SIGUSR1);
    std::atomic<bool> done{false};
    support::thread_group threads;
    for (int i = 0; i != 2; ++i) {
        threads.start("sender", [&] {
            while (!done) kill(getpid(), SIGUSR1);
        });
    }
    threads.start("maker", [&] {
        for (int i = 0; i != 300; ++i) {
            signal_source one(SIGUSR1);
            raise(SIGUSR1);
            EXPECT_TRUE(one.try_wait());
        }
        done = true;
    });
    threads.join();
    wait_any(always);
    EXPECT_TRUE(always.try_wait());
}

TEST(SignalSource, SaysWhichSignalItRefusesAndWhy) {
    const auto message_of = [](int number) -> std::string {
        try {
            const tocsin::signal_source one(number);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "none";
    };
    EXPECT_EQ(message_of(SIGKILL), "tocsin::signal_source: signal 9 can't be handled: the system acts on it");
    EXPECT_EQ(message_of(999), "tocsin::signal_source: signal 999 does not exist");
    EXPECT_EQ(
        message_of(SIGSEGV),
        "tocsin::signal_source: signal 11 is sent to a thread that can't continue: no source can have it");
}

}  // namespace
#endif

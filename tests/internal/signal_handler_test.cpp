// Trap 22: set() in a signal handler that interrupts set() or a wait in the same thread.
#include "facts.hpp"
#include "platform/futex.hpp"
#include "printing.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include <pthread.h>
#include <signal.h>

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::thread_group;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;
using tocsin::wait_status;

auto_reset_event from_the_handler;
auto_reset_event also_in_the_thread;
manual_reset_event gate;

// What wakes a sleeper of the library tells what it sleeps on.
bool sleeps_on_the_portable_futex() {
    namespace platform = tocsin::platform;
    platform::futex_word word{0};
    std::atomic<bool> woken{false};
    thread_group threads;
    threads.start("sleeper", [&] {
        while (!woken.load() && platform::futex_wait(word, 0, 300ms) == platform::sleep_result::returned) {
            woken.store(true);
        }
    });
    while (threads.finished() == 0) {
        platform::portable_futex::futex_wake_one(&word);
        std::this_thread::sleep_for(1ms);  // no fact to wait for: it asks again until they end
    }
    return woken.load();
}

TEST(Trap22, SetInASignalHandlerDoesNotDeadlockWithWhatItInterrupts) {
    if (sleeps_on_the_portable_futex()) GTEST_SKIP() << "not promised there: it sleeps under a mutex";
    const support::handled_signal handled(SIGUSR1, [](int) {
        from_the_handler.set();
        also_in_the_thread.set();
        gate.set();
    });
    std::atomic<bool> enough{false};
    std::atomic<long> received{0};
    std::atomic<long> rounds{0};
    thread_group threads;
    threads.start("interrupted", [&] {
        for (; !enough.load(); rounds.fetch_add(1)) {
            also_in_the_thread.set();
            (void)also_in_the_thread.wait_for(20us);
            gate.set();
            gate.reset();
            (void)gate.wait_for(10us);
        }
    });
    threads.start("receiver", [&] {
        while (!enough.load()) {
            if (from_the_handler.wait_for(1ms) == wait_status::signaled) received.fetch_add(1);
            also_in_the_thread.set();
        }
    });
    threads.start("other receiver", [&] {
        while (!enough.load()) (void)also_in_the_thread.wait_for(30us);
    });
    (void)threads.id(0);
    const auto end = steady_clock::now() + 400ms;
    // A signal a round, so that few meet one critical section, which puts off so many calls and no more.
    for (long seen = 0; steady_clock::now() < end; ++seen) {
        pthread_kill(threads.handle(0), SIGUSR1);
        support::until("the interrupted thread goes on", [&] { return rounds.load() > seen; });
        seen = rounds.load();
        std::this_thread::sleep_for(30us);  // no fact to wait for: anywhere in a round
    }
    from_the_handler.reset();
    const long so_far = received.load();
    pthread_kill(threads.handle(0), SIGUSR1);
    support::until("the last signal arrives", [&] { return received.load() > so_far; });
    enough.store(true);
    threads.join();
}

}  // namespace

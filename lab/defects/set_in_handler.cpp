// SPDX-License-Identifier: Apache-2.0
// A thread sets and resets an event in a loop, and a timer's signal interrupts it with a handler that sets the same
// event.
#include "reproduction.hpp"

#include <tocsin/event.hpp>

#include <atomic>
#include <csignal>

#include <sys/time.h>

namespace {

using namespace reproduction;
using namespace std::chrono_literals;

tocsin::manual_reset_event event;
std::atomic<std::uint64_t> signals{0};
std::atomic<std::uint64_t> loops{0};
std::atomic<bool> over{false};

void in_handler(int) {
    event.set();
    signals.fetch_add(1, std::memory_order_relaxed);
}

void arm(long microseconds) {
    const itimerval each{.it_interval = {.tv_sec = 0, .tv_usec = microseconds},
                         .it_value = {.tv_sec = 0, .tv_usec = microseconds}};
    setitimer(ITIMER_REAL, &each, nullptr);
}

void work(std::atomic<pid_t>& id, std::atomic<bool>& ended) {
    id = this_thread();
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
    while (!over) {
        event.set();
        event.reset();
        loops.fetch_add(1, std::memory_order_relaxed);
    }
    ended = true;
}

outcome play(double seconds) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);  // here and in every thread but the worker
    std::signal(SIGALRM, in_handler);
    static std::atomic<pid_t> id{0};
    static std::atomic<bool> ended{false};
    std::thread(work, std::ref(id), std::ref(ended)).detach();
    arm(100);
    outcome found{.version = "manual_reset_event"};
    const budget time(seconds);
    std::uint64_t last = 0;
    while (!time.spent()) {
        std::this_thread::sleep_for(10ms);
        const std::uint64_t now = loops;
        if (now == last && id != 0 && proven_to_hang(stat_of_thread(id), [&] { return loops == now; })) {
            found.seen = 1;
            break;
        }
        last = now;
    }
    over = true;
    arm(0);
    found.tries = signals;
    return found;
}

}  // namespace

int main(int count, char** arguments) { return run(count, arguments, play); }

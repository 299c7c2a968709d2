// SPDX-License-Identifier: Apache-2.0
// State: what handlers use is static, because they can reach nothing else. One act at a time uses it. When its threads
// have ended, every signal has been handled (crew::run waits for that).
#include "disturbances.hpp"

#include "complaints.hpp"
#include "sanitizer.hpp"
#include "waits.hpp"

#include <tocsin/event.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

namespace soak {
namespace {

using namespace std::chrono_literals;

// Signals. A handler counts and rings one of the bells. Each bell has a listener, which looks at the count only when
// the bell has rung. There are fewer bells than set() calls that a thread can defer at once.
struct alignas(64) bell {
    tocsin::auto_reset_event event;
    std::atomic<std::uint64_t> rung{0};   // by handlers, before they set the event
    std::atomic<std::uint64_t> heard{0};  // by the listener
};
std::array<bell, 4> bells;
std::atomic<bool> no_more_signals{false};

void handle(int) {
    const int before = errno;
    worker* const self = worker::current();
    if (self == nullptr) return;
    if (handlers_may_set()) {
        bell& mine = bells[self->number % bells.size()];
        mine.rung.fetch_add(1, std::memory_order_relaxed);
        mine.event.set();
    }
    self->signals_handled.fetch_add(1);
    if (errno != before) std::abort();  // set() promises not to change it
}

void listen(worker& self, bell& mine) {
    while (!no_more_signals.load() || mine.heard.load() != mine.rung.load()) {
        wait_firmly(mine.event, self);
        const std::uint64_t rung = mine.rung.load(std::memory_order_relaxed);
        const std::uint64_t heard = mine.heard.load(std::memory_order_relaxed);
        self.counts.out(rung - heard);
        self.counts.race(rung - heard);
        mine.heard.store(rung);
        self.done();
    }
}

bool all_heard() {
    for (bell& each : bells) {
        if (each.heard.load() != each.rung.load()) return false;
    }
    return true;
}

void bombard(worker& self, crew& hands) {
    while (!self.is_over()) {
        hands.with_all([&](worker& each, pthread_t thread, pid_t) {
            // One at a time for each thread: two pending signals of one thread would become one.
            if (each.signals_sent.load() != each.signals_handled.load()) return;
            each.signals_sent.fetch_add(1);
            pthread_kill(thread, SIGUSR1);
            if (handlers_may_set()) self.counts.in();
            self.done();
        });
        std::this_thread::sleep_for(std::chrono::microseconds(self.random.below(4'000)));
        // Every ring is heard without another ring; if one isn't, this hangs and the watchdog reports it.
        while (!all_heard()) std::this_thread::sleep_for(20us);
        self.done();
    }
}

// Ends the listeners once all targets have ended.
void end_signals(worker& self, crew& hands) {
    while (!self.is_over() || !hands.targets_have_ended()) {
        std::this_thread::sleep_for(1ms);
        self.done();
    }
    no_more_signals.store(true);
    for (bell& each : bells) each.event.set();
}

// Processors.
using processor_set = std::vector<int>;

processor_set allowed_processors() {
    static const processor_set found = [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        processor_set all;
        if (sched_getaffinity(0, sizeof set, &set) != 0) return all;
        for (int i = 0; i < CPU_SETSIZE; ++i) {
            if (CPU_ISSET(i, &set)) all.push_back(i);
        }
        return all;
    }();
    return found;
}

void allow(pid_t thread, const processor_set& processors) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int each : processors) CPU_SET(each, &set);
    (void)sched_setaffinity(thread, sizeof set,
                            &set);  // if that processor is gone, the thread stays where it is
}

void move_one(worker& self, crew& hands) {
    const processor_set all = allowed_processors();
    hands.with_one(self.random, [&](worker&, pthread_t, pid_t id) {
        if (self.random.one_in(3)) {
            allow(id, all);
        } else {
            allow(id, {all[self.random.below(all.size())]});
        }
        ++disturbed().moves;
    });
}

void unplug_one(worker& self, crew& hands) {
    processor_set rest = allowed_processors();
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(self.random.below(rest.size())));
    hands.with_all([&](worker&, pthread_t, pid_t id) { allow(id, rest); });
    ++disturbed().removals;
    std::this_thread::sleep_for(std::chrono::milliseconds(self.random.below(20)));
    hands.with_all([&](worker&, pthread_t, pid_t id) { allow(id, allowed_processors()); });
}

void move(worker& self, crew& hands) {
    if (allowed_processors().size() < 2) return;
    while (!self.is_over()) {
        move_one(self, hands);
        if (self.random.one_in(100)) unplug_one(self, hands);
        std::this_thread::sleep_for(std::chrono::microseconds(self.random.below(2'000)));
        self.done();
    }
}

// Priorities.
bool schedule(pid_t thread, int policy, int priority) {
    sched_param parameter{};
    parameter.sched_priority = priority;
    return sched_setscheduler(thread, policy | SCHED_RESET_ON_FORK, &parameter) == 0;
}

void change_nice_value(worker& self, crew& hands) {
    static const int usual = getpriority(PRIO_PROCESS, 0);
    hands.with_one(self.random, [&](worker&, pthread_t, pid_t id) {
        const int wanted = usual + static_cast<int>(self.random.below(6));
        if (setpriority(PRIO_PROCESS, static_cast<id_t>(id), wanted) == 0) ++disturbed().priorities;
    });
}

// One thread at a time, for at most two milliseconds of fifty, and this thread's priority is higher. So it can't starve
// the machine, not even if it spins for ever.
void make_real_time(worker& self, crew& hands) {
    worker* chosen = nullptr;
    pid_t chosen_id = 0;
    hands.with_one(self.random, [&](worker& each, pthread_t, pid_t id) {
        if (!schedule(id, SCHED_FIFO, 1)) return;
        each.held.store(true);  // it must not end before it is an ordinary thread again
        chosen = &each;
        chosen_id = id;
    });
    if (chosen == nullptr) return;
    std::this_thread::sleep_for(std::chrono::microseconds(self.random.below(2'000)));
    schedule(chosen_id, SCHED_OTHER, 0);
    chosen->held.store(false);
    ++disturbed().real_time;
}

void change_priorities(worker& self, crew& hands) {
    // Sanitizers have locks of their own, which spin regardless of priorities.
    const bool sanitized = support::thread_sanitizer || support::address_sanitizer;
    const bool real_time = !sanitized && schedule(0, SCHED_FIFO, 2);
    while (!self.is_over()) {
        change_nice_value(self, hands);
        if (real_time) make_real_time(self, hands);
        std::this_thread::sleep_for(50ms);
        self.done();
    }
}

}  // namespace

disturbance_counts& disturbed() {
    static disturbance_counts all;
    return all;
}

// ThreadSanitizer delays handlers for longer than a set may wait.
bool handlers_may_set() { return TOCSIN_SOAK_HANDLERS_SET != 0 && !support::thread_sanitizer; }

void spread(crew& hands) {
    const processor_set all = allowed_processors();
    std::size_t next = 0;
    hands.with_all([&](worker&, pthread_t, pid_t id) { allow(id, {all[next++ % all.size()]}); });
}

void disturb(crew& hands, book& signals, book& others) {
    static const bool installed = [] {
        struct sigaction action{};
        action.sa_handler = handle;  // without SA_RESTART: system calls end early
        return sigaction(SIGUSR1, &action, nullptr) == 0;
    }();
    expect(installed, "no handler for the signal could be installed");
    no_more_signals.store(false);
    hands.start(signals, "bombards", [&hands](worker& self) { bombard(self, hands); }, target::no);
    if (handlers_may_set()) {
        for (bell& each : bells) {
            hands.start(signals, "listens", [&each](worker& self) { listen(self, each); }, target::no);
        }
    }
    hands.start(
        signals, "ends the signals", [&hands](worker& self) { end_signals(self, hands); }, target::no);
    hands.start(others, "moves threads", [&hands](worker& self) { move(self, hands); }, target::no);
    hands.start(
        others, "changes priorities", [&hands](worker& self) { change_priorities(self, hands); }, target::no);
}

}  // namespace soak

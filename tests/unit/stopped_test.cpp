// SPDX-License-Identifier: Apache-2.0
// A process that is stopped (by a signal, a debugger, a frozen control group) does not run, but the clocks do. So every
// kind of timed wait ends at its deadline or, if the process is stopped then, as soon as the process runs again. The
// time for which the process was stopped is not added.
#include "child.hpp"
#include "facts.hpp"
#include "task.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sys/ptrace.h>
#endif

#if TOCSIN_ON_POSIX
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using tocsin::deadline;
using tocsin::wait_status;

constexpr wait_status timed_out = wait_status::timed_out;

int idle_descriptor() {
    int ends[2];
    return pipe(ends) == 0 ? ends[0] : -1;
}

// Not before `at`: the steady clock is read first, so a delay between the two looks only makes it later.
deadline on_system_clock(steady_clock::time_point at) {
    const auto left = at - steady_clock::now();
    return std::chrono::ceil<system_clock::duration>(system_clock::now() + left);
}

// A clock of a user.
struct own_clock {
    using duration = steady_clock::duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<own_clock>;
    static time_point now() noexcept { return time_point(steady_clock::now().time_since_epoch()); }
};

template <class Begin>
bool join(Begin begin) {
    bool late = false;
    const support::task waiting = begin(late);
    waiting.join();
    return late;
}

// Each waits until the time and returns whether the wait has timed out.
struct timed_wait {
    const char* name;
    bool (*make)(steady_clock::time_point);
};

const timed_wait waits[]{
    {"a manual-reset event",
     [](auto until) {
         tocsin::manual_reset_event e;
         return e.wait_until(until) == timed_out;
     }},
    {"an auto-reset event, system clock",
     [](auto until) {
         tocsin::auto_reset_event e;
         return e.wait_until(on_system_clock(until)) == timed_out;
     }},
    {"an event with a stop token, a clock of one's own",
     [](auto until) {
         tocsin::manual_reset_event e;
         const std::stop_source stop;
         const own_clock::time_point at(until.time_since_epoch());
         return e.wait_until(at, stop.get_token()) == timed_out;
     }},
    {"a semaphore",
     [](auto until) {
         tocsin::counting_semaphore<5> s(1);
         return !s.try_acquire_until(2, until);
     }},
    {"a condition",
     [](auto until) {
         std::mutex m;
         std::unique_lock lock(m);
         tocsin::condition c;
         return !c.wait_until(lock, until, [] { return false; });
     }},
    {"condition::wait_any",
     [](auto until) {
         std::mutex m;
         std::unique_lock lock(m);
         tocsin::condition c;
         tocsin::auto_reset_event e;
         return c.wait_any(lock, {.until = until}, e).status == timed_out;
     }},
    {"condition::wait_any with a descriptor",
     [](auto until) {
         std::mutex m;
         std::unique_lock lock(m);
         tocsin::condition c;
         return c.wait_any(lock, {.until = until}, tocsin::readable(idle_descriptor())).status == timed_out;
     }},
    {"a latch",
     [](auto until) {
         tocsin::latch l(1);
         return l.wait_until(until) == timed_out;
     }},
    {"a barrier",
     [](auto until) {
         static tocsin::barrier b(2);
         return b.wait_until(b.arrive(), until) == timed_out;
     }},
    {"receive",
     [](auto until) {
         tocsin::channel<int> c(1);
         return c.receive_until(until).status() == tocsin::channel_status::timed_out;
     }},
    {"send",
     [](auto until) {
         tocsin::channel<int> c(1);
         c.send(1);
         return c.send_until(2, until) == tocsin::channel_status::timed_out;
     }},
    {"an address",
     [](auto until) {
         const std::atomic<std::uint32_t> word{0};
         return tocsin::wait_on_address(&word, 0u, until) == tocsin::address_status::timed_out;
     }},
    {"a word_lock",
     [](auto until) {
         static tocsin::word_lock l;
         l.lock();
         return !l.try_lock_until(until);
     }},
    {"wait_any, one event",
     [](auto until) {
         tocsin::auto_reset_event e;
         return tocsin::wait_any({.until = until}, e).status == timed_out;
     }},
    {"wait_any with a descriptor",
     [](auto until) {
         tocsin::auto_reset_event e;
         return tocsin::wait_any({.until = until}, e, tocsin::readable(idle_descriptor())).status ==
                timed_out;
     }},
    {"wait_any with a descriptor, system clock",
     [](auto until) {
         return tocsin::wait_any({.until = on_system_clock(until)}, tocsin::readable(idle_descriptor()))
                    .status == timed_out;
     }},
    {"wait_any with a descriptor, a clock of one's own",
     [](auto until) {
         const own_clock::time_point at(until.time_since_epoch());
         return tocsin::wait_any({.until = at}, tocsin::readable(idle_descriptor())).status == timed_out;
     }},
    {"wait_any with a descriptor and a stop token",
     [](auto until) {
         const std::stop_source stop;
         return tocsin::wait_any({.until = until, .stop = stop.get_token()},
                                 tocsin::readable(idle_descriptor()))
                    .status == timed_out;
     }},
    {"wait_any with a descriptor and at()",
     [](auto until) {
         return tocsin::wait_any(tocsin::readable(idle_descriptor()), tocsin::at(until)).index == 1;
     }},
    {"wait_any with a signal",
     [](auto until) {
         const tocsin::signal_source usr2(SIGUSR2);
         return tocsin::wait_any({.until = until}, usr2).status == timed_out;
     }},
    {"wait_all",
     [](auto until) {
         tocsin::auto_reset_event a;
         tocsin::manual_reset_event b;
         return tocsin::wait_all({.until = until}, a, b) == timed_out;
     }},
    {"a wait_set",
     [](auto until) {
         tocsin::wait_set set;
         set.add(tocsin::readable(idle_descriptor()), 1);
         std::array<tocsin::ready_item, 1> items;
         return set.wait({.until = until}, items).status == timed_out;
     }},
    {"a wait_set, system clock",
     [](auto until) {
         tocsin::wait_set set;
         set.add(tocsin::readable(idle_descriptor()), 1);
         std::array<tocsin::ready_item, 1> items;
         return set.wait({.until = on_system_clock(until)}, items).status == timed_out;
     }},
    {"a wait_set with a wait_timer",
     [](auto until) {
         tocsin::wait_set set;
         tocsin::wait_timer t;
         set.add(t, 1);
         t.reset(until);
         std::array<tocsin::ready_item, 1> items;
         return set.wait(items).count == 1;
     }},
    {"a coroutine",
     [](auto until) {
         tocsin::auto_reset_event e;
         return join([&](bool& late) -> support::task {
             late = co_await tocsin::async_wait({.until = until}, e) == timed_out;
         });
     }},
    {"a coroutine with a descriptor, system clock",
     [](auto until) {
         return join([=](bool& late) -> support::task {
             const auto ended = co_await tocsin::async_wait_any({.until = on_system_clock(until)},
                                                                tocsin::readable(idle_descriptor()));
             late = ended.status == timed_out;
         });
     }},
    {"an operation",
     [](auto until) {
         tocsin::auto_reset_event e;
         tocsin::manual_reset_event ended;
         wait_status how{};
         auto waiting = tocsin::any_operation(
             [&](tocsin::any_result result) noexcept {
                 how = result.status;
                 ended.set();
             },
             {.until = until}, e);
         waiting.start();
         ended.wait();
         return how == timed_out;
     }},
    {"handler_thread::post_until",
     [](auto until) {
         tocsin::manual_reset_event running;
         tocsin::manual_reset_event over;
         tocsin::handler_thread full({.capacity = 1, .on_exception = {}});
         full.post([&] {
             running.set();
             over.wait();
         });
         running.wait();
         full.post([] {});
         const auto how = full.post_until([] {}, until);
         over.set();
         return how == tocsin::post_status::timed_out;
     }},
    {"group_commit::submit",
     [](auto until) {
         tocsin::manual_reset_event flushing;
         tocsin::manual_reset_event over;
         tocsin::group_commit<int> commit([&](tocsin::commit_group<int>) {
             flushing.set();
             over.wait();
         });
         std::thread leader([&] {
             int mine = 0;
             commit.submit(mine);
         });
         flushing.wait();
         int mine = 1;
         const auto how = commit.submit({.until = until}, mine);
         over.set();
         leader.join();
         return how == tocsin::commit_status::timed_out;
     }},
    {"a coalescer",
     [](auto until) {
         tocsin::coalescer frames(until - steady_clock::now());
         frames.start();
         return frames.pause() == wait_status::signaled;
     }},
};

constexpr std::size_t count = std::size(waits);

// Memory that parent and child share.
struct shared_notes {
    std::atomic<std::size_t> begun{0};
    std::atomic<bool> timed_out[count]{};
    std::atomic<nanoseconds::rep> ended[count]{};  // on the steady clock
};

// A child in which each wait has a thread, and waits until `until`.
class waiting_child {
public:
    explicit waiting_child(nanoseconds length) : until_(steady_clock::now() + length) {
        void* const memory =
            mmap(nullptr, sizeof(shared_notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        notes_ = new (memory) shared_notes;
        child_ = fork();
        if (child_ == 0) wait_and_exit();
        support::until("the child's threads wait", [&] { return notes_->begun == count; });
        std::this_thread::sleep_for(50ms);  // no fact to wait for: another process's threads fall asleep
    }
    waiting_child(const waiting_child&) = delete;
    waiting_child& operator=(const waiting_child&) = delete;
    ~waiting_child() { munmap(notes_, sizeof(shared_notes)); }

    pid_t id() const { return child_; }
    steady_clock::time_point until() const { return until_; }

    void stop() const {
        kill(child_, SIGSTOP);
        int status = 0;
        waitpid(child_, &status, WUNTRACED);
    }
    void go_on() const { kill(child_, SIGCONT); }
    bool has_ended() const {
        for (const auto& each : notes_->ended)
            if (each == 0) return false;
        return true;
    }

    // Every wait has timed out, not early, and at most `late` after the time.
    void expect_timeouts(steady_clock::time_point at, nanoseconds late) {
        EXPECT_EQ(support::ending_of(child_), "");
        for (std::size_t i = 0; i != count; ++i) {
            const steady_clock::time_point ended(nanoseconds(notes_->ended[i].load()));
            EXPECT_TRUE(notes_->timed_out[i]) << waits[i].name;
            EXPECT_GE(ended, until_) << waits[i].name;
            EXPECT_LE((ended - at) / 1ms, late / 1ms) << "milliseconds late: " << waits[i].name;
        }
    }

private:
    void wait_and_exit() {
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i != count; ++i) {
            threads.emplace_back([this, i] {
                ++notes_->begun;
                notes_->timed_out[i] = waits[i].make(until_);
                notes_->ended[i] = nanoseconds(steady_clock::now().time_since_epoch()).count();
            });
        }
        for (std::thread& each : threads) each.join();
        _exit(0);
    }

    const steady_clock::time_point until_;
    shared_notes* notes_ = nullptr;
    pid_t child_ = 0;
};

// Waits that count only the time for which they run would end two seconds after the process runs again.
TEST(AStoppedProcess, EndsItsTimedWaitsAsSoonAsItRunsAgain) {
    waiting_child child(2s);
    child.stop();
    // A wait that adds the time spent stopped is late by this.
    const auto left = child.until() - steady_clock::now();
    std::this_thread::sleep_until(child.until() + 50ms);  // no fact to wait for: time passes
    const auto runs_again = steady_clock::now();
    child.go_on();
    child.expect_timeouts(runs_again, std::max<nanoseconds>(1s, left - 1ms));
}

// Waits that count only the time for which they run would take ten seconds.
TEST(AStoppedProcess, EndsItsTimedWaitsInTimeIfItIsStoppedOverAndOver) {
    waiting_child child(1s);
    const auto give_up = child.until() + 4s;
    while (!child.has_ended() && steady_clock::now() < give_up) {
        child.stop();
        std::this_thread::sleep_for(90ms);  // no fact to wait for: time passes
        child.go_on();
        std::this_thread::sleep_for(10ms);  // no fact to wait for: time passes
    }
    child.expect_timeouts(child.until(), 3s);
}

#if defined(__linux__)
// As a debugger stops a program.
TEST(ATracedProcess, EndsItsTimedWaitsAsSoonAsItRunsAgain) {
    waiting_child child(2s);
    std::vector<pid_t> threads;
    for (const auto& each :
         std::filesystem::directory_iterator("/proc/" + std::to_string(child.id()) + "/task"))
        threads.push_back(std::stoi(each.path().filename()));
    const bool traced = ptrace(PTRACE_SEIZE, threads.front(), nullptr, nullptr) == 0;
    for (const pid_t each : threads) {
        if (!traced) break;
        if (each != threads.front()) {
            EXPECT_EQ(ptrace(PTRACE_SEIZE, each, nullptr, nullptr), 0);
        }
        EXPECT_EQ(ptrace(PTRACE_INTERRUPT, each, nullptr, nullptr), 0);
        EXPECT_EQ(waitpid(each, nullptr, __WALL), each);
    }
    const auto left = child.until() - steady_clock::now();
    if (traced) std::this_thread::sleep_until(child.until() + 50ms);  // no fact to wait for: time passes
    const auto runs_again = traced ? steady_clock::now() : child.until();
    for (const pid_t each : threads) ptrace(PTRACE_DETACH, each, nullptr, nullptr);
    child.expect_timeouts(runs_again, std::max<nanoseconds>(1s, left - 1ms));
    if (!traced) GTEST_SKIP() << "this system lets a test trace no process";
}
#endif

}  // namespace
#endif

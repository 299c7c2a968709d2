// SPDX-License-Identifier: Apache-2.0
// Clocks of the user that jump while something waits: every form of wait notices (deadline.hpp). And boot_clock, which
// jumps when the machine has been suspended.
#include "clocks.hpp"
#include "facts.hpp"
#include "posix.hpp"
#include "task.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/await.hpp>
#include <tocsin/barrier.hpp>
#include <tocsin/boot_clock.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/coalescer.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/group_commit.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_group.hpp>
#include <tocsin/wait_set.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#if defined(__linux__)
#include "child.hpp"
#include "sanitizer.hpp"
#include "shared_objects.hpp"

#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_semaphore.hpp>

#include <sched.h>
#endif

#if TOCSIN_ON_POSIX
#include <unistd.h>
#endif

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::hand_clock;
using support::thread_group;
using tocsin::auto_reset_event;
using tocsin::wait_status;

const hand_clock::time_point in_an_hour{1h};

// Each of these waits until an hour has passed on the hand_clock, and returns whether it ended for that.
struct form {
    std::string name;
    std::function<bool()> wait;
};

bool timed_out(wait_status how) { return how == wait_status::timed_out; }

std::vector<form> forms() {
    static auto_reset_event never;
    static auto_reset_event other;
    std::vector<form> all{
        {"event", [] { return timed_out(never.wait_until(in_an_hour)); }},
        {"address",
         [] {
             const int word = 0;
             return tocsin::wait_on_address(&word, 0, in_an_hour) == tocsin::address_status::timed_out;
         }},
        {"lock",
         [] {
             tocsin::word_lock lock;
             lock.lock();
             bool taken = true;
             thread_group threads;
             threads.start("tries", [&] { taken = lock.try_lock_until(in_an_hour); });
             threads.join();
             lock.unlock();
             return !taken;
         }},
        {"semaphore",
         [] {
             tocsin::counting_semaphore<> none(0);
             return !none.try_acquire_until(in_an_hour);
         }},
        {"latch",
         [] {
             tocsin::latch closed(1);
             return timed_out(closed.wait_until(in_an_hour));
         }},
        {"wait_group",
         [] {
             tocsin::wait_group jobs;
             jobs.add();
             const auto how = jobs.wait_until(in_an_hour);
             jobs.done();
             return timed_out(how);
         }},
        {"barrier",
         [] {
             tocsin::barrier<> two(2);
             const auto token = two.arrive();
             const auto how = two.wait_until(token, in_an_hour);
             (void)two.arrive();
             return timed_out(how);
         }},
        {"condition",
         [] {
             tocsin::condition changed;
             std::mutex mutex;
             std::unique_lock lock(mutex);
             return changed.wait_until(lock, in_an_hour) == std::cv_status::timeout;
         }},
        {"condition: any",
         [] {
             tocsin::condition changed;
             std::mutex mutex;
             std::unique_lock lock(mutex);
             return timed_out(changed.wait_any(lock, {.until = in_an_hour}, never).status);
         }},
        {"channel: receive",
         [] {
             tocsin::channel<int> empty(1);
             return empty.receive_until(in_an_hour).status() == tocsin::channel_status::timed_out;
         }},
        {"channel: send",
         [] {
             tocsin::channel<int> full(0);
             return full.send_until(7, in_an_hour) == tocsin::channel_status::timed_out;
         }},
        {"group commit",
         [] {
             auto_reset_event flushing;
             auto_reset_event go_on;
             tocsin::group_commit<int> commit([&](const auto&) {
                 flushing.set();
                 go_on.wait();
             });
             thread_group threads;
             threads.start("leads", [&] { (void)commit.submit(1); });
             flushing.wait();
             int late = 2;
             const auto how = commit.submit({.until = in_an_hour}, late);
             go_on.set();
             threads.join();
             return how == tocsin::commit_status::timed_out;
         }},
        {"handler thread",
         [] {
             auto_reset_event busy;
             auto_reset_event go_on;
             tocsin::handler_thread handler({.capacity = 1, .on_exception = {}});
             handler.post([&] {
                 busy.set();
                 go_on.wait();
             });
             busy.wait();
             handler.post([] {});
             const auto how = handler.post_until([] {}, in_an_hour);
             go_on.set();
             return how == tocsin::post_status::timed_out;
         }},
        {"any: deadline", [] { return timed_out(wait_any({.until = in_an_hour}, never, other).status); }},
        {"any: timer", [] { return wait_any(never, tocsin::at(in_an_hour)).index == 1; }},
        {"any: timer, behind an earlier deadline",
         [] { return wait_any({.until = 30min}, never, tocsin::at(in_an_hour)).index == 1; }},
        {"any: deadline, behind an earlier timer",
         [] { return timed_out(wait_any({.until = in_an_hour}, never, tocsin::after(30min)).status); }},
        {"all: timer",
         [] { return wait_all(tocsin::at(in_an_hour), tocsin::after(0s)) == wait_status::signaled; }},
        {"all: deadline", [] { return timed_out(wait_all({.until = in_an_hour}, never, other)); }},
        {"all: deadline, behind an earlier timer",
         [] { return timed_out(wait_all({.until = in_an_hour}, never, tocsin::after(30min))); }},
        {"all: timer, behind an earlier deadline",
         [] { return wait_all({.until = 30min}, tocsin::at(in_an_hour)) == wait_status::signaled; }},
        {"set: timer",
         [] {
             tocsin::wait_set set;
             tocsin::wait_timer timer;
             tocsin::wait_timer earlier;
             set.add(timer, 1);
             set.add(earlier, 2);
             timer.reset(in_an_hour);
             earlier.reset(30min);
             tocsin::ready_item item;
             return set.wait({&item, 1}).count == 1 && item.tag == 1;
         }},
        {"set: deadline, behind an earlier timer",
         [] {
             tocsin::wait_set set;
             tocsin::wait_timer earlier;
             set.add(earlier, 2);
             earlier.reset(30min);
             tocsin::ready_item item;
             return timed_out(set.wait({.until = in_an_hour}, {&item, 1}).status);
         }},
        {"coalescer",
         [] {
             tocsin::coalescer often(30min);
             often.start();
             return timed_out(often.pause({.until = in_an_hour}));
         }},
        {"coroutine: deadline, behind an earlier timer",
         [] {
             bool ended = false;
             const support::task one = [](bool& done) -> support::task {
                 const auto how =
                     co_await tocsin::async_wait_any({.until = in_an_hour}, never, tocsin::after(30min));
                 done = timed_out(how.status);
             }(ended);
             one.join();
             return ended;
         }},
        {"coroutine: timer, behind an earlier deadline",
         [] {
             bool ended = false;
             const support::task one = [](bool& done) -> support::task {
                 const auto how =
                     co_await tocsin::async_wait_any({.until = 30min}, never, tocsin::at(in_an_hour));
                 done = how.index == 1;
             }(ended);
             one.join();
             return ended;
         }},
        {"coroutine: all",
         [] {
             bool ended = false;
             const support::task one = [](bool& done) -> support::task {
                 const auto how = co_await tocsin::async_wait_all({.until = 30min}, tocsin::at(in_an_hour));
                 done = how == wait_status::signaled;
             }(ended);
             one.join();
             return ended;
         }},
        {"operation",
         [] {
             auto_reset_event called;
             bool ended = false;
             auto wait = tocsin::any_operation(
                 [&](tocsin::any_result how) noexcept {
                     ended = timed_out(how.status);
                     called.set();
                 },
                 tocsin::limits{.until = in_an_hour}, never);
             wait.start();
             called.wait();
             return ended;
         }},
        {"driver",
         [] {
             tocsin::driver loop;
             bool ended = false;
             const support::task one = [](tocsin::driver& by, bool& done) -> support::task {
                 const auto how = co_await tocsin::async_wait({.until = in_an_hour}, never).by(by);
                 done = timed_out(how);
             }(loop, ended);
             for (auto_reset_event nap; !one.done(); (void)loop.run_due())
                 (void)nap.wait_until(loop.next_deadline());
             return ended;
         }},
    };
#if defined(__linux__)
    all.push_back({"shared event", [] {
                       const shared_objects::placed<tocsin::shared_auto_reset_event> event;
                       return timed_out(event->wait_until(in_an_hour));
                   }});
    all.push_back({"shared gate", [] {
                       const shared_objects::placed<tocsin::shared_manual_reset_event> gate;
                       return timed_out(gate->wait_until(in_an_hour));
                   }});
    all.push_back({"shared semaphore", [] {
                       const shared_objects::placed<tocsin::shared_semaphore> none;
                       return !none->try_acquire_until(in_an_hour);
                   }});
    all.push_back({"shared lock", [] {
                       const shared_objects::placed<tocsin::shared_lock> lock;
                       bool taken = true;
                       if (lock->lock() != tocsin::lock_status::acquired) return false;
                       thread_group threads;
                       threads.start("tries", [&] {
                           taken = lock->try_lock_until(in_an_hour) != tocsin::lock_status::timed_out;
                       });
                       threads.join();
                       lock->unlock();
                       return !taken;
                   }});
    all.push_back({"any: shared event", [] {
                       const shared_objects::placed<tocsin::shared_auto_reset_event> event;
                       return wait_any(*event, tocsin::at(in_an_hour)).index == 1;
                   }});
#endif
#if TOCSIN_ON_POSIX
    all.push_back({"any: descriptor", [] {
                       int ends[2];
                       if (::pipe(ends) != 0) return false;
                       const auto how =
                           wait_any({.until = in_an_hour}, tocsin::readable(ends[0]), tocsin::after(30min));
                       (void)::close(ends[0]);
                       (void)::close(ends[1]);
                       return timed_out(how.status);
                   }});
#endif
    return all;
}

TEST(ClockJump, IsNoticedByEachFormOfWait) {
    hand_clock::set(0);
    hand_clock::reads = 0;
    const auto every = forms();
    std::atomic<std::size_t> ended{0};
    thread_group threads;
    for (const form& each : every) {
        threads.start(each.name, [&] {
            EXPECT_TRUE(each.wait()) << each.name;
            ++ended;
        });
    }
    // Each wait looks at the clock before it sleeps. Nothing tells that all have done so; those that come later find
    // the time passed, which is also right.
    support::until("the waits begin", [&] { return hand_clock::reads >= static_cast<long>(every.size()); });
    EXPECT_EQ(ended, 0u);
    hand_clock::set(in_an_hour);
    threads.join();
    EXPECT_EQ(ended, every.size());
    hand_clock::set(0);
}

TEST(ClockJump, BackwardsEndsNoWaitEarly) {
    hand_clock::set(0);
    auto_reset_event never;
    bool over = false;
    thread_group threads;
    threads.start("waits", [&] {
        EXPECT_EQ(wait_any(never, tocsin::at(in_an_hour), tocsin::after(2h)).index, 1u);
        EXPECT_TRUE(over);
    });
    threads.until_asleep(0);
    const long before = hand_clock::reads;
    hand_clock::set(-3'600'000);
    support::until("it has looked again", [&] { return hand_clock::reads > before; });
    over = true;
    hand_clock::set(in_an_hour);
    threads.join();
    hand_clock::set(0);
}

TEST(BootClock, IsSteadyAndPassesADeadline) {
    static_assert(support::is_clock<tocsin::boot_clock> && tocsin::boot_clock::is_steady);
    const auto first = tocsin::boot_clock::now();
    const auto steady = steady_clock::now();
    auto_reset_event never;
    EXPECT_EQ(never.wait_until(first + 20ms), wait_status::timed_out);
    EXPECT_GE(tocsin::boot_clock::now() - first, 20ms);
    // Both clocks run. This one may be read from a tick behind the other (16 ms on Windows), and catches up.
    const auto passed = steady_clock::now() - steady;
    support::until("the clock has passed what the steady clock had passed",
                   [&] { return tocsin::boot_clock::now() - first >= passed; });
    const auto in_a_moment = tocsin::boot_clock::now() + 5ms;
    EXPECT_EQ(wait_any(never, tocsin::at(in_a_moment)).index, 1u);
    EXPECT_GE(tocsin::boot_clock::now(), in_a_moment);
}

#if defined(__linux__) && defined(CLONE_NEWTIME)
// In a namespace of times in which CLOCK_BOOTTIME is an hour further on, it is as if the machine had been suspended for
// an hour. (In the process that makes the namespace it holds for children only.)
TEST(BootClock, CountsATimeThatTheSteadyClockLeavesOut) {
    constexpr int not_permitted = 77;
    const auto ahead = [] {
        return tocsin::boot_clock::now().time_since_epoch() - steady_clock::now().time_since_epoch();
    };
    const auto before = ahead();
    const auto ending = support::ending_of_child([&] {
        if (::unshare(CLONE_NEWTIME) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0)
            return not_permitted;
        if (!(std::ofstream("/proc/self/timens_offsets") << "boottime 3600 0\n" << std::flush))
            return not_permitted;
        const auto of_child = support::ending_of_child([&] { return ahead() - before > 59min ? 0 : 1; });
        return of_child.empty() ? 0 : 1;
    });
    if (ending == "exit code 77") GTEST_SKIP() << "this system permits no namespace of times";
    EXPECT_EQ(ending, "");
}
#endif

}  // namespace

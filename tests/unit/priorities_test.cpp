// SPDX-License-Identifier: Apache-2.0
// What threads of different priorities may rely on (docs/priorities.md): nobody waits for a less urgent thread that was
// woken and gets no processor.
#include "facts.hpp"
#include "posix.hpp"
#include "threads.hpp"

#include <tocsin/tocsin.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include "less_urgent.hpp"
#endif

namespace {

using namespace std::chrono_literals;
using support::thread_group;
using support::until_parked;

#if defined(__linux__)

template <class LessUrgent>
class AnUrgentThread : public testing::Test {
protected:
    void SetUp() override {
        if (const std::string reason = LessUrgent::why_not(); !reason.empty()) GTEST_SKIP() << reason;
    }
    static constexpr auto expect_no_wait = support::expect_no_wait_for_the_less_urgent<LessUrgent>;

    template <class Mutex>
    static void expect_of_conditions() {
        tocsin::condition changed;
        Mutex mutex;
        bool done = false;
        expect_no_wait(
            &changed,
            [&] {
                std::unique_lock<Mutex> lock(mutex);
                changed.wait(lock, [&] { return done; });
            },
            [&] {
                {
                    const std::lock_guard<Mutex> lock(mutex);
                    done = true;
                }
                changed.notify_all();
            });
    }

    static void expect_of_a_free_lock(auto& lock) {
        support::expect_that_a_free_lock_does_not_wait<LessUrgent>(
            {.take = [&] { lock.lock(); },
             .free = [&] { lock.unlock(); },
             .pass = [&] { const std::lock_guard held(lock); }});
    }
};
using less_urgent = testing::Types<support::frozen_threads, support::hogged_threads>;
TYPED_TEST_SUITE(AnUrgentThread, less_urgent);

TYPED_TEST(AnUrgentThread, PassesAGateFirst) {
    tocsin::manual_reset_event gate;
    this->expect_no_wait(&gate, [&] { gate.wait(); }, [&] { gate.set(); });
}

TYPED_TEST(AnUrgentThread, PassesAGateFirstInAWaitWithADeadline) {
    tocsin::manual_reset_event gate;
    this->expect_no_wait(
        &gate, [&] { EXPECT_EQ(gate.wait_for(1h), tocsin::wait_status::signaled); }, [&] { gate.set(); });
}

TYPED_TEST(AnUrgentThread, IsWokenFirstByAWakeList) {
    tocsin::manual_reset_event gate;
    this->expect_no_wait(
        &gate, [&] { gate.wait(); },
        [&] {
            tocsin::wake_list freed;
            gate.set(freed);
            tocsin::wake_list all;
            all.append(std::move(freed));
            all.wake();
        });
}

TYPED_TEST(AnUrgentThread, HasTheFirstTurnOfACondition) { this->template expect_of_conditions<std::mutex>(); }

TYPED_TEST(AnUrgentThread, IsTheFirstInTheRelayOfACondition) {
    this->template expect_of_conditions<std::recursive_mutex>();
}

TYPED_TEST(AnUrgentThread, PassesFirstWhenManyPermitsAreReleased) {
    tocsin::counting_semaphore<> permits(0);
    this->expect_no_wait(&permits, [&] { permits.acquire(); }, [&] { permits.release(9); });
}

TYPED_TEST(AnUrgentThread, IsWokenFirstAtAnAddress) {
    std::atomic<int> word{0};
    this->expect_no_wait(
        &word, [&] { EXPECT_EQ(tocsin::wait_on_address(&word, 0), tocsin::address_status::woken); },
        [&] { EXPECT_EQ(tocsin::wake_by_address_all(&word), 9u); });
}

TYPED_TEST(AnUrgentThread, GetsAFreeWordLock) {
    tocsin::word_lock<> lock;
    this->expect_of_a_free_lock(lock);
}

TYPED_TEST(AnUrgentThread, GetsAFreeBitLock) {
    tocsin::detail::atomic<std::uint64_t> word{0};
    tocsin::bit_lock lock(word, 63);
    this->expect_of_a_free_lock(lock);
}

// A channel moves an item under the lock of the side that sends. This item keeps the lock until it is told.
class slow_to_move {
public:
    struct stay {
        tocsin::manual_reset_event begun;
        tocsin::manual_reset_event may_end;
    };
    explicit slow_to_move(stay* here) : here_(here) {}
    slow_to_move(slow_to_move&& from) noexcept : here_(std::exchange(from.here_, nullptr)) {
        if (here_ == nullptr) return;
        here_->begun.set();
        here_->may_end.wait();
    }
    slow_to_move& operator=(slow_to_move&&) = delete;
    ~slow_to_move() = default;

private:
    stay* here_;
};

TYPED_TEST(AnUrgentThread, GetsTheFreeLockOfAChannel) {
    tocsin::channel<slow_to_move> items(64);
    const auto send = [&](slow_to_move::stay* here) {
        EXPECT_EQ(items.try_send(slow_to_move(here)), tocsin::channel_status::done);
    };
    std::unique_ptr<slow_to_move::stay> held;
    std::thread holder;
    support::expect_that_a_free_lock_does_not_wait<TypeParam>(
        {.take =
             [&] {
                 held = std::make_unique<slow_to_move::stay>();
                 holder = std::thread([&] { send(held.get()); });
                 held->begun.wait();
             },
         .free =
             [&] {
                 held->may_end.set();
                 holder.join();
             },
         .pass = [&] { send(nullptr); }});
}

// The system gives a slow thread a share of the processors, so the lock gives it a turn, too.
TEST(Priorities, ASlowThreadIsPassedOverSixteenTimesAtMost) {
    constexpr std::size_t others = 20;
    tocsin::word_lock<> lock;
    std::vector<int> order;
    thread_group threads;
    lock.lock();
    for (std::size_t i = 0; i != others + 1; ++i) {
        threads.start("waiter", [&, i] {
            if (i == 0) support::be_slow();
            const std::lock_guard held(lock);
            order.push_back(static_cast<int>(i));
        });
        until_parked(&lock, i + 1);
        support::until_sound_asleep(threads.id(i));
    }
    lock.unlock();
    threads.join();
    EXPECT_EQ(std::find(order.begin(), order.end(), 0) - order.begin(), 16);
}

// Parks threads of nice 19, 10 and 0, twice, in this order. Then releases one after the other. (If the test itself runs
// at a nice above 0, it may not lower this number: then it takes its own, and one between.)
std::vector<int> order_of_release(const volatile void* parked_on, const std::function<void()>& wait,
                                  const std::function<void()>& release) {
    std::vector<int> order;
    std::atomic<std::size_t> released{0};
    const int own = std::max(getpriority(PRIO_PROCESS, 0), 0);
    const int nice_values[] = {19, (20 + own) / 2, own};
    thread_group threads;
    for (int i = 0; i != 6; ++i) {
        threads.start("waiter", [&, i] {
            EXPECT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice_values[i % 3]), 0);
            wait();
            order.push_back(i);
            released.fetch_add(1);
        });
        until_parked(parked_on, static_cast<std::size_t>(i) + 1);
    }
    for (std::size_t i = 1; i != 7; ++i) {
        release();
        support::until("one more is released", [&] { return released.load() == i; });
    }
    threads.join();
    return order;
}

TEST(Priorities, ASemaphoreServesByPriorityIfAsked) {
    tocsin::counting_semaphore<8, tocsin::queue_order::priority> permits(0);
    const auto release = [&] { permits.release(); };
    const std::vector by_priority{2, 5, 1, 4, 0, 3};
    EXPECT_EQ(order_of_release(&permits, [&] { permits.acquire(); }, release), by_priority);
    EXPECT_EQ(order_of_release(
                  &permits, [&] { EXPECT_EQ(tocsin::wait_any(permits).index, 0u); }, release),
              by_priority);
    EXPECT_EQ(
        order_of_release(&permits, [&] { EXPECT_TRUE(permits.try_acquire_for(1h)); }, release), by_priority);
}

TEST(Priorities, AnEventServesByPriorityIfAsked) {
    tocsin::auto_reset_priority_event event;
    static_assert(sizeof event == 1);
    EXPECT_EQ(order_of_release(
                  &event, [&] { event.wait(); }, [&] { event.set(); }),
              (std::vector{2, 5, 1, 4, 0, 3}));
}

TEST(Priorities, OtherQueuesKeepTheOrderOfArrival) {
    tocsin::counting_semaphore<> permits(0);
    const std::vector by_arrival{0, 1, 2, 3, 4, 5};
    EXPECT_EQ(order_of_release(&permits, [&] { permits.acquire(); }, [&] { permits.release(); }), by_arrival);
    tocsin::auto_reset_event event;
    EXPECT_EQ(order_of_release(&event, [&] { event.wait(); }, [&] { event.set(); }), by_arrival);
}

// If the urgent one came first, both would hold a permit that the other needs.
TEST(Priorities, AWaitThatHasBegunToCollectKeepsItsPlace) {
    tocsin::counting_semaphore<8, tocsin::queue_order::priority> permits(1);
    std::vector<int> order;
    thread_group threads;
    threads.start("slow", [&] {
        support::be_slow();
        permits.acquire(2);
        order.push_back(0);
        permits.release(2);
    });
    until_parked(&permits, 1);
    threads.start("ordinary", [&] {
        permits.acquire(2);
        order.push_back(1);
        permits.release(2);
    });
    until_parked(&permits, 2);
    permits.release();
    threads.join();
    EXPECT_EQ(order, (std::vector{0, 1}));
}

#else

TEST(Priorities, DISABLED_AreThoseOfLinux) {}

#endif

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// The contract of condition, clause by clause: first what the standard says of std::condition_variable_any, then what
// tocsin adds.
#include "allocations.hpp"
#include "clocks.hpp"
#include "facts.hpp"
#include "printing.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <tocsin/bit_lock.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace support;
using namespace tocsin;
using std_lock = std::unique_lock<std::mutex>;

constinit condition made_at_compile_time;

// A user's lock, which counts its calls.
struct counted_lock {
    void lock() {
        mutex.lock();
        ++locked;
    }
    void unlock() {
        ++unlocked;
        mutex.unlock();
    }
    std::mutex mutex;
    int locked = 0;
    int unlocked = 0;
};

// Moves the hand_clock on whenever it is given up.
struct lock_that_moves_the_clock : counted_lock {
    void unlock() {
        hand_clock::set(hand_clock::now() + 1ms);
        counted_lock::unlock();
    }
};

// Every kind of lock with which a thread can wait.
template <class Lock>
class ConditionWith : public testing::Test {};
using locks = testing::Types<std::mutex, std::timed_mutex, std::recursive_mutex, std::shared_mutex,
                             word_lock<>, word_lock<std::uint8_t>, counted_lock>;
TYPED_TEST_SUITE(ConditionWith, locks);

// --- the standard's clauses -----------------------------------------------------------------------------------

template <class Condition>
constexpr bool has_the_standards_shape =
    std::is_nothrow_default_constructible_v<condition> && !std::is_copy_constructible_v<Condition> &&
    !std::is_move_constructible_v<Condition> && !std::is_copy_assignable_v<Condition> &&
    noexcept(std::declval<Condition&>().notify_one()) && noexcept(std::declval<Condition&>().notify_all()) &&
    requires(Condition& object, std_lock& lock, bool (*pred)(), std::shared_ptr<int> (*as_pointer)(),
             std::stop_token stop, std::chrono::system_clock::time_point at,
             std::chrono::milliseconds longest) {
        { object.wait(lock) } -> std::same_as<void>;
        { object.wait(lock, pred) } -> std::same_as<void>;
        { object.wait(lock, as_pointer) } -> std::same_as<void>;
        { object.wait_until(lock, at) } -> std::same_as<std::cv_status>;
        { object.wait_until(lock, at, pred) } -> std::same_as<bool>;
        { object.wait_for(lock, longest) } -> std::same_as<std::cv_status>;
        { object.wait_for(lock, longest, pred) } -> std::same_as<bool>;
        { object.wait(lock, stop, pred) } -> std::same_as<bool>;
        { object.wait_until(lock, stop, at, pred) } -> std::same_as<bool>;
        { object.wait_for(lock, stop, longest, pred) } -> std::same_as<bool>;
    };

TEST(Condition, HasTheStandardsShape) {
    static_assert(has_the_standards_shape<std::condition_variable_any>);
    static_assert(has_the_standards_shape<condition>);
}

TEST(Condition, NotifyWithoutWaitersDoesNothing) {
    made_at_compile_time.notify_one();
    made_at_compile_time.notify_all();
    std::mutex mutex;
    std_lock lock(mutex);
    EXPECT_EQ(made_at_compile_time.wait_for(lock, 2ms), std::cv_status::timeout)
        << "a notification leaves no trace";
}

TYPED_TEST(ConditionWith, AWaitGivesUpTheLockAndHasItAgain) {
    TypeParam mutex;
    condition changed;
    bool inside = false;
    int released = 0;
    thread_group threads;
    threads.start_many(3, "waiter", [&](int) {
        mutex.lock();
        changed.wait(mutex);
        EXPECT_FALSE(inside) << "the lock is held again";
        inside = true;
        ++released;
        std::this_thread::yield();
        inside = false;
        mutex.unlock();
    });
    until_parked(&changed, 3);
    mutex.lock();  // nobody holds it, since all have given it up
    EXPECT_EQ(released, 0);
    mutex.unlock();
    changed.notify_one();
    until_parked(&changed, 2);
    changed.notify_all();
    threads.join();
    EXPECT_EQ(released, 3);
    mutex.lock();
    mutex.unlock();
}

TYPED_TEST(ConditionWith, ANotificationUnderTheLockWorksToo) {
    TypeParam mutex;
    condition changed;
    int turn = 0;
    thread_group threads;
    for (int me : {1, 2, 3, 4}) {
        threads.start("waiter", [&, me] {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return turn == me; });
            ++turn;
            changed.notify_all();
        });
    }
    {
        const std::lock_guard lock(mutex);
        turn = 1;
        changed.notify_all();
    }
    threads.join();
    EXPECT_EQ(turn, 5);
}

TEST(Condition, NotifyOneReleasesExactlyOne) {
    std::mutex mutex;
    condition changed;
    std::atomic<int> released{0};
    thread_group threads;
    threads.start_many(4, "waiter", [&](int) {
        std_lock lock(mutex);
        changed.wait(lock);
        released.fetch_add(1);
    });
    until_parked(&changed, 4);
    for (int i = 1; i <= 4; ++i) {
        changed.notify_one();
        EXPECT_EQ(tocsin::waiting_on(&changed), static_cast<std::size_t>(4 - i))
            << "at once, and exactly one";
        while (released.load() != i) std::this_thread::yield();
    }
}

TEST(Condition, WaitersAreReleasedInTheirOrder) {
    std::mutex mutex;
    condition changed;
    std::vector<int> order;
    thread_group threads;
    for (int i = 0; i != 4; ++i) {
        threads.start("waiter", [&, i] {
            std_lock lock(mutex);
            changed.wait(lock);
            order.push_back(i);
        });
        until_parked(&changed, static_cast<std::size_t>(i) + 1);
    }
    for (std::size_t i = 1; i <= 4; ++i) {
        changed.notify_one();
        for (;;) {
            const std::lock_guard lock(mutex);
            if (order.size() == i) break;
        }
    }
    threads.join();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
}

TEST(Condition, APredicateIsAskedWithTheLockHeld) {
    std::mutex mutex;
    condition changed;
    bool ready = false;
    thread_group threads;
    threads.start("waiter", [&] {
        std_lock lock(mutex);
        changed.wait(lock, [&] {
            EXPECT_FALSE(mutex.try_lock());
            return ready;
        });
        EXPECT_TRUE(ready);
        EXPECT_TRUE(lock.owns_lock());
    });
    until_parked(&changed, 1);
    changed.notify_all();  // for nothing: it waits again
    until_parked(&changed, 1);
    {
        const std::lock_guard lock(mutex);
        ready = true;
    }
    changed.notify_one();
}

// The standard's wait() only negates what the predicate returns.
TEST(Condition, APredicateMayReturnAnythingThatCanBeNegated) {
    std::mutex mutex;
    condition changed;
    std::shared_ptr<int> made;
    thread_group threads;
    threads.start("waiter", [&] {
        std_lock lock(mutex);
        changed.wait(lock, [&] { return made; });
        changed.wait(lock, [&] { return std::optional(*made); }, tocsin::spin_policy::none());
        EXPECT_EQ(*made, 3);
    });
    until_parked(&changed, 1);
    {
        const std::lock_guard lock(mutex);
        made = std::make_shared<int>(3);
    }
    changed.notify_one();
}

TEST(Condition, APredicateThatHoldsKeepsTheLock) {
    counted_lock lock;
    lock.lock();
    condition changed;
    changed.wait(lock, [] { return true; });
    EXPECT_TRUE(changed.wait_for(lock, 1h, [] { return true; }));
    EXPECT_TRUE(changed.wait_until(lock, std::chrono::system_clock::now(), [] { return true; }));
    EXPECT_EQ(lock.unlocked, 0);
    lock.unlock();
}

TEST(Condition, APredicateMayBeMovedOnlyAndMayThrow) {
    std::mutex mutex;
    std_lock lock(mutex);
    condition changed;
    EXPECT_FALSE(changed.wait_for(lock, 1ms, [owned = std::make_unique<bool>(false)] { return *owned; }));
    EXPECT_THROW(changed.wait(lock, []() -> bool { throw 1; }), int);
    EXPECT_TRUE(lock.owns_lock());
}

TEST(Condition, ATimedWaitSaysWhatHappened) {
    counted_lock lock;
    lock.lock();
    condition changed;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(changed.wait_for(lock, 5ms), std::cv_status::timeout);
    EXPECT_GE(std::chrono::steady_clock::now(), start + 5ms);
    EXPECT_EQ(changed.wait_until(lock, std::chrono::system_clock::now() + 2ms), std::cv_status::timeout);
    EXPECT_EQ(lock.unlocked, 2);
    // A time that has passed: the lock is given up all the same, so that others may have it.
    EXPECT_EQ(changed.wait_for(lock, 0s), std::cv_status::timeout);
    EXPECT_EQ(changed.wait_until(lock, std::chrono::steady_clock::now() - 1s), std::cv_status::timeout);
    EXPECT_EQ(lock.unlocked, 4);
    EXPECT_EQ(lock.locked, 5);
    EXPECT_FALSE(changed.wait_for(lock, 1ms, [] { return false; }));
    EXPECT_FALSE(changed.wait_until(lock, std::chrono::steady_clock::now() + 1ms, [] { return false; }));
    EXPECT_EQ(tocsin::waiting_on(&changed), 0u);
    lock.unlock();
}

TEST(Condition, ATimedWaitIsNotified) {
    std::mutex mutex;
    condition changed;
    thread_group threads;
    threads.start("for", [&] {
        std_lock lock(mutex);
        EXPECT_EQ(changed.wait_for(lock, 1h), std::cv_status::no_timeout);
    });
    threads.start("until", [&] {
        std_lock lock(mutex);
        EXPECT_EQ(changed.wait_until(lock, std::chrono::system_clock::now() + 1h),
                  std::cv_status::no_timeout);
    });
    until_parked(&changed, 2);
    changed.notify_all();
}

TEST(Condition, AStopEndsAWaitWithAPredicate) {
    std::mutex mutex;
    condition changed;
    bool ready = false;
    std::stop_source stop;
    const auto is_ready = [&] { return ready; };
    thread_group threads;
    threads.start("wait", [&] {
        std_lock lock(mutex);
        EXPECT_FALSE(changed.wait(lock, stop.get_token(), is_ready));
        EXPECT_TRUE(lock.owns_lock());
    });
    threads.start("until", [&] {
        std_lock lock(mutex);
        EXPECT_FALSE(
            changed.wait_until(lock, stop.get_token(), std::chrono::system_clock::now() + 1h, is_ready));
    });
    threads.start("for", [&] {
        std_lock lock(mutex);
        EXPECT_FALSE(changed.wait_for(lock, stop.get_token(), 1h, is_ready));
    });
    until_parked(&changed, 3);
    stop.request_stop();
    threads.join();
    std_lock lock(mutex);
    EXPECT_FALSE(changed.wait(lock, stop.get_token(), is_ready));
    ready = true;
    EXPECT_TRUE(changed.wait(lock, stop.get_token(), is_ready)) << "what the predicate says counts";
}

// What came before a notification is visible: plain data alongside the lock, which ThreadSanitizer watches.
TEST(Condition, PublishesWhatCameBeforeTheNotification) {
    for (int i = 0; i != rounds(300, 30); ++i) {
        std::mutex mutexes[3];
        condition changed;
        int data = 0;
        thread_group threads;
        threads.start_many(3, "waiter", [&](int which) {
            std_lock lock(mutexes[i % 2 == 0 ? 0 : which]);
            changed.wait(lock);
            EXPECT_EQ(data, 42);
        });
        until_parked(&changed, 3);
        data = 42;
        changed.notify_all();
    }
}

// [thread.condition.condvarany]: once all have been notified, the condition may go, though they have not returned.
TEST(Condition, MayBeDestroyedWhenAllHaveBeenNotified) {
    for (int i = 0; i != rounds(300, 30); ++i) {
        std::mutex mutex;
        auto changed = std::make_unique<condition>();
        thread_group threads;
        threads.start_many(4, "waiter", [&](int which) {
            std_lock lock(mutex);
            if (which % 2 == 0) return changed->wait(lock);
            (void)changed->wait_for(lock, 1h);
        });
        until_parked(changed.get(), 4);
        const std::lock_guard lock(mutex);  // nobody can return yet
        changed->notify_all();
        changed.reset();
    }
}

TEST(Condition, TheThreadReleasedMayDestroyIt) {
    for (int i = 0; i != rounds(2000, 100); ++i) {
        std::mutex mutex;
        auto owned = std::make_unique<condition>();
        condition& changed = *owned;
        bool done = false;
        thread_group threads;
        threads.start("notifier", [&] {
            const std::lock_guard lock(mutex);
            done = true;
            i % 2 == 0 ? changed.notify_one() : changed.notify_all();
        });
        {
            std_lock lock(mutex);
            changed.wait(lock, [&] { return done; });
        }
        owned.reset();
    }
}

// --- tocsin's additions -----------------------------------------------------------------------------------------

TEST(Condition, IsEightBytesAndOwnsNothing) {
    static_assert(sizeof(condition) == 8);
    static_assert(!std::is_convertible_v<condition&, tocsin::source>, "a condition is never ready");
#if !TOCSIN_CHECKED
    static_assert(std::is_trivially_destructible_v<condition>);
#endif
}

TEST(Condition, AWaitWithAStopTokenSaysHowItEnded) {
    std::mutex mutex;
    condition changed;
    std::stop_source stop;
    thread_group threads;
    threads.start("stopped", [&] {
        std_lock lock(mutex);
        EXPECT_EQ(changed.wait(lock, stop.get_token()), wait_status::stopped);
        EXPECT_TRUE(lock.owns_lock());
    });
    until_parked(&changed, 1);
    stop.request_stop();
    threads.join();
    std::stop_source other;
    threads.start("notified", [&] {
        std_lock lock(mutex);
        EXPECT_EQ(changed.wait_for(lock, 1h, other.get_token()), wait_status::signaled);
        EXPECT_EQ(changed.wait_for(lock, 1ms, other.get_token()), wait_status::timed_out);
        EXPECT_TRUE(changed.wait_for(lock, 1h, other.get_token(), [] { return true; }));
    });
    until_parked(&changed, 1);
    changed.notify_one();
    threads.join();
    counted_lock lock;
    lock.lock();
    EXPECT_EQ(changed.wait_until(lock, std::chrono::system_clock::now() + 1h, stop.get_token()),
              wait_status::stopped);
    EXPECT_EQ(lock.unlocked, 0) << "the stop was requested before";
    lock.unlock();
}

TEST(Condition, TakesASpinPolicyLast) {
    word_lock<> lock;
    lock.lock();
    condition changed;
    const auto policy = tocsin::spin_policy::fixed(20us);
    std::stop_source stop;
    EXPECT_EQ(changed.wait_for(lock, 1ms, policy), std::cv_status::timeout);
    EXPECT_FALSE(changed.wait_for(lock, 1ms, [] { return false; }, policy));
    EXPECT_EQ(changed.wait_for(lock, 1ms, stop.get_token(), policy), wait_status::timed_out);
    EXPECT_FALSE(changed.wait_for(lock, stop.get_token(), 1ms, [] { return false; }, policy));
    lock.unlock();
    thread_group threads;
    threads.start("spinner", [&] {
        const std::lock_guard held(lock);
        changed.wait(lock, tocsin::spin_policy::fixed(1s));
    });
    until_parked(&changed, 1);
    changed.notify_one();
}

// A timeout meets a notification while another thread waits: exactly one of the two threads is notified.
TEST(Condition, ATimeoutNeverEatsANotification) {
    for (int i = 0; i != rounds(2000, 100); ++i) {
        std::mutex mutex;
        condition changed;
        std::atomic<int> notified{0};
        std::stop_source enough;
        thread_group threads;
        threads.start("patient", [&] {
            std_lock lock(mutex);
            if (changed.wait(lock, enough.get_token()) == wait_status::signaled) notified.fetch_add(1);
        });
        until_parked(&changed, 1);
        threads.start("timed", [&] {
            std_lock lock(mutex);
            if (changed.wait_for(lock, std::chrono::microseconds(i % 120)) == std::cv_status::no_timeout)
                notified.fetch_add(1);
        });
        if (i % 2 == 0) std::this_thread::yield();
        changed.notify_one();  // the patient thread waits, so somebody gets it
        while (tocsin::waiting_on(&changed) > 1) std::this_thread::yield();
        enough.request_stop();
        threads.join();
        EXPECT_EQ(notified.load(), 1);
    }
}

TEST(Condition, ThreadsWithDifferentLocksMayWaitTogether) {
    std::mutex mutex;
    std::recursive_mutex recursive;
    std::shared_mutex shared;
    word_lock<> word;
    std::atomic<int> released{0};
    condition changed;
    thread_group threads;
    const auto wait_with = [&](auto lock) {
        changed.wait(lock);
        released.fetch_add(1);
    };
    for (int i = 0; i != 2; ++i) {
        threads.start("mutex", [&] { wait_with(std::unique_lock(mutex)); });
        threads.start("recursive", [&] { wait_with(std::unique_lock(recursive)); });
        threads.start("shared", [&] { wait_with(std::shared_lock(shared)); });
        threads.start("word", [&] { wait_with(std::unique_lock(word)); });
    }
    until_parked(&changed, 8);
    changed.notify_all();
    threads.join();
    EXPECT_EQ(released.load(), 8);
}

// A thread may be unable to get its lock because the lock's holder waits for another notified thread. Then the thread
// without its lock must not hold up that other thread.
TEST(Condition, AThreadThatCannotHaveItsLockHoldsUpNobodyWithAnotherLock) {
    std::mutex first;
    std::mutex second;
    condition changed;
    tocsin::manual_reset_event other_returned;
    thread_group threads;
    threads.start("first", [&] {
        std_lock lock(first);
        changed.wait(lock);
    });
    until_parked(&changed, 1);
    threads.start("second", [&] {
        std_lock lock(second);
        changed.wait(lock);
        other_returned.set();
    });
    until_parked(&changed, 2);
    const std::lock_guard lock(first);
    changed.notify_all();
    EXPECT_EQ(other_returned.wait_for(10s), wait_status::signaled);
}

// The same for bits of one word, which are different locks, and for a recursive lock that a waiting thread still holds.
TEST(Condition, BitsAndRecursiveLocksDoNotWaitForEachOther) {
    std::atomic<std::uint32_t> word{0};
    tocsin::bit_lock<std::uint32_t> bits[] = {{word, 3}, {word, 4}};
    condition changed;
    tocsin::manual_reset_event other_returned;
    thread_group threads;
    for (int i = 0; i != 2; ++i) {
        threads.start("bit", [&, i] {
            std::unique_lock lock(bits[i]);
            changed.wait(lock);
            if (i == 1) other_returned.set();
        });
        until_parked(&changed, static_cast<std::size_t>(i) + 1);
    }
    {
        const std::lock_guard lock(bits[0]);
        changed.notify_all();
        EXPECT_EQ(other_returned.wait_for(10s), wait_status::signaled);
    }
    threads.join();

    std::recursive_mutex recursive;
    threads.start("once", [&] {
        std::unique_lock lock(recursive);
        changed.wait(lock);
    });
    until_parked(&changed, 1);
    threads.start("twice", [&] {
        const std::lock_guard outer(recursive);
        std::unique_lock inner(recursive);
        changed.wait(inner);
    });
    until_parked(&changed, 2);
    changed.notify_all();
}

TYPED_TEST(ConditionWith, NotifyAllReleasesAllOfMany) {
    constexpr int many = 60;
    for (int i = 0; i != rounds(20, 2); ++i) {
        TypeParam mutex;
        condition changed;
        int left = many;
        thread_group threads;
        threads.start_many(many, "waiter", [&](int which) {
            std::unique_lock lock(mutex);
            if (i % 2 == 0 || which % 3 != 0) {
                changed.wait(lock);
            } else {
                EXPECT_EQ(changed.wait_for(lock, 1h), std::cv_status::no_timeout);
            }
            --left;
        });
        until_parked(&changed, many);
        changed.notify_all();
        threads.join();
        EXPECT_EQ(left, 0);
    }
}

TEST(Condition, NotifyAllCountsOnlyThoseWhoWaited) {
    std::mutex mutex;
    condition changed;
    thread_group threads;
    threads.start_many(3, "early", [&](int) {
        std_lock lock(mutex);
        changed.wait(lock);
        EXPECT_EQ(changed.wait_for(lock, 2ms), std::cv_status::timeout)
            << "it waits again after the notification";
    });
    until_parked(&changed, 3);
    std_lock lock(mutex);
    changed.notify_all();
    EXPECT_EQ(changed.wait_for(lock, 5ms), std::cv_status::timeout);
}

// --- wait_any -----------------------------------------------------------------------------------------------------

TEST(ConditionWaitAny, IsEndedByANotificationOrASource) {
    std::mutex mutex;
    condition changed;
    tocsin::auto_reset_event job;
    tocsin::counting_semaphore<> permits(0);
    thread_group threads;
    const auto expect = [&](std::size_t index) {
        threads.start("waiter", [&, index] {
            std_lock lock(mutex);
            const auto found = changed.wait_any(lock, job, permits);
            EXPECT_EQ(found.status, wait_status::signaled);
            EXPECT_EQ(found.index, index);
            EXPECT_FALSE(mutex.try_lock()) << "the lock is held again";
        });
        until_parked(&permits, 1);
        const std::lock_guard lock(mutex);  // it was given up
    };
    expect(0);
    changed.notify_one();
    threads.join();
    expect(1);
    job.set();
    threads.join();
    EXPECT_FALSE(job.is_set());
    expect(2);
    permits.release();
    threads.join();
    expect(0);
    changed.notify_all();
    threads.join();
    EXPECT_EQ(tocsin::waiting_on(&changed) + tocsin::waiting_on(&job), 0u);
}

TEST(ConditionWaitAny, TakesWhatIsReadyWithoutGivingUpTheLock) {
    lock_that_moves_the_clock lock;
    lock.lock();
    condition changed;
    tocsin::auto_reset_event job(true);
    tocsin::manual_reset_event never;
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(changed.wait_any(lock, {.stop = stop.get_token()}, never, job).index, 2u);
    EXPECT_EQ(changed.wait_any(lock, {.stop = stop.get_token()}, never, job).status, wait_status::stopped);
    EXPECT_EQ(lock.unlocked, 0);
    EXPECT_EQ(changed.wait_any(lock, {.until = 0s}, never, job).status, wait_status::timed_out);
    EXPECT_EQ(lock.unlocked, 1);
    // Neither of these two is ready before the lock is given up.
    const auto end = hand_clock::now() + 1ms;
    EXPECT_EQ(changed.wait_any(lock, {.until = end}, never, job).status, wait_status::timed_out);
    EXPECT_EQ(lock.unlocked, 2);
    const auto due = hand_clock::now() + 1ms;
    EXPECT_EQ(changed.wait_any(lock, never, tocsin::at(due)).index, 2u);
    EXPECT_EQ(lock.unlocked, 3);
    EXPECT_EQ(lock.locked, 4);
    lock.unlock();
}

TEST(ConditionWaitAny, TakesAListOfSources) {
    std::mutex mutex;
    std_lock lock(mutex);
    condition changed;
    std::vector<tocsin::manual_reset_event> events(20);
    const std::vector<tocsin::source> list(events.begin(), events.end());
    EXPECT_EQ(changed.wait_any(lock, {.until = 1ms}, list).status, wait_status::timed_out);
    events[7].set();
    EXPECT_EQ(changed.wait_any(lock, list).index, 8u);
    EXPECT_THROW((void)changed.wait_any(lock, {}, tocsin::source()), std::invalid_argument);
    EXPECT_TRUE(lock.owns_lock());
}

TEST(ConditionWaitAny, AStopAndATimeoutTakeNothing) {
    std::mutex mutex;
    condition changed;
    tocsin::auto_reset_event job;
    std::stop_source stop;
    thread_group threads;
    threads.start("stopped", [&] {
        std_lock lock(mutex);
        EXPECT_EQ(changed.wait_any(lock, {.stop = stop.get_token()}, job).status, wait_status::stopped);
        EXPECT_TRUE(lock.owns_lock());
    });
    until_parked(&changed, 1);
    stop.request_stop();
    threads.join();
    EXPECT_EQ(tocsin::waiting_on(&changed), 0u);
}

TEST(ConditionWaitAny, AllocatesNothingForFewSources) {
    std::mutex mutex;
    std_lock lock(mutex);
    condition changed;
    tocsin::auto_reset_event job;
    const auto before = support::allocations();
    EXPECT_EQ(changed.wait_any(lock, {.until = 1ms}, job).status, wait_status::timed_out);
    EXPECT_EQ(changed.wait_for(lock, 1ms), std::cv_status::timeout);
    EXPECT_EQ(support::allocations(), before);
}

TEST(Condition, IsListedUnderItsName) {
    std::mutex mutex;
    condition changed;
    tocsin::name_address(&changed, "changed");
    thread_group threads;
    threads.start("waiter", [&] {
        std_lock lock(mutex);
        changed.wait(lock);
    });
    until_parked(&changed, 1);
    EXPECT_NE(tocsin::describe_parked_waits().find("'changed'"), std::string::npos);
    EXPECT_NE(tocsin::describe_parked_waits().find("condition "), std::string::npos);
    changed.notify_one();
    threads.join();
    tocsin::name_address(&changed, "");
}

TEST(Condition, NobodyWhoWaitsMeansNoSystemCall) {
    const auto calls = support::system_calls_of([] {
        condition changed;
        word_lock<> lock;
        lock.lock();
        changed.notify_one();
        changed.notify_all();
        changed.wait(lock, [] { return true; });
        (void)changed.wait_for(lock, 0s);
        lock.unlock();
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_TRUE(calls.numbers.empty()) << testing::PrintToString(calls);
}

// --- bad input --------------------------------------------------------------------------------------------------

TEST(Condition, RefusesALockThatIsNotHeld) {
    std::mutex mutex;
    condition changed;
    tocsin::auto_reset_event job;
    std_lock not_held(mutex, std::defer_lock);
    std_lock without_mutex;
    for (std_lock* lock : {&not_held, &without_mutex}) {
        try {
            changed.wait(*lock);
            FAIL() << "a lock that is not held";
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), std::errc::operation_not_permitted);
            EXPECT_NE(std::string(error.what()).find("condition at "), std::string::npos);
        }
        EXPECT_THROW((void)changed.wait_for(*lock, 0s), std::system_error);
        EXPECT_THROW((void)changed.wait_any(*lock, job), std::system_error);
    }
    EXPECT_EQ(tocsin::waiting_on(&changed), 0u);
    changed.notify_one();
}

#if TOCSIN_CHECKED
TEST(ConditionDeathTest, AWordLockThatIsNotHeld) {
    EXPECT_DEATH_IF_SUPPORTED(
        {
            condition changed;
            word_lock<> lock;
            changed.wait(lock);
        },
        "lock at .*unlocked although it was not locked");
}

void destroy_with_a_waiter() {
    static std::mutex mutex;
    auto* const one = new condition;
    support::start_unjoined([one] {
        std_lock lock(mutex);
        one->wait(lock);
    });
    until_parked(one, 1);
    delete one;
}

TEST(ConditionDeathTest, DestroyedWhileAThreadWaits) {
    EXPECT_DEATH_IF_SUPPORTED(destroy_with_a_waiter(), "tocsin: condition at .*destroyed while threads wait");
}
#endif

}  // namespace

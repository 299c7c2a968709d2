// SPDX-License-Identifier: Apache-2.0
// The robust lock in shared memory.
#include "shared_objects.hpp"

#include <tocsin/shared_lock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

namespace {

using namespace std::chrono_literals;
using namespace shared_objects;
using tocsin::lock_status;
using lock_in_memory = placed<tocsin::shared_lock>;

void expect_error(std::errc wanted, auto call) {
    try {
        call();
        ADD_FAILURE() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), wanted) << error.what();
    }
}

TEST(SharedLock, IsFreeInZeroedMemory) {
    lock_in_memory lock;
    EXPECT_EQ(lock->lock(), lock_status::acquired);
    lock->unlock();
    EXPECT_EQ(lock->try_lock(), lock_status::acquired);
    lock->unlock();
    EXPECT_EQ(lock->try_lock_for(1ms), lock_status::acquired);
    lock->unlock();
}

TEST(SharedLock, MisuseIsRefused) {
    lock_in_memory lock;
    expect_error(std::errc::operation_not_permitted, [&] { lock->unlock(); });
    expect_error(std::errc::operation_not_permitted, [&] { lock->mark_repaired(); });
    EXPECT_EQ(lock->lock(), lock_status::acquired);
    expect_error(std::errc::resource_deadlock_would_occur, [&] { (void)lock->lock(); });
    std::thread([&] { expect_error(std::errc::operation_not_permitted, [&] { lock->unlock(); }); }).join();
    lock->unlock();
}

TEST(SharedLock, ExcludesThreadsAndProcesses) {
    lock_in_memory lock;
    std::atomic<std::uint32_t>& count = lock.flag(0);
    const auto work = [&] {
        for (int i = 0; i != 2000; ++i) {
            if (lock->lock() != lock_status::acquired) ::_exit(1);
            count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            lock->unlock();
        }
    };
    const pid_t a = in_child(work), b = in_child(work);
    std::thread c(work), d(work);
    c.join();
    d.join();
    EXPECT_EQ(end_of(a), 0);
    EXPECT_EQ(end_of(b), 0);
    EXPECT_EQ(count, 8000u);
}

TEST(SharedLock, WaitsEndByDeadlineAndByStop) {
    lock_in_memory lock;
    ASSERT_EQ(lock->lock(), lock_status::acquired);
    std::thread([&] {
        EXPECT_EQ(lock->try_lock(), lock_status::busy);
        EXPECT_EQ(lock->try_lock_for(10ms), lock_status::timed_out);
        EXPECT_EQ(lock->try_lock_for(0ms), lock_status::timed_out);
        std::stop_source stop;
        std::jthread stopper([&] {
            ASSERT_TRUE(comes_true([&] { return lock.slots_in(1) == 1; }));
            stop.request_stop();
        });
        EXPECT_EQ(lock->lock(stop.get_token()), lock_status::stopped);
    }).join();
    EXPECT_EQ(lock.slots_in(1), 0u);
    lock->unlock();
    EXPECT_EQ(lock->lock(), lock_status::acquired);
    lock->unlock();
}

TEST(SharedLock, TheNextOwnerLearnsOfADeath) {
    lock_in_memory lock;
    EXPECT_EQ(end_of(in_child([&] { (void)lock->lock(); })), 0);
    EXPECT_EQ(lock->lock(), lock_status::owner_died);
    lock->mark_repaired();
    lock->unlock();
    EXPECT_EQ(lock->lock(), lock_status::acquired);
    lock->unlock();
}

TEST(SharedLock, ASleeperLearnsOfADeathAtOnce) {
    lock_in_memory lock;
    const pid_t holder = in_child([&] {
        (void)lock->lock();
        lock.flag(0) = 1;
        ::pause();
    });
    ASSERT_TRUE(comes_true([&] { return lock.flag(0) == 1; }));
    const pid_t sleeper = in_child([&] { ::_exit(lock->lock() == lock_status::owner_died ? 7 : 1); });
    ASSERT_TRUE(comes_true([&] { return lock.slots_in(1) == 1 && is_asleep(sleeper); }));
    kill_now(holder);
    EXPECT_EQ(WEXITSTATUS(end_of(sleeper)), 7);
    EXPECT_EQ(lock->lock(), lock_status::owner_died);  // the sleeper ended without a word
    lock->mark_repaired();
    lock->unlock();
}

// The kernel tells one of the sleepers, and this one may be killed before it runs. In a new lock, the two sleepers
// claim slots that nobody has owned, while the other is about to sleep.
TEST(SharedLock, ASleeperLearnsOfADeathAlsoIfAnotherSleeperIsKilled) {
    for (int round = 0; round != 50; ++round) {
        lock_in_memory lock;
        const pid_t holder = in_child([&] {
            (void)lock->lock();
            lock.flag(0) = 1;
            ::pause();
        });
        ASSERT_TRUE(comes_true([&] { return lock.flag(0) == 1; }));
        const auto one = [&] { ::_exit(lock->lock() == lock_status::owner_died ? 7 : 1); };
        const pid_t victim = in_child(one), survivor = in_child(one);
        ASSERT_TRUE(
            comes_true([&] { return lock.slots_in(1) == 2 && is_asleep(victim) && is_asleep(survivor); }));
        ::kill(holder, SIGKILL);
        ::kill(victim, SIGKILL);
        EXPECT_EQ(WEXITSTATUS(end_of(survivor)), 7) << "round " << round;
        (void)end_of(holder);
        (void)end_of(victim);
    }
}

TEST(SharedLock, AnUnlockWithoutRepairLosesTheLockForAll) {
    lock_in_memory lock;
    EXPECT_EQ(end_of(in_child([&] { (void)lock->lock(); })), 0);
    ASSERT_EQ(lock->lock(), lock_status::owner_died);
    std::vector<pid_t> sleepers;
    for (int i = 0; i != 3; ++i)
        sleepers.push_back(in_child([&] { ::_exit(lock->lock() == lock_status::lost ? 7 : 1); }));
    ASSERT_TRUE(comes_true([&] { return lock.slots_in(1) == 3; }));
    lock->unlock();
    for (const pid_t child : sleepers) EXPECT_EQ(WEXITSTATUS(end_of(child)), 7);
    EXPECT_EQ(lock->lock(), lock_status::lost);
    EXPECT_EQ(lock->try_lock(), lock_status::lost);
}

TEST(SharedLock, AThreadThatEndsWithTheLockCountsAsDead) {
    lock_in_memory lock;
    std::thread([&] { EXPECT_EQ(lock->lock(), lock_status::acquired); }).join();
    EXPECT_EQ(lock->lock(), lock_status::owner_died);
    lock->mark_repaired();
    lock->unlock();
}

TEST(SharedLock, AChildOfAForkDoesNotHoldWhatItsParentHolds) {
    lock_in_memory lock;
    ASSERT_EQ(lock->lock(), lock_status::acquired);
    EXPECT_EQ(WEXITSTATUS(end_of(in_child([&] {
                  try {
                      lock->unlock();
                  } catch (const std::system_error&) {
                      ::_exit(lock->try_lock() == lock_status::busy ? 7 : 1);
                  }
              }))),
              7);
    lock->unlock();
    EXPECT_EQ(lock->lock(), lock_status::acquired);
    lock->unlock();
}

TEST(SharedLock, AThreadCanHoldSixtyFour) {
    std::vector<std::unique_ptr<lock_in_memory>> locks;
    for (int i = 0; i != 65; ++i) locks.push_back(std::make_unique<lock_in_memory>());
    for (int i = 0; i != 64; ++i)
        ASSERT_EQ((*locks[static_cast<std::size_t>(i)])->lock(), lock_status::acquired);
    expect_error(std::errc::no_lock_available, [&] { (void)(*locks[64])->lock(); });
    for (int i = 0; i != 64; ++i) (*locks[static_cast<std::size_t>((i * 37) % 64)])->unlock();
    ASSERT_EQ((*locks[64])->lock(), lock_status::acquired);
    (*locks[64])->unlock();
}

// The kernel's list is that of the C library's robust mutexes. Both kinds are locked and unlocked in an order that
// puts one in front of the other in every way, and then a death leaves both kinds.
TEST(SharedLock, MixesWithRobustMutexesOfTheCLibrary) {
    lock_in_memory first, second;
    tocsin::shared_memory memory = tocsin::shared_memory::anonymous(4096);
    auto* const mutexes = static_cast<pthread_mutex_t*>(memory.data());
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    for (int i = 0; i != 3; ++i) pthread_mutex_init(&mutexes[i], &robust);
    const pid_t child = in_child([&] {
        for (int i = 0; i != 4; ++i) {
            pthread_mutex_lock(&mutexes[0]);
            if (first->lock() != lock_status::acquired) ::_exit(1);
            pthread_mutex_lock(&mutexes[1]);
            if (second->lock() != lock_status::acquired) ::_exit(1);
            pthread_mutex_lock(&mutexes[2]);
            if (i == 3) ::_exit(7);
            pthread_mutex_unlock(&mutexes[i % 3]);
            i == 1 ? first->unlock() : second->unlock();
            pthread_mutex_unlock(&mutexes[(i + 1) % 3]);
            i == 1 ? second->unlock() : first->unlock();
            pthread_mutex_unlock(&mutexes[(i + 2) % 3]);
        }
    });
    EXPECT_EQ(WEXITSTATUS(end_of(child)), 7);
    for (int i = 0; i != 3; ++i) EXPECT_EQ(pthread_mutex_trylock(&mutexes[i]), EOWNERDEAD) << i;
    EXPECT_EQ(first->try_lock(), lock_status::owner_died);
    EXPECT_EQ(second->try_lock(), lock_status::owner_died);
    for (int i = 0; i != 3; ++i) {
        pthread_mutex_consistent(&mutexes[i]);
        pthread_mutex_unlock(&mutexes[i]);
    }
    first->mark_repaired();
    first->unlock();
    second->mark_repaired();
    second->unlock();
}

}  // namespace

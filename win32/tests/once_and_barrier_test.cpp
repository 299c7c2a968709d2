// SPDX-License-Identifier: Apache-2.0
// InitOnce*: the table of states, and initialization by exactly one of many. Synchronization barriers, which Wine 8
// lacks: its functions raise an exception.
#include "system.hpp"

#include <atomic>
#include <memory>

namespace {

using namespace win32;

std::uintptr_t word_of(const INIT_ONCE& once) { return reinterpret_cast<std::uintptr_t>(once.Ptr); }
void* context_of(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

class Once : public testing::Test {
protected:
    INIT_ONCE once = INIT_ONCE_STATIC_INIT;
    BOOL pending = 7;
    void* context = nullptr;

    testing::AssertionResult begins(DWORD flags, BOOL expected_pending) {
        pending = 7;
        const auto result = works(InitOnceBeginInitialize, &once, flags, &pending, &context);
        if (result && pending != expected_pending)
            return testing::AssertionFailure() << "pending: " << pending;
        return result;
    }
    testing::AssertionResult fails_to_begin(DWORD error, DWORD flags) {
        pending = 7;
        const auto result = fails(error, InitOnceBeginInitialize, &once, flags, &pending, &context);
        if (result && pending != 7) return testing::AssertionFailure() << "pending was written";
        return result;
    }
    testing::AssertionResult completes(DWORD flags, void* its_context = nullptr) {
        return works(InitOnceComplete, &once, flags, its_context);
    }
    testing::AssertionResult fails_to_complete(DWORD error, DWORD flags, void* its_context = nullptr) {
        return fails(error, InitOnceComplete, &once, flags, its_context);
    }
};

BOOL CALLBACK write_nothing(PINIT_ONCE, PVOID seen, PVOID* its_context) {
    *static_cast<PVOID**>(seen) = its_context;
    return TRUE;
}

TEST_F(Once, GivesTheCallersOwnPointerToTheCallbackAndKeepsWhatIsThere) {
    PVOID* seen = nullptr;
    context = context_of(0x5550);
    EXPECT_TRUE(works(InitOnceExecuteOnce, &once, write_nothing, &seen, &context));
    EXPECT_EQ(seen, &context);
    EXPECT_EQ(context, context_of(0x5550));
    EXPECT_EQ(word_of(once), 0x5552u);
    context = nullptr;
    EXPECT_TRUE(works(InitOnceExecuteOnce, &once, write_nothing, &seen, &context));
    EXPECT_EQ(context, context_of(0x5550)) << "the caller's value, for all later callers";
}

TEST_F(Once, GivesNoPointerToTheCallbackIfTheCallerHasNone) {
    PVOID* seen = &context;
    EXPECT_TRUE(works(InitOnceExecuteOnce, &once, write_nothing, &seen, nullptr));
    EXPECT_EQ(seen, nullptr);
    EXPECT_EQ(word_of(once), 2u);
}

TEST_F(Once, IsZeroAtFirst) {
    EXPECT_EQ(word_of(once), 0u);
    once.Ptr = context_of(77);
    InitOnceInitialize(&once);
    EXPECT_EQ(word_of(once), 0u);
}

// The values of the word were observed.
TEST_F(Once, IsBegunAndCompletedWithAContext) {
    EXPECT_TRUE(begins(0, TRUE));
    EXPECT_EQ(word_of(once), 1u);
    EXPECT_TRUE(completes(0, context_of(0x1234)));
    EXPECT_EQ(word_of(once), 0x1236u);
    for (const DWORD flags : {DWORD{0}, DWORD{INIT_ONCE_ASYNC}, DWORD{INIT_ONCE_CHECK_ONLY}}) {
        context = nullptr;
        EXPECT_TRUE(begins(flags, FALSE));
        EXPECT_EQ(context, context_of(0x1234));
    }
    EXPECT_TRUE(works(InitOnceBeginInitialize, &once, 0u, &pending, nullptr));
}

TEST_F(Once, IsBegunAgainAfterAFailure) {
    EXPECT_TRUE(begins(0, TRUE));
    EXPECT_TRUE(completes(INIT_ONCE_INIT_FAILED));
    EXPECT_EQ(word_of(once), 0u);
    EXPECT_TRUE(begins(0, TRUE));
    EXPECT_TRUE(completes(0));
    EXPECT_TRUE(begins(0, FALSE));
}

TEST_F(Once, IsBegunByManyAsynchronouslyAndCompletedByTheFirst) {
    EXPECT_TRUE(begins(INIT_ONCE_ASYNC, TRUE));
    EXPECT_EQ(word_of(once), 3u);
    EXPECT_TRUE(begins(INIT_ONCE_ASYNC, TRUE));
    EXPECT_TRUE(completes(INIT_ONCE_ASYNC, context_of(8)));
    EXPECT_EQ(word_of(once), 10u);
    EXPECT_TRUE(fails_to_complete(ERROR_GEN_FAILURE, INIT_ONCE_ASYNC, context_of(16)));  // likely
    EXPECT_TRUE(begins(INIT_ONCE_CHECK_ONLY, FALSE));
    EXPECT_EQ(context, context_of(8));
}

TEST_F(Once, IsNotBegunBothWays) {
    EXPECT_TRUE(begins(INIT_ONCE_ASYNC, TRUE));
    EXPECT_TRUE(fails_to_begin(ERROR_INVALID_PARAMETER, 0));
    EXPECT_TRUE(fails_to_complete(ERROR_INVALID_PARAMETER, 0));
    EXPECT_EQ(word_of(once), 3u);
    InitOnceInitialize(&once);
    EXPECT_TRUE(begins(0, TRUE));
    EXPECT_TRUE(fails_to_begin(ERROR_INVALID_PARAMETER, INIT_ONCE_ASYNC));
    if (under_wine()) return;  // Wine 8 completes it
    EXPECT_TRUE(fails_to_complete(ERROR_INVALID_PARAMETER, INIT_ONCE_ASYNC));
    EXPECT_EQ(word_of(once), 1u);
}

TEST_F(Once, IsLookedAtWithoutBeingBegun) {
    EXPECT_TRUE(fails_to_begin(ERROR_GEN_FAILURE, INIT_ONCE_CHECK_ONLY));
    EXPECT_TRUE(fails_to_begin(ERROR_INVALID_PARAMETER, INIT_ONCE_CHECK_ONLY | INIT_ONCE_ASYNC));
    EXPECT_TRUE(begins(0, TRUE));
    EXPECT_TRUE(fails_to_begin(ERROR_GEN_FAILURE, INIT_ONCE_CHECK_ONLY));
    EXPECT_TRUE(completes(0));
    EXPECT_TRUE(fails_to_begin(ERROR_INVALID_PARAMETER, INIT_ONCE_CHECK_ONLY | INIT_ONCE_ASYNC));
}

TEST_F(Once, IsNotCompletedWithWhatMakesNoSense) {
    EXPECT_TRUE(fails_to_complete(ERROR_GEN_FAILURE, INIT_ONCE_INIT_FAILED));
    EXPECT_TRUE(begins(0, TRUE));
    EXPECT_TRUE(fails_to_complete(ERROR_INVALID_PARAMETER, INIT_ONCE_INIT_FAILED, context_of(4)));
    EXPECT_TRUE(fails_to_complete(ERROR_INVALID_PARAMETER, INIT_ONCE_INIT_FAILED | INIT_ONCE_ASYNC));
    for (const std::uintptr_t low : {1u, 2u, 3u, 7u}) {
        EXPECT_TRUE(fails_to_complete(ERROR_INVALID_PARAMETER, 0, context_of(low)));
    }
    EXPECT_EQ(word_of(once), 1u);
    EXPECT_TRUE(completes(0, context_of(4)));
}

TEST_F(Once, KeepsOthersUntilItIsDone) {
    EXPECT_TRUE(begins(0, TRUE));
    thread_group threads;
    threads.start_many(3, "other", [&](int) {
        BOOL its_pending = 7;
        void* its_context = nullptr;
        EXPECT_TRUE(works(InitOnceBeginInitialize, &once, 0u, &its_pending, &its_context));
        EXPECT_EQ(its_pending, FALSE);
        EXPECT_EQ(its_context, context_of(32));
    });
    until_all_wait(threads);
    EXPECT_TRUE(completes(0, context_of(32)));
}

TEST_F(Once, LetsAnotherTryAfterAFailure) {
    EXPECT_TRUE(begins(0, TRUE));
    std::atomic<int> tried{0};
    thread_group threads;
    threads.start_many(3, "other", [&](int) {
        BOOL its_pending = 7;
        EXPECT_TRUE(works(InitOnceBeginInitialize, &once, 0u, &its_pending, nullptr));
        if (!its_pending) return;
        const bool is_last = tried.fetch_add(1) == 1;
        EXPECT_TRUE(completes(is_last ? 0 : INIT_ONCE_INIT_FAILED));
    });
    until_all_wait(threads);
    EXPECT_TRUE(completes(INIT_ONCE_INIT_FAILED));
    threads.join();
    EXPECT_EQ(tried.load(), 2);
}

struct initialization {
    std::atomic<int> calls{0};
    BOOL result = TRUE;
    std::uintptr_t context = 64;
};
BOOL WINAPI initialize(PINIT_ONCE, void* parameter, void** context) {
    auto& self = *static_cast<initialization*>(parameter);
    self.calls.fetch_add(1);
    if (context) *context = context_of(self.context);
    SetLastError(untouched + 1);
    return self.result;
}

TEST_F(Once, ExecutesAFunctionUntilItSucceeds) {
    initialization its;
    its.result = FALSE;
    for (int i = 1; i <= 3; ++i) {
        SetLastError(untouched);
        EXPECT_EQ(InitOnceExecuteOnce(&once, initialize, &its, &context), FALSE);
        EXPECT_EQ(GetLastError(), untouched + 1) << "as the function left it";
        EXPECT_EQ(its.calls.load(), i);
        EXPECT_EQ(word_of(once), 0u);
    }
    its.result = TRUE;
    for (int i = 0; i < 3; ++i) {
        context = nullptr;
        EXPECT_TRUE(works(InitOnceExecuteOnce, &once, initialize, &its, &context));
        EXPECT_EQ(context, context_of(64));
        EXPECT_EQ(its.calls.load(), 4);
    }
}

TEST_F(Once, ExecutesAFunctionInOneOfManyThreads) {
    for (int i = 0; i < few(200, 20); ++i) {
        INIT_ONCE fresh = INIT_ONCE_STATIC_INIT;
        initialization its;
        support::starting_line line(4);
        thread_group threads;
        threads.start_many(4, "caller", [&](int) {
            void* its_context = nullptr;
            line.arrive();
            EXPECT_TRUE(works(InitOnceExecuteOnce, &fresh, initialize, &its, &its_context));
            EXPECT_EQ(its_context, context_of(64));
        });
        threads.join();
        EXPECT_EQ(its.calls.load(), 1);
    }
}

class Barrier : public testing::Test {
protected:
    void SetUp() override {
        if (under_wine()) GTEST_SKIP() << "Wine has no barriers";
    }
};

TEST_F(Barrier, IsNotMadeOfWhatMakesNoSense) {
    SYNCHRONIZATION_BARRIER barrier;
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, InitializeSynchronizationBarrier, &barrier, 0, -1));
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, InitializeSynchronizationBarrier, &barrier, -1, -1));
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, InitializeSynchronizationBarrier, &barrier, 1, -2));
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, InitializeSynchronizationBarrier, nullptr, 1, -1));
    SetLastError(untouched);
    EXPECT_TRUE(works(InitializeSynchronizationBarrier, &barrier, 1, -1));
    EXPECT_EQ(GetLastError(), untouched);
    EXPECT_TRUE(works(DeleteSynchronizationBarrier, &barrier));
}

TEST_F(Barrier, OfOneIsAlwaysComplete) {
    for (const LONG spin : {-1, 0, 100}) {
        SYNCHRONIZATION_BARRIER barrier;
        EXPECT_TRUE(works(InitializeSynchronizationBarrier, &barrier, 1, spin));
        for (const DWORD flags : {0u, 1u, 2u, 4u, 6u})
            EXPECT_TRUE(works(EnterSynchronizationBarrier, &barrier, flags));
        EXPECT_TRUE(works(DeleteSynchronizationBarrier, &barrier));
    }
}

TEST_F(Barrier, ReleasesAllWhenTheLastArrivesAndTellsOne) {
    for (const DWORD flags : {DWORD{0}, DWORD{SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY},
                              DWORD{SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE}}) {
        SYNCHRONIZATION_BARRIER barrier;
        EXPECT_TRUE(works(InitializeSynchronizationBarrier, &barrier, 4, -1));
        std::atomic<int> told{0};
        thread_group threads;
        threads.start_many(3, "early",
                           [&](int) { told.fetch_add(EnterSynchronizationBarrier(&barrier, flags)); });
        until_all_wait(threads);
        EXPECT_EQ(threads.finished(), 0u);
        EXPECT_EQ(EnterSynchronizationBarrier(&barrier, flags), TRUE) << "the last to arrive";
        threads.join();
        EXPECT_EQ(told.load(), 0);
        EXPECT_TRUE(works(DeleteSynchronizationBarrier, &barrier));
    }
}

TEST_F(Barrier, SeparatesPhases) {
    constexpr int count = 4;
    const int phases = few(500, 50);
    SYNCHRONIZATION_BARRIER barrier;
    EXPECT_TRUE(works(InitializeSynchronizationBarrier, &barrier, count, 0));
    std::atomic<int> arrived{0}, told{0};
    thread_group threads;
    threads.start_many(count, "member", [&](int) {
        for (int i = 1; i <= phases; ++i) {
            arrived.fetch_add(1);
            told.fetch_add(EnterSynchronizationBarrier(&barrier, 0));
            ASSERT_GE(arrived.load(), i * count);
        }
    });
    threads.join();
    EXPECT_EQ(told.load(), phases);
    EXPECT_TRUE(works(DeleteSynchronizationBarrier, &barrier));
}

// The one that was told may delete it at once: Delete waits until those who were released have left.
TEST_F(Barrier, IsDeletedByTheLastWhileTheOthersLeave) {
    for (int i = 0; i < few(200, 30); ++i) {
        auto barrier = std::make_unique<SYNCHRONIZATION_BARRIER>();
        EXPECT_TRUE(works(InitializeSynchronizationBarrier, barrier.get(), 3, 0));
        std::atomic<int> deleted{0};
        thread_group threads;
        threads.start_many(3, "member", [&, itself = barrier.get()](int) {
            if (!EnterSynchronizationBarrier(itself, 0)) return;
            EXPECT_TRUE(works(DeleteSynchronizationBarrier, itself));
            barrier.reset();
            deleted.fetch_add(1);
        });
        threads.join();
        EXPECT_EQ(deleted.load(), 1);
    }
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// CreateMutex*, ReleaseMutex; recursion and abandonment.
#include "system.hpp"

#include <atomic>
#include <functional>

namespace {

using namespace win32;

constexpr DWORD abandoned = WAIT_ABANDONED_0;

TEST(Mutex, IsOwnedByItsCreatorIfAskedFor) {
    const DWORD every = MUTEX_ALL_ACCESS;
    for (const HANDLE made : {CreateMutexA(nullptr, TRUE, nullptr), CreateMutexW(nullptr, 2, nullptr),
                              CreateMutexExA(nullptr, nullptr, CREATE_MUTEX_INITIAL_OWNER, every),
                              CreateMutexExW(nullptr, nullptr, CREATE_MUTEX_INITIAL_OWNER, every)}) {
        const handle object(made);
        elsewhere([&] { EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT}); });
        EXPECT_TRUE(works(ReleaseMutex, object));
        EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, object));
    }
    for (const HANDLE made :
         {CreateMutexA(nullptr, FALSE, nullptr), CreateMutexW(nullptr, FALSE, nullptr),
          CreateMutexExA(nullptr, nullptr, 0, every), CreateMutexExW(nullptr, nullptr, 0, every)}) {
        const handle object(made);
        EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, object));
        elsewhere([&] {
            EXPECT_EQ(look(object), WAIT_OBJECT_0);
            EXPECT_TRUE(works(ReleaseMutex, object));
        });
    }
}

TEST(Mutex, IsTakenAgainByItsOwnerInEveryKindOfWait) {
    const handle object = mutex(true), event = manual(true);
    EXPECT_EQ(wait(object), WAIT_OBJECT_0);
    EXPECT_EQ(look(object), WAIT_OBJECT_0);
    EXPECT_EQ(wait_any({object}), WAIT_OBJECT_0);
    EXPECT_EQ(wait_any({object, event}, 0), WAIT_OBJECT_0);
    EXPECT_EQ(wait_all({event, object}, 0), WAIT_OBJECT_0);
    EXPECT_EQ(SignalObjectAndWait(event, object, 0, FALSE), WAIT_OBJECT_0);
    for (int depth = 7; depth > 0; --depth) {
        elsewhere([&] { EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT}) << "at depth " << depth; });
        EXPECT_TRUE(works(ReleaseMutex, object));
    }
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, object));
    elsewhere([&] {
        EXPECT_EQ(look(object), WAIT_OBJECT_0);
        EXPECT_TRUE(works(ReleaseMutex, object));
    });
}

TEST(Mutex, IsNotTakenAgainByAWaitOfItsOwnerThatLacksAnother) {
    const handle object = mutex(true), missing = automatic();
    EXPECT_EQ(wait_all({object, missing}, 5), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(wait_any({missing, object}, 5), WAIT_OBJECT_0 + 1);
    EXPECT_TRUE(works(ReleaseMutex, object));
    EXPECT_TRUE(works(ReleaseMutex, object));
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, object));
}

TEST(Mutex, IsReleasedByItsOwnerOnly) {
    const handle object = mutex(true);
    elsewhere([&] { EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, object)); });
    EXPECT_TRUE(works(ReleaseMutex, object));
}

TEST(Mutex, IsReleasedThroughAnyOfItsHandles) {
    const handle object = mutex(true), copy = duplicate(object);
    EXPECT_TRUE(works(ReleaseMutex, copy));
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, object));
}

TEST(Mutex, IsHandedToOneWhoWaits) {
    const handle object = mutex(true);
    std::atomic<int> owners{0}, released{0};
    thread_group threads;
    threads.start_many(3, "waiter", [&](int) {
        EXPECT_EQ(wait(object), WAIT_OBJECT_0);
        EXPECT_EQ(owners.fetch_add(1), 0);
        nap(1ms);
        owners.fetch_sub(1);
        released.fetch_add(1);
        EXPECT_TRUE(works(ReleaseMutex, object));
    });
    until_all_wait(threads);
    EXPECT_TRUE(works(ReleaseMutex, object));
    threads.join();
    EXPECT_EQ(released.load(), 3);
}

TEST(Mutex, ExcludesOthersHoweverItIsTaken) {
    const handle object = mutex(), never = automatic(), always = manual(true);
    int counted = 0;
    const int each = few(300, 40);
    thread_group threads;
    threads.start_many(4, "owner", [&](int index) {
        for (int i = 0; i < each; ++i) {
            const DWORD result = index == 0   ? wait(object)
                                 : index == 1 ? wait_any({never, object}) - 1
                                 : index == 2 ? wait_all({always, object})
                                              : SignalObjectAndWait(always, object, INFINITE, FALSE);
            ASSERT_EQ(result, WAIT_OBJECT_0);
            ++counted;
            ASSERT_TRUE(works(ReleaseMutex, object));
        }
    });
    threads.join();
    EXPECT_EQ(counted, 4 * each);
}

// How a thread ends that owns a mutex.
DWORD WINAPI take_and_return(void* object) {
    EXPECT_EQ(wait(static_cast<HANDLE>(object)), WAIT_OBJECT_0);
    return 3;
}
DWORD WINAPI take_and_exit(void* object) {
    EXPECT_EQ(wait(static_cast<HANDLE>(object)), WAIT_OBJECT_0);
    ExitThread(3);
}
void end_owning(HANDLE object, LPTHREAD_START_ROUTINE how) {
    const handle thread(CreateThread(nullptr, 0, how, object, 0, nullptr));
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
}

// By the time a wait for the thread returns, its mutexes are abandoned (observed).
TEST(Abandoned, MutexIsTakenWithThatResultOnceAndIsOrdinaryAfterwards) {
    for (const LPTHREAD_START_ROUTINE how : {&take_and_return, &take_and_exit}) {
        const handle object = mutex();
        end_owning(object, how);
        EXPECT_TRUE(returns(WAIT_ABANDONED, WaitForSingleObject, object, 0u));
        elsewhere([&] { EXPECT_EQ(look(object), DWORD{WAIT_TIMEOUT}) << "the one who took it owns it"; });
        EXPECT_EQ(look(object), WAIT_OBJECT_0);
        EXPECT_TRUE(works(ReleaseMutex, object));
        EXPECT_TRUE(works(ReleaseMutex, object));
        EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, object));
        elsewhere([&] {
            EXPECT_EQ(look(object), WAIT_OBJECT_0);
            EXPECT_TRUE(works(ReleaseMutex, object));
        });
    }
}

TEST(Abandoned, MutexIsAtDepthOneHoweverOftenItHadBeenTaken) {
    const handle object = mutex();
    end_owning(object, [](void* taken) -> DWORD {
        for (int i = 0; i < 5; ++i) EXPECT_EQ(wait(static_cast<HANDLE>(taken)), WAIT_OBJECT_0);
        return 0;
    });
    EXPECT_EQ(look(object), abandoned);
    EXPECT_TRUE(works(ReleaseMutex, object));
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, object));
}

TEST(Abandoned, MutexOfAThreadThatWasNotMadeByCreateThread) {
    const handle object = mutex();
    elsewhere([&] { EXPECT_EQ(wait(object), WAIT_OBJECT_0); });
    EXPECT_EQ(WaitForSingleObject(object, 10'000), abandoned);
}

TEST(Abandoned, MutexThatWasCreatedOwned) {
    handle object;
    elsewhere([&] { object = mutex(true); });
    EXPECT_EQ(WaitForSingleObject(object, 10'000), abandoned);
}

TEST(Abandoned, MutexesAreAllThatTheThreadOwned) {
    std::vector<handle> owned;
    for (int i = 0; i < 40; ++i) owned.push_back(mutex());
    end_owning(&owned, [](void* mutexes) -> DWORD {
        for (const auto& each : *static_cast<std::vector<handle>*>(mutexes))
            EXPECT_EQ(wait(each), WAIT_OBJECT_0);
        return 0;
    });
    for (const auto& each : owned) EXPECT_EQ(look(each), abandoned);
}

TEST(Abandoned, MutexEndsAWaitThatSleeps) {
    const std::function<DWORD(HANDLE, HANDLE)> waits[] = {
        [](HANDLE object, HANDLE) { return wait(object); },
        [](HANDLE object, HANDLE never) { return wait_any({never, object}) - 1; },
        [](HANDLE object, HANDLE) {
            const handle always = manual(true);
            return wait_all({always, object});
        },
    };
    for (const auto& waits_somehow : waits) {
        const handle object = mutex(), never = automatic(), owned = automatic(), end = automatic();
        thread_group threads;
        threads.start("waiter", [&] {
            EXPECT_EQ(wait(owned), WAIT_OBJECT_0);
            EXPECT_EQ(waits_somehow(object, never), abandoned);
            EXPECT_TRUE(works(ReleaseMutex, object));
        });
        threads.start("owner", [&] {
            EXPECT_EQ(wait(object), WAIT_OBJECT_0);
            EXPECT_TRUE(works(SetEvent, owned));
            EXPECT_EQ(wait(end), WAIT_OBJECT_0);
        });
        until_all_wait(threads);
        EXPECT_TRUE(works(SetEvent, end));
        threads.join();
        EXPECT_EQ(look(object), WAIT_OBJECT_0);
        EXPECT_TRUE(works(ReleaseMutex, object));
    }
}

TEST(Abandoned, MutexHasItsIndexInAWaitForAny) {
    const handle first = automatic(), object = mutex(), last = mutex();
    end_owning(object, take_and_return);
    EXPECT_EQ(wait_any({first, object, last}), abandoned + 1);
    EXPECT_TRUE(works(ReleaseMutex, object));
    EXPECT_EQ(wait_any({first, object, last}), WAIT_OBJECT_0 + 1);
    EXPECT_TRUE(works(ReleaseMutex, object));
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, last));
}

// Documented: some value from WAIT_ABANDONED_0 upwards. Observed: that value itself.
TEST(Abandoned, MutexMarksAWaitForAll) {
    const handle event = automatic(true), one = mutex(), other = mutex();
    end_owning(other, take_and_return);
    EXPECT_EQ(wait_all({event, one, other}), abandoned);
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(ReleaseMutex, one));
    EXPECT_TRUE(works(ReleaseMutex, other));
    EXPECT_EQ(wait_all({one, other}), WAIT_OBJECT_0);
    EXPECT_TRUE(works(ReleaseMutex, one));
    EXPECT_TRUE(works(ReleaseMutex, other));
}

TEST(Abandoned, MutexStaysSoInAWaitForAllThatTimesOut) {
    const handle missing = automatic(), object = mutex();
    end_owning(object, take_and_return);
    EXPECT_EQ(wait_all({missing, object}, 5), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, object));
    EXPECT_EQ(look(object), abandoned);
    EXPECT_TRUE(works(ReleaseMutex, object));
}

TEST(Abandoned, MutexCountsForSignalObjectAndWait) {
    const handle event = automatic(), object = mutex();
    end_owning(object, take_and_return);
    EXPECT_EQ(SignalObjectAndWait(event, object, 0, FALSE), abandoned);
    EXPECT_EQ(look(event), WAIT_OBJECT_0);
    EXPECT_TRUE(works(ReleaseMutex, object));
}

// Observed: the wait continues with the object, and gets it when the owner ends.
TEST(Abandoned, MutexReachesTheOneWhoWaitedWhenItsOnlyHandleWasClosed) {
    handle object = mutex();
    const handle owned = automatic(), end = automatic();
    thread_group threads;
    threads.start("owner", [&, taken = HANDLE(object)] {
        EXPECT_EQ(wait(taken), WAIT_OBJECT_0);
        EXPECT_TRUE(works(SetEvent, owned));
        EXPECT_EQ(wait(end), WAIT_OBJECT_0);
    });
    threads.start("waiter", [&, waited = HANDLE(object)] {
        EXPECT_EQ(wait(owned), WAIT_OBJECT_0);
        EXPECT_EQ(wait(waited), abandoned);
    });
    until_all_wait(threads);
    object.close();
    EXPECT_TRUE(works(SetEvent, end));
}

TEST(Mutex, MayBeClosedByItsOwnerThatThenEnds) {
    elsewhere([] {
        handle object = mutex(true);
        EXPECT_EQ(wait(object), WAIT_OBJECT_0);
    });
}

}  // namespace

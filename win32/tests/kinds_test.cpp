// SPDX-License-Identifier: Apache-2.0
// What holds for an object of every kind.
#include "kinds.hpp"

namespace {

using namespace win32;

template <class Kind>
class EveryKind : public testing::Test {
protected:
    Kind kind;
    const handle& object = kind.object;

    // Looks from a thread that owns no mutex, and owns none afterwards.
    DWORD looked() {
        DWORD result = 0;
        elsewhere([&] {
            result = look(object);
            if (result == WAIT_OBJECT_0) ReleaseMutex(object);  // fails for the other kinds
        });
        return result;
    }
};
TYPED_TEST_SUITE(EveryKind, all_kinds);

TYPED_TEST(EveryKind, IsUnsetAtFirst) {
    EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForSingleObject, this->object, 0u));
    EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForSingleObjectEx, this->object, 0u, FALSE));
    const HANDLE alone = this->object;
    EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForMultipleObjects, 1u, &alone, FALSE, 0u));
    EXPECT_TRUE(returns(WAIT_TIMEOUT, WaitForMultipleObjectsEx, 1u, &alone, TRUE, 0u, FALSE));
}

TYPED_TEST(EveryKind, TimesOutNotEarly) {
    for (const DWORD time : {1u, 20u}) {
        DWORD result = 0;
        EXPECT_GE(time_of([&] { result = WaitForSingleObject(this->object, time); }),
                  at_least(std::chrono::milliseconds(time)));
        EXPECT_EQ(result, DWORD{WAIT_TIMEOUT});
    }
}

TYPED_TEST(EveryKind, EndsAWaitThatSleeps) {
    for (const DWORD time : {DWORD{INFINITE}, DWORD{INFINITE - 1}, DWORD{60'000}}) {
        TypeParam each;
        thread_group threads;
        threads.start([&] { EXPECT_TRUE(returns(WAIT_OBJECT_0, WaitForSingleObject, each.object, time)); });
        until_waits(threads, 0);
        each.signal();
    }
}

TYPED_TEST(EveryKind, IsFoundSetByEveryKindOfWait) {
    for (const DWORD time : {DWORD{0}, DWORD{1}, DWORD{INFINITE}}) {
        TypeParam each;
        each.signal();
        EXPECT_TRUE(returns(WAIT_OBJECT_0, WaitForSingleObject, each.object, time == 0 ? 1000u : time));
    }
    const handle never = automatic();
    TypeParam any, all;
    any.signal();
    EXPECT_EQ(wait_any({never, any.object}), WAIT_OBJECT_0 + 1);
    all.signal();
    const handle too = automatic(true);
    EXPECT_EQ(wait_all({too, all.object}), WAIT_OBJECT_0);
    EXPECT_EQ(look(too), DWORD{WAIT_TIMEOUT});
}

TYPED_TEST(EveryKind, IsTakenByAWaitIfItsKindIs) {
    this->kind.signal();
    EXPECT_EQ(wait(this->object), WAIT_OBJECT_0);
    EXPECT_EQ(this->looked(), TypeParam::is_taken ? DWORD{WAIT_TIMEOUT} : WAIT_OBJECT_0);
}

TYPED_TEST(EveryKind, IsNotTakenByAWaitForAllThatTimesOut) {
    const handle missing = automatic();
    this->kind.signal();
    EXPECT_EQ(wait_all({this->object, missing}, 20), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(wait_all({this->object, missing}, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(WaitForSingleObject(this->object, 1000), WAIT_OBJECT_0);
}

TYPED_TEST(EveryKind, IsNotTakenByAWaitForAnyThatHasTakenALowerIndex) {
    const handle first = automatic(true);
    this->kind.signal();
    EXPECT_EQ(wait_any({first, this->object}), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(this->object, 1000), WAIT_OBJECT_0);
}

TYPED_TEST(EveryKind, EndsAWaitForAnyWithItsIndex) {
    const handle first = automatic(), last = automatic();
    thread_group threads;
    threads.start([&] { EXPECT_EQ(wait_any({first, this->object, last}), WAIT_OBJECT_0 + 1); });
    until_waits(threads, 0);
    this->kind.signal();
}

TYPED_TEST(EveryKind, EndsAWaitForAllWhoseLastItIs) {
    const handle first = automatic(true), last = automatic(true);
    thread_group threads;
    threads.start([&] { EXPECT_EQ(wait_all({first, this->object, last}), WAIT_OBJECT_0); });
    until_waits(threads, 0);
    EXPECT_EQ(look(first), WAIT_OBJECT_0);  // another may take a member meanwhile
    EXPECT_TRUE(works(SetEvent, first));
    this->kind.signal();
    threads.join();
    EXPECT_EQ(look(first), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(look(last), DWORD{WAIT_TIMEOUT});
}

TYPED_TEST(EveryKind, IsSeenTwiceByAWaitForAnyAndRefusedTwiceByAWaitForAll) {
    const handle again = duplicate(this->object);
    const std::vector<HANDLE> same{this->object, this->object}, copies{this->object, again};
    if (!under_wine()) {  // Wine 8 waits
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitForMultipleObjects, 2u, same.data(), TRUE, 0u));
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitForMultipleObjects, 2u, copies.data(), TRUE, 0u));
    }
    EXPECT_EQ(wait_any(same, 0), DWORD{WAIT_TIMEOUT});
    this->kind.signal();
    EXPECT_EQ(wait_any(copies, 1000), WAIT_OBJECT_0);
}

TYPED_TEST(EveryKind, HasTheSameStateThroughEachHandle) {
    handle copy = duplicate(this->object);
    EXPECT_NE(HANDLE(copy), HANDLE(this->object));
    EXPECT_EQ(look(copy), DWORD{WAIT_TIMEOUT});
    this->kind.signal();
    EXPECT_EQ(WaitForSingleObject(copy, 1000), WAIT_OBJECT_0);
    EXPECT_EQ(this->looked(), TypeParam::is_taken ? DWORD{WAIT_TIMEOUT} : WAIT_OBJECT_0);
    if (std::is_same_v<TypeParam, owned_mutex>) {
        EXPECT_TRUE(works(ReleaseMutex, this->object));
    }
    copy.close();
    EXPECT_NE(look(this->object), WAIT_FAILED);
}

// Observed: the two lowest bits of a handle are ignored.
TYPED_TEST(EveryKind, IsReachedByItsHandleWithTheLowestTwoBitsSet) {
    for (const std::uintptr_t bits : {1, 2, 3}) {
        const HANDLE same =
            reinterpret_cast<HANDLE>(reinterpret_cast<std::uintptr_t>(HANDLE(this->object)) | bits);
        EXPECT_EQ(look(same), DWORD{WAIT_TIMEOUT});
    }
}

// Undefined by the documentation. Observed: the wait continues with the object.
TYPED_TEST(EveryKind, CanBeClosedWhileAnotherWaits) {
    handle copy = duplicate(this->object);
    thread_group threads;
    threads.start([&, waited = HANDLE(copy)] { EXPECT_EQ(wait(waited), WAIT_OBJECT_0); });
    until_waits(threads, 0);
    copy.close();
    this->kind.signal();
}

TYPED_TEST(EveryKind, RefusesTheCallsOfOtherKinds) {
    constexpr bool is_event =
        std::is_same_v<TypeParam, auto_event> || std::is_same_v<TypeParam, manual_event>;
    constexpr bool is_timer =
        std::is_same_v<TypeParam, auto_timer> || std::is_same_v<TypeParam, manual_timer>;
    const HANDLE other = this->object;
    LARGE_INTEGER due{};
    LONG previous = -7;
    DWORD code = 7;
    if (!is_event) {
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SetEvent, other));
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, ResetEvent, other));
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, PulseEvent, other));
    }
    if (!std::is_same_v<TypeParam, counting_semaphore>) {
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, ReleaseSemaphore, other, 1, &previous));
    }
    if (!std::is_same_v<TypeParam, owned_mutex>) {
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, ReleaseMutex, other));
    }
    if (!is_timer) {
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SetWaitableTimer, other, &due, 0, nullptr, nullptr, FALSE));
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, CancelWaitableTimer, other));
    }
    if (!std::is_same_v<TypeParam, ending_thread>) {
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, GetExitCodeThread, other, &code));
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, ResumeThread, other));
    }
    if (is_timer || std::is_same_v<TypeParam, ending_thread>) {
        const handle set = automatic(true);
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, SignalObjectAndWait, other, set, 0u, FALSE));
        EXPECT_EQ(look(set), WAIT_OBJECT_0);  // no wait took place
    }
    EXPECT_EQ(previous, -7);
    EXPECT_EQ(code, 7u);
    EXPECT_EQ(look(other), DWORD{WAIT_TIMEOUT});
}

TYPED_TEST(EveryKind, IsGoneWhenItsHandleIsClosed) {
    HANDLE gone = duplicate(this->object);  // and closed at once
    // Windows may have given the number to another thread of the process, such as one of GoogleTest's.
    if (over_tocsin) {
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, WaitForSingleObject, gone, 0u));
        EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, CloseHandle, gone));
    }
    EXPECT_EQ(look(this->object), DWORD{WAIT_TIMEOUT});
}

}  // namespace

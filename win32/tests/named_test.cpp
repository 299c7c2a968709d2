// SPDX-License-Identifier: Apache-2.0
// Objects with names: created, found, opened; one namespace for all kinds.
#include "system.hpp"

#include <array>
#include <functional>

namespace {

using namespace win32;

struct kind {
    const char* name;
    std::function<HANDLE(const char*)> create;
    std::function<HANDLE(const wchar_t*)> create_wide;
    std::function<HANDLE(const char*)> create_ex;
    std::function<HANDLE(DWORD, const char*)> open;
    std::function<HANDLE(DWORD, const wchar_t*)> open_wide;
};

const std::array<kind, 4>& kinds() {
    static const std::array<kind, 4> all{{
        {"event", [](auto name) { return CreateEventA(nullptr, FALSE, FALSE, name); },
         [](auto name) { return CreateEventW(nullptr, FALSE, FALSE, name); },
         [](auto name) { return CreateEventExA(nullptr, name, 0, EVENT_ALL_ACCESS); },
         [](auto access, auto name) { return OpenEventA(access, FALSE, name); },
         [](auto access, auto name) { return OpenEventW(access, FALSE, name); }},
        {"semaphore", [](auto name) { return CreateSemaphoreA(nullptr, 0, 2, name); },
         [](auto name) { return CreateSemaphoreW(nullptr, 0, 2, name); },
         [](auto name) { return CreateSemaphoreExA(nullptr, 0, 2, name, 0, SEMAPHORE_ALL_ACCESS); },
         [](auto access, auto name) { return OpenSemaphoreA(access, FALSE, name); },
         [](auto access, auto name) { return OpenSemaphoreW(access, FALSE, name); }},
        {"mutex", [](auto name) { return CreateMutexA(nullptr, FALSE, name); },
         [](auto name) { return CreateMutexW(nullptr, FALSE, name); },
         [](auto name) { return CreateMutexExA(nullptr, name, 0, MUTEX_ALL_ACCESS); },
         [](auto access, auto name) { return OpenMutexA(access, FALSE, name); },
         [](auto access, auto name) { return OpenMutexW(access, FALSE, name); }},
        {"timer", [](auto name) { return CreateWaitableTimerA(nullptr, FALSE, name); },
         [](auto name) { return CreateWaitableTimerW(nullptr, FALSE, name); },
         [](auto name) { return CreateWaitableTimerExA(nullptr, name, 0, TIMER_ALL_ACCESS); },
         [](auto access, auto name) { return OpenWaitableTimerA(access, FALSE, name); },
         [](auto access, auto name) { return OpenWaitableTimerW(access, FALSE, name); }},
    }};
    return all;
}

constexpr DWORD every_right = STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 3;

// Observed for mutexes with access 0; the other rows are likely.
TEST(Names, GiveNoHandleWithRightsThatTheObjectHasNot) {
    if (under_wine()) GTEST_SKIP() << "Wine 8 gives a handle with any right";
    const handle event(CreateEventA(nullptr, FALSE, FALSE, "tocsin rights of an event"));
    const handle semaphore(CreateSemaphoreA(nullptr, 1, 1, "tocsin rights of a semaphore"));
    const handle mutex(CreateMutexA(nullptr, FALSE, "tocsin rights of a mutex"));
    for (const DWORD access : {DWORD{0x4}, DWORD{0x8000}, DWORD{0x200000}, DWORD{SYNCHRONIZE | 0x10}}) {
        EXPECT_TRUE(fails(ERROR_ACCESS_DENIED, OpenEventA, access, FALSE, "tocsin rights of an event"));
        EXPECT_TRUE(
            fails(ERROR_ACCESS_DENIED, OpenSemaphoreA, access, FALSE, "tocsin rights of a semaphore"));
        EXPECT_TRUE(fails(ERROR_ACCESS_DENIED, OpenMutexA, access, FALSE, "tocsin rights of a mutex"));
    }
    EXPECT_TRUE(
        fails(ERROR_ACCESS_DENIED, OpenMutexA, DWORD{EVENT_ALL_ACCESS}, FALSE, "tocsin rights of a mutex"));
    EXPECT_TRUE(fails(1314u, OpenEventA, DWORD{0x01000000}, FALSE, "tocsin rights of an event"));
    for (const DWORD access :
         {DWORD{GENERIC_ALL}, DWORD{MAXIMUM_ALLOWED}, DWORD{MUTEX_ALL_ACCESS}, DWORD{GENERIC_EXECUTE}}) {
        const handle opened(OpenMutexA(access, FALSE, "tocsin rights of a mutex"));
        EXPECT_EQ(look(opened), WAIT_OBJECT_0);
        EXPECT_TRUE(works(ReleaseMutex, opened));
    }
}

TEST(Named, IsCreatedOnceAndFoundAfterwards) {
    for (const auto& each : kinds()) {
        SCOPED_TRACE(each.name);
        SetLastError(untouched);
        const handle first(each.create("tocsin found"));
        EXPECT_EQ(GetLastError(), 0u);
        const auto expect_found = [](HANDLE found) {
            const handle owned(found);
            EXPECT_NE(found, nullptr);
            EXPECT_EQ(GetLastError(), DWORD{ERROR_ALREADY_EXISTS});
        };
        SetLastError(untouched);
        expect_found(each.create("tocsin found"));
        SetLastError(untouched);
        expect_found(each.create_wide(L"tocsin found"));
        SetLastError(untouched);
        expect_found(each.create_ex("tocsin found"));
        const DWORD access = each.name[0] == 'm' ? DWORD{MUTEX_ALL_ACCESS} : every_right;
        EXPECT_NE(HANDLE(handle(each.open(access, "tocsin found"))), nullptr);
        EXPECT_NE(HANDLE(handle(each.open_wide(access, L"tocsin found"))), nullptr);
    }
}

TEST(Named, IsOneObjectUnderAllItsHandles) {
    const handle first(CreateEventA(nullptr, FALSE, FALSE, "tocsin one"));
    const handle second(CreateEventW(nullptr, TRUE, TRUE, L"tocsin one"));  // its mode and state are ignored
    const handle third(OpenEventA(EVENT_MODIFY_STATE | SYNCHRONIZE, FALSE, "tocsin one"));
    EXPECT_EQ(look(second), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(works(SetEvent, third));
    EXPECT_EQ(look(first), WAIT_OBJECT_0);
    EXPECT_EQ(look(second), DWORD{WAIT_TIMEOUT});
    const std::array<HANDLE, 2> same{first, third};
    if (!under_wine()) {  // Wine 8 waits
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, WaitForMultipleObjects, 2u, same.data(), TRUE, 0u));
    }
}

TEST(Named, SemaphoreThatIsFoundKeepsItsCounts) {
    const handle first(CreateSemaphoreA(nullptr, 1, 2, "tocsin count"));
    const handle second(CreateSemaphoreA(nullptr, 5, 9, "tocsin count"));
    LONG previous = -7;
    EXPECT_TRUE(works(ReleaseSemaphore, second, 1, &previous));
    EXPECT_EQ(previous, 1);
    EXPECT_TRUE(fails(ERROR_TOO_MANY_POSTS, ReleaseSemaphore, second, 1, &previous));
}

// Likely: the counts are looked at before the name.
TEST(Named, SemaphoreIsNotFoundWithCountsThatMakeNoSense) {
    const handle first(CreateSemaphoreA(nullptr, 1, 2, "tocsin no sense"));
    EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, CreateSemaphoreA, nullptr, 3, 2, "tocsin no sense"));
}

TEST(Named, MutexThatIsFoundIsNotOwned) {
    const handle first(CreateMutexA(nullptr, FALSE, "tocsin found mutex"));
    const handle second(CreateMutexA(nullptr, TRUE, "tocsin found mutex"));
    EXPECT_EQ(GetLastError(), DWORD{ERROR_ALREADY_EXISTS});
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, second));
    const handle third(
        CreateMutexExA(nullptr, "tocsin found mutex", CREATE_MUTEX_INITIAL_OWNER, MUTEX_ALL_ACCESS));
    EXPECT_TRUE(fails(ERROR_NOT_OWNER, ReleaseMutex, third));
}

TEST(Named, IsRefusedForAnotherKind) {
    for (const auto& first : kinds()) {
        const handle object(first.create("tocsin clash"));
        for (const auto& second : kinds()) {
            if (&first == &second) continue;
            SCOPED_TRACE(std::string(first.name) + " as " + second.name);
            EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, second.create, "tocsin clash"));
            EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, second.create_wide, L"tocsin clash"));
            EXPECT_TRUE(fails(ERROR_INVALID_HANDLE, second.create_ex, "tocsin clash"));
            EXPECT_TRUE(
                fails(ERROR_INVALID_HANDLE, second.open, DWORD{SYNCHRONIZE}, "tocsin clash"));  // likely
        }
    }
}

TEST(Named, IsOpenedOnlyIfItExists) {
    for (const auto& each : kinds()) {
        SCOPED_TRACE(each.name);
        EXPECT_TRUE(fails(ERROR_FILE_NOT_FOUND, each.open, DWORD{SYNCHRONIZE}, "tocsin unknown"));
        EXPECT_TRUE(fails(ERROR_FILE_NOT_FOUND, each.open_wide, DWORD{SYNCHRONIZE}, L"tocsin unknown"));
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, each.open, DWORD{SYNCHRONIZE}, nullptr));
        EXPECT_TRUE(fails(ERROR_INVALID_PARAMETER, each.open_wide, DWORD{SYNCHRONIZE}, nullptr));
    }
}

// Observed for mutexes.
TEST(Named, IsNotOpenedWithoutAnyAccess) {
    for (const auto& each : kinds()) {
        SCOPED_TRACE(each.name);
        const handle object(each.create("tocsin access"));
        const handle opened(each.open(0, "tocsin access"));
        const DWORD error = GetLastError();
        if (under_wine() && HANDLE(opened) != nullptr) continue;  // Wine 8 opens all kinds
        EXPECT_EQ(HANDLE(opened), nullptr);
        EXPECT_EQ(error, DWORD{ERROR_ACCESS_DENIED});
    }
}

TEST(Named, IsUsedAsFarAsItsAccessGoes) {
    const handle event(CreateEventA(nullptr, TRUE, FALSE, "tocsin rights"));
    const handle waits(OpenEventA(SYNCHRONIZE, FALSE, "tocsin rights"));
    const handle sets(OpenEventA(EVENT_MODIFY_STATE, FALSE, "tocsin rights"));
    EXPECT_TRUE(fails(ERROR_ACCESS_DENIED, SetEvent, waits));
    EXPECT_TRUE(fails(ERROR_ACCESS_DENIED, WaitForSingleObject, sets, 0u));
    EXPECT_TRUE(works(SetEvent, sets));
    EXPECT_EQ(look(waits), WAIT_OBJECT_0);
}

TEST(Named, IsComparedWithItsCase) {
    const handle lower(CreateEventA(nullptr, FALSE, FALSE, "tocsin case"));
    SetLastError(untouched);
    const handle upper(CreateEventA(nullptr, FALSE, FALSE, "Tocsin Case"));
    EXPECT_EQ(GetLastError(), 0u);
    EXPECT_TRUE(works(SetEvent, upper));
    EXPECT_EQ(look(lower), DWORD{WAIT_TIMEOUT});
}

TEST(Named, IsFreeAgainWhenItsLastHandleIsClosed) {
    for (const auto& each : kinds()) {
        SCOPED_TRACE(each.name);
        handle first(each.create("tocsin free"));
        handle copy = duplicate(first);
        first.close();
        handle found(each.create("tocsin free"));
        EXPECT_EQ(GetLastError(), DWORD{ERROR_ALREADY_EXISTS});
        copy.close();
        found.close();
        EXPECT_TRUE(fails(ERROR_FILE_NOT_FOUND, each.open, DWORD{SYNCHRONIZE}, "tocsin free"));
    }
    SetLastError(untouched);
    const handle another_kind(CreateMutexA(nullptr, FALSE, "tocsin free"));
    EXPECT_EQ(GetLastError(), 0u);
}

TEST(Named, HasAtMostAsManyCharactersAsAPath) {
    const std::string longest(MAX_PATH - 1, 'n');
    const handle object(CreateEventA(nullptr, FALSE, FALSE, longest.c_str()));
    EXPECT_NE(HANDLE(object), nullptr);
    EXPECT_NE(HANDLE(handle(OpenEventA(SYNCHRONIZE, FALSE, longest.c_str()))), nullptr);
    const std::string too_long(MAX_PATH + 1, 'n');
    for (const auto& each : kinds()) {
        SCOPED_TRACE(each.name);
        EXPECT_TRUE(fails(ERROR_FILENAME_EXCED_RANGE, each.create, too_long.c_str()));
        EXPECT_TRUE(fails(ERROR_FILENAME_EXCED_RANGE, each.open, DWORD{SYNCHRONIZE}, too_long.c_str()));
    }
}

TEST(Named, MayBeginWithItsNamespace) {
    for (const char* name : {"Local\\tocsin space", "Global\\tocsin space"}) {
        const handle object(CreateEventA(nullptr, FALSE, FALSE, name));
        EXPECT_NE(HANDLE(object), nullptr);
        EXPECT_NE(HANDLE(handle(OpenEventA(SYNCHRONIZE, FALSE, name))), nullptr);
    }
    const handle object(CreateEventA(nullptr, FALSE, FALSE, "tocsin local"));
    EXPECT_NE(HANDLE(handle(OpenEventA(SYNCHRONIZE, FALSE, "Local\\tocsin local"))), nullptr);
}

// Documented for all sessions but that of the services.
TEST(Named, IsAnotherObjectInTheGlobalNamespace) {
    const handle local(CreateEventA(nullptr, FALSE, FALSE, "tocsin both"));
    EXPECT_TRUE(fails(ERROR_FILE_NOT_FOUND, OpenEventA, DWORD{SYNCHRONIZE}, FALSE, "Global\\tocsin both"));
    const handle global(CreateEventA(nullptr, FALSE, FALSE, "Global\\tocsin both"));
    EXPECT_TRUE(works(SetEvent, global));
    EXPECT_EQ(look(local), DWORD{WAIT_TIMEOUT});
}

// Documented as an error; the number is likely.
TEST(Named, HasNoOtherBackslash) {
    EXPECT_TRUE(fails(ERROR_PATH_NOT_FOUND, CreateEventA, nullptr, FALSE, FALSE, "tocsin\\backslash"));
    EXPECT_TRUE(fails(ERROR_PATH_NOT_FOUND, CreateMutexA, nullptr, FALSE, "Elsewhere\\tocsin"));
}

TEST(Named, IsCreatedByExactlyOneOfManyThatRace) {
    for (int i = 0; i < few(100, 10); ++i) {
        support::starting_line line(4);
        std::atomic<int> created{0}, found{0}, done{0};
        thread_group threads;
        threads.start_many(4, "creator", [&](int) {
            line.arrive();
            SetLastError(untouched);
            const handle object(CreateEventA(nullptr, TRUE, FALSE, "tocsin race"));
            const DWORD error = GetLastError();
            EXPECT_TRUE(error == 0 || error == ERROR_ALREADY_EXISTS) << error;
            (error == 0 ? created : found).fetch_add(1);
            done.fetch_add(1);
            until("all have it", [&] { return done.load() == 4; });
        });
        threads.join();
        EXPECT_EQ(created.load(), 1);
        EXPECT_EQ(found.load(), 3);
    }
}

}  // namespace

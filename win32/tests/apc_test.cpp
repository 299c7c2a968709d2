// SPDX-License-Identifier: Apache-2.0
// QueueUserAPC and alertable waits.
#include "system.hpp"

#include <atomic>

namespace {

using namespace win32;

struct log {
    std::vector<int> entries;
    DWORD thread = 0;
};
log* the_log = nullptr;

void NTAPI note(ULONG_PTR entry) {
    the_log->entries.push_back(static_cast<int>(entry));
    the_log->thread = GetCurrentThreadId();
}
void NTAPI note_and_queue_another(ULONG_PTR entry) {
    note(entry);
    EXPECT_NE(QueueUserAPC(note, GetCurrentThread(), entry + 1), 0u);
}
void NTAPI wait_inside(ULONG_PTR entry) {
    note(entry);
    EXPECT_EQ(SleepEx(0, TRUE), DWORD{WAIT_IO_COMPLETION});  // runs the next one
    note(entry + 100);
}
void NTAPI nothing(ULONG_PTR) {}

// An alertable wait that nothing but a queued call ends.
using alertable_wait = DWORD (*)();
alertable_wait the_wait = nullptr;
void NTAPI wait_inside_by_call(ULONG_PTR entry) {
    note(entry);
    EXPECT_EQ(the_wait(), DWORD{WAIT_IO_COMPLETION}) << "runs the next one";
    note(entry + 100);
}

class Apc : public testing::Test {
protected:
    log seen;
    Apc() { the_log = &seen; }
};

TEST_F(Apc, RunsInAnAlertableWaitOnly) {
    const handle never = automatic(), gate = manual(true);
    EXPECT_NE(QueueUserAPC(note, GetCurrentThread(), 7), 0u);
    EXPECT_EQ(look(never), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(WaitForSingleObjectEx(never, 1, FALSE), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(wait_any({never}, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(SleepEx(0, FALSE), 0u);
    EXPECT_EQ(SignalObjectAndWait(gate, never, 0, FALSE), DWORD{WAIT_TIMEOUT});
    Sleep(0);
    EXPECT_TRUE(seen.entries.empty());
    EXPECT_TRUE(returns(WAIT_IO_COMPLETION, SleepEx, 0u, TRUE));
    EXPECT_EQ(seen.entries, std::vector{7});
    EXPECT_EQ(SleepEx(0, TRUE), 0u);
}

TEST_F(Apc, EndsEveryAlertableWait) {
    const handle never = automatic(), event = automatic();
    const HANDLE objects[] = {never, event};
    const auto queue = [] { EXPECT_NE(QueueUserAPC(note, GetCurrentThread(), 1), 0u); };
    queue();
    EXPECT_TRUE(returns(WAIT_IO_COMPLETION, SleepEx, INFINITE, TRUE));
    queue();
    EXPECT_TRUE(returns(WAIT_IO_COMPLETION, WaitForSingleObjectEx, never, INFINITE, TRUE));
    queue();
    EXPECT_TRUE(returns(WAIT_IO_COMPLETION, WaitForSingleObjectEx, never, 0u, TRUE));
    queue();
    EXPECT_TRUE(returns(WAIT_IO_COMPLETION, WaitForMultipleObjectsEx, 2u, objects, FALSE, INFINITE, TRUE));
    queue();
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_TRUE(returns(WAIT_IO_COMPLETION, WaitForMultipleObjectsEx, 2u, objects, TRUE, INFINITE, TRUE));
    EXPECT_EQ(look(event), WAIT_OBJECT_0) << "no object is taken";
    queue();
    EXPECT_TRUE(returns(WAIT_IO_COMPLETION, SignalObjectAndWait, event, never, INFINITE, TRUE));
    EXPECT_EQ(look(event), WAIT_OBJECT_0) << "the signal stands";
    EXPECT_EQ(seen.entries.size(), 6u);
}

TEST_F(Apc, RunsInOrderAndAllBeforeTheWaitReturns) {
    for (ULONG_PTR i = 0; i < 20; ++i) EXPECT_NE(QueueUserAPC(note, GetCurrentThread(), i), 0u);
    EXPECT_EQ(SleepEx(INFINITE, TRUE), DWORD{WAIT_IO_COMPLETION});
    ASSERT_EQ(seen.entries.size(), 20u);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(seen.entries[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(SleepEx(0, TRUE), 0u);
}

TEST_F(Apc, EndsAWaitInsideAnotherOne) {
    static constexpr DWORD soon = 10'000;
    const alertable_wait waits[] = {
        [] { return SleepEx(soon, TRUE); },
        [] { return WaitForSingleObjectEx(handle(automatic()), soon, TRUE); },
        [] { return WaitForSingleObjectEx(handle(automatic()), 0, TRUE); },
        [] {
            const handle one = automatic(), other = automatic();
            const HANDLE both[] = {one, other};
            return WaitForMultipleObjectsEx(2, both, FALSE, soon, TRUE);
        },
        [] {
            const handle one = automatic(), other = automatic();
            const HANDLE both[] = {one, other};
            return WaitForMultipleObjectsEx(2, both, TRUE, soon, TRUE);
        },
        [] {
            const handle gate = manual(), never = automatic();
            return SignalObjectAndWait(gate, never, soon, TRUE);
        },
    };
    for (const alertable_wait outer : waits) {
        for (const alertable_wait inner : waits) {
            the_wait = inner;
            seen.entries.clear();
            EXPECT_NE(QueueUserAPC(wait_inside_by_call, GetCurrentThread(), 1), 0u);
            EXPECT_NE(QueueUserAPC(note, GetCurrentThread(), 2), 0u);
            EXPECT_EQ(outer(), DWORD{WAIT_IO_COMPLETION});
            EXPECT_EQ(seen.entries, (std::vector{1, 2, 101}));
            EXPECT_EQ(SleepEx(0, TRUE), 0u) << "no call is left";
        }
    }
}

TEST_F(Apc, WakesAThreadThatWaitsAndRunsThere) {
    const handle never = automatic();
    handle thread;
    std::atomic<DWORD> id{0};
    thread_group threads;
    threads.start([&] {
        thread = duplicate(GetCurrentThread());
        id.store(GetCurrentThreadId());
        EXPECT_EQ(WaitForSingleObjectEx(never, INFINITE, TRUE), DWORD{WAIT_IO_COMPLETION});
    });
    until("the thread has its handle", [&] { return id.load() != 0; });
    until_waits(threads, 0);
    EXPECT_NE(QueueUserAPC(note, thread, 3), 0u);
    threads.join();
    EXPECT_EQ(seen.entries, std::vector{3});
    EXPECT_EQ(seen.thread, id.load());
}

TEST_F(Apc, LeavesAThreadAsleepWhoseWaitIsNotAlertable) {
    const handle event = automatic();
    handle thread;
    std::atomic<bool> has_handle{false};
    thread_group threads;
    threads.start([&] {
        thread = duplicate(GetCurrentThread());
        has_handle.store(true);
        EXPECT_EQ(wait(event), WAIT_OBJECT_0);
        EXPECT_TRUE(seen.entries.empty());
        EXPECT_EQ(SleepEx(0, TRUE), DWORD{WAIT_IO_COMPLETION});
    });
    until("the thread has its handle", [&] { return has_handle.load(); });
    until_waits(threads, 0);
    EXPECT_NE(QueueUserAPC(note, thread, 3), 0u);
    nap(5ms);
    EXPECT_FALSE(threads.finished(0));
    EXPECT_TRUE(works(SetEvent, event));
    threads.join();
    EXPECT_EQ(seen.entries, std::vector{3});
}

// Observed both ways; tocsin and Wine look at the object first.
TEST_F(Apc, ComesAfterAnObjectThatIsSetAlready) {
    const handle event = automatic(true);
    EXPECT_NE(QueueUserAPC(note, GetCurrentThread(), 1), 0u);
    EXPECT_EQ(WaitForSingleObjectEx(event, INFINITE, TRUE), WAIT_OBJECT_0);
    const handle gate = manual(true);
    const HANDLE both[]{event, gate};
    EXPECT_EQ(WaitForMultipleObjectsEx(2, both, FALSE, INFINITE, TRUE), WAIT_OBJECT_0 + 1);
    EXPECT_TRUE(works(SetEvent, event));
    EXPECT_EQ(WaitForMultipleObjectsEx(2, both, TRUE, INFINITE, TRUE), WAIT_OBJECT_0);
    EXPECT_EQ(look(event), DWORD{WAIT_TIMEOUT}) << "a wait for all takes it";
    EXPECT_EQ(SignalObjectAndWait(event, gate, INFINITE, TRUE), WAIT_OBJECT_0);
    EXPECT_TRUE(seen.entries.empty());
    EXPECT_EQ(SleepEx(0, TRUE), DWORD{WAIT_IO_COMPLETION});
    EXPECT_EQ(seen.entries, std::vector{1});
}

DWORD WINAPI note_the_end(void*) {
    note(100);
    EXPECT_EQ(SleepEx(0, TRUE), 0u) << "no call is left";
    return 0;
}

TEST_F(Apc, RunsInASuspendedThreadOnceItIsResumedBeforeItsFunction) {
    DWORD id = 0;
    const handle thread(CreateThread(nullptr, 0, note_the_end, nullptr, CREATE_SUSPENDED, &id));
    EXPECT_NE(QueueUserAPC(note, thread, 1), 0u);
    EXPECT_NE(QueueUserAPC(note, thread, 2), 0u);
    nap(5ms);
    EXPECT_TRUE(seen.entries.empty());
    EXPECT_EQ(ResumeThread(thread), 1u);
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    if (under_wine())
        std::sort(seen.entries.begin(), seen.entries.end());  // Wine 8 runs the second call first
    EXPECT_EQ(seen.entries, (std::vector{1, 2, 100}));
    EXPECT_EQ(seen.thread, id);
}

TEST_F(Apc, IsNotRunByASuspendedThreadThatIsTerminated) {
    const handle thread(CreateThread(nullptr, 0, note_the_end, nullptr, CREATE_SUSPENDED, nullptr));
    EXPECT_NE(QueueUserAPC(note, thread, 1), 0u);
    EXPECT_TRUE(works(TerminateThread, thread, 3u));
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    EXPECT_TRUE(seen.entries.empty());
    EXPECT_TRUE(fails(
        ERROR_GEN_FAILURE, [](HANDLE ended) { return QueueUserAPC(nothing, ended, 0) != 0; },
        HANDLE(thread)));
}

TEST_F(Apc, MayQueueAnother) {
    EXPECT_NE(QueueUserAPC(note_and_queue_another, GetCurrentThread(), 1), 0u);
    while (seen.entries.size() < 2) EXPECT_EQ(SleepEx(0, TRUE), DWORD{WAIT_IO_COMPLETION});
    EXPECT_EQ(seen.entries, (std::vector{1, 2}));
}

TEST_F(Apc, MayWaitAlertably) {
    EXPECT_NE(QueueUserAPC(wait_inside, GetCurrentThread(), 1), 0u);
    EXPECT_NE(QueueUserAPC(note, GetCurrentThread(), 2), 0u);
    EXPECT_EQ(SleepEx(0, TRUE), DWORD{WAIT_IO_COMPLETION});
    EXPECT_EQ(seen.entries, (std::vector{1, 2, 101}));
}

void NTAPI end_thread(ULONG_PTR code) { ExitThread(static_cast<DWORD>(code)); }

// The trap: a wait that is noexcept ends the program here, because glibc unwinds the stack when a thread ends.
TEST_F(Apc, MayEndItsThreadInAnyAlertableWait) {
    static HANDLE never[2], begun;
    const handle one = automatic(), other = automatic(), told = automatic();
    never[0] = one;
    never[1] = other;
    begun = told;
    static constexpr DWORD (*waits[])() = {
        [] { return SleepEx(INFINITE, TRUE); },
        [] { return WaitForSingleObjectEx(never[0], INFINITE, TRUE); },
        [] { return WaitForMultipleObjectsEx(2, never, FALSE, INFINITE, TRUE); },
        [] { return WaitForMultipleObjectsEx(2, never, TRUE, INFINITE, TRUE); },
        [] { return SignalObjectAndWait(never[0], never[1], INFINITE, TRUE); },
    };
    const LPTHREAD_START_ROUTINE body = [](void* which) -> DWORD {
        SetEvent(begun);  // a call that is queued earlier runs before the thread's function
        return (*static_cast<DWORD (*const*)()>(which))();
    };
    for (const auto& each : waits) {
        const handle started(CreateThread(nullptr, 0, body, const_cast<DWORD (**)()>(&each), 0, nullptr));
        EXPECT_EQ(wait(told), WAIT_OBJECT_0);
        EXPECT_NE(QueueUserAPC(end_thread, started, 77), 0u);
        EXPECT_EQ(wait(started), WAIT_OBJECT_0);
        DWORD code = 0;
        EXPECT_TRUE(works(GetExitCodeThread, started, &code));
        EXPECT_EQ(code, 77u);
    }
}

TEST_F(Apc, IsRefusedByAThreadThatHasEndedAndByWhatIsNoThread) {
    const auto expect_refused = [](DWORD error, HANDLE thread) {
        SetLastError(untouched);
        EXPECT_EQ(QueueUserAPC(nothing, thread, 0), 0u);
        EXPECT_EQ(GetLastError(), error);
    };
    handle thread;
    elsewhere([&] { thread = duplicate(GetCurrentThread()); });
    EXPECT_EQ(wait(thread), WAIT_OBJECT_0);
    expect_refused(ERROR_GEN_FAILURE, thread);  // observed
    expect_refused(ERROR_INVALID_HANDLE, nullptr);
    expect_refused(ERROR_INVALID_HANDLE, closed());
    expect_refused(ERROR_INVALID_HANDLE, automatic());
}

TEST_F(Apc, NeverMeansThatATimeoutComesEarly) {
    EXPECT_GE(time_of([] { EXPECT_EQ(SleepEx(20, TRUE), 0u); }), at_least(20ms));
    const handle never = automatic();
    EXPECT_GE(time_of([&] { EXPECT_EQ(WaitForSingleObjectEx(never, 20, TRUE), DWORD{WAIT_TIMEOUT}); }),
              at_least(20ms));
}

// Two threads queue for one that waits alertably for an event that a third sets: nothing is lost on either side.
TEST_F(Apc, IsNeverLost) {
    const std::size_t each = static_cast<std::size_t>(few(500, 50));
    const handle event = automatic(), taken = automatic();
    handle thread;
    std::atomic<bool> ready{false};
    thread_group threads;
    threads.start([&] {
        thread = duplicate(GetCurrentThread());
        ready.store(true);
        for (std::size_t tokens = 0; tokens < each || seen.entries.size() < 2 * each;) {
            const DWORD result = WaitForSingleObjectEx(event, 30'000, TRUE);
            ASSERT_NE(result, DWORD{WAIT_TIMEOUT});
            if (result != WAIT_OBJECT_0) continue;
            ++tokens;
            EXPECT_TRUE(works(SetEvent, taken));
        }
    });
    until("ready", [&] { return ready.load(); });
    threads.start_many(2, "queues", [&](int) {
        for (std::size_t i = 0; i < each; ++i) EXPECT_NE(QueueUserAPC(note, thread, 1), 0u);
    });
    threads.start([&] {
        for (std::size_t i = 0; i < each; ++i)
            ASSERT_EQ(SignalObjectAndWait(event, taken, 30'000, FALSE), WAIT_OBJECT_0);
    });
    threads.join();
    EXPECT_EQ(seen.entries.size(), 2 * each);
}

}  // namespace

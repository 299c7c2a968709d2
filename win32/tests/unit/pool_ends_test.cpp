// SPDX-License-Identifier: Apache-2.0
// What ends the objects of the thread pool at the moments that the calls alone meet only in a race: a wait that another
// thread has ended without having called back yet, and an object that its callback sets again after its end.
#include "support.hpp"
#include "wait.hpp"

#include <tocsin/operation.hpp>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

namespace {

using namespace win32_test;
using namespace tocsin::win32;

void join(const event& which) { EXPECT_EQ(WaitForSingleObject(which.get(), INFINITE), WAIT_OBJECT_0); }
void set(const event& which) { EXPECT_TRUE(SetEvent(which.get())); }

// A pool with one thread. Callbacks run there in the order in which they were submitted.
class one_thread {
public:
    one_thread() {
        SetThreadpoolThreadMaximum(pool_, 1);
        InitializeThreadpoolEnvironment(&environment_);
        SetThreadpoolCallbackPool(&environment_, pool_);
    }
    one_thread(const one_thread&) = delete;
    one_thread& operator=(const one_thread&) = delete;
    ~one_thread() { CloseThreadpool(pool_); }
    PTP_CALLBACK_ENVIRON environment() { return &environment_; }
    // Until everything that has been submitted has run.
    void run_all() {
        const PTP_WORK last =
            CreateThreadpoolWork([](PTP_CALLBACK_INSTANCE, void*, PTP_WORK) {}, nullptr, &environment_);
        SubmitThreadpoolWork(last);
        WaitForThreadpoolWorkCallbacks(last, FALSE);
        CloseThreadpoolWork(last);
    }

private:
    PTP_POOL pool_ = CreateThreadpool(nullptr);
    TP_CALLBACK_ENVIRON environment_;
};

// A semaphore, and two that wait for it: first an operation, then a wait of the pool. release() ends both, and runs the
// operation's function before anything is called for the wait.
class claimed_wait {
public:
    explicit claimed_wait(std::function<void(PTP_WAIT)> between)
        : between_(std::move(between)),
          use_(permits_),
          wait_(CreateThreadpoolWait(
              [](PTP_CALLBACK_INSTANCE, void* me, PTP_WAIT, TP_WAIT_RESULT) {
                  auto& self = *static_cast<claimed_wait*>(me);
                  EXPECT_FALSE(self.closed) << "the context is gone";
                  ++self.calls;
              },
              this, pool_.environment())),
          first_(tocsin::any_operation(function([this](tocsin::any_result) { between_(wait_); }),
                                       source_of(*use_))) {
        first_.on(tocsin::inline_executor).start();
        SetThreadpoolWait(wait_, permits_, nullptr);
    }
    claimed_wait(const claimed_wait&) = delete;
    claimed_wait& operator=(const claimed_wait&) = delete;
    ~claimed_wait() { CloseHandle(permits_); }
    PTP_WAIT get() const { return wait_; }
    void release() {
        EXPECT_TRUE(ReleaseSemaphore(permits_, 2, nullptr));
        pool_.run_all();
    }
    bool has_permit() const { return WaitForSingleObject(permits_, 0) == WAIT_OBJECT_0; }
    void close() {
        CloseThreadpoolWait(wait_);
        closed = true;
    }

    std::atomic<int> calls{0};
    std::atomic<bool> closed{false};

private:
    using function = std::function<void(tocsin::any_result)>;

    one_thread pool_;
    std::function<void(PTP_WAIT)> between_;
    HANDLE permits_ = CreateSemaphore(nullptr, 0, 2, nullptr);
    handle_use use_;
    PTP_WAIT wait_;
    decltype(tocsin::any_operation(function(), std::declval<tocsin::source>())) first_;
};

// The trap: the thread that ends the wait has not submitted the callback when the program asks for callbacks.
struct held_release {
    event inside{true, false}, go_on{true, false};
    claimed_wait its{[this](PTP_WAIT) {
        set(inside);
        join(go_on);
    }};
    thread_group threads;

    held_release() {
        threads.start("releases", [this] { its.release(); });
        join(inside);
        SetThreadpoolWait(its.get(), nullptr, nullptr);
    }
    void go() {
        set(go_on);
        threads.join();
    }
};

TEST(win32_pool_ends, AWaitThatAnotherThreadEndsIsTakenBackBeforeItCallsBack) {
    held_release held;
    WaitForThreadpoolWaitCallbacks(held.its.get(), TRUE);
    held.its.close();
    held.go();
    EXPECT_EQ(held.its.calls, 0);
    EXPECT_TRUE(held.its.has_permit()) << "it goes back";
    EXPECT_FALSE(held.its.has_permit());
}

TEST(win32_pool_ends, AWaitThatAnotherThreadEndsIsWaitedFor) {
    held_release held;
    held.threads.start("waits", [&] {
        WaitForThreadpoolWaitCallbacks(held.its.get(), FALSE);
        EXPECT_EQ(held.its.calls, 1);
        held.its.close();
    });
    support::until_sound_asleep(held.threads.id(1));
    held.go();
    EXPECT_EQ(held.its.calls, 1);
    EXPECT_FALSE(held.its.has_permit());
}

// The trap: ending the wait must not wait for the rest of this thread's own call.
TEST(win32_pool_ends, AWaitMayBeClosedByTheThreadThatIsAboutToEndIt) {
    claimed_wait* all = nullptr;
    claimed_wait its([&](PTP_WAIT wait) {
        SetThreadpoolWait(wait, nullptr, nullptr);
        WaitForThreadpoolWaitCallbacks(wait, TRUE);
        all->close();
    });
    all = &its;
    its.release();
    EXPECT_EQ(its.calls, 0);
    EXPECT_TRUE(its.has_permit());
    EXPECT_FALSE(its.has_permit());
}

struct set_again {
    event inside{true, false}, go_on{true, false}, ready{true, true};
    std::atomic<int> calls{0};

    bool is_first() {
        if (++calls != 1) return false;
        set(inside);
        join(go_on);
        return true;
    }
    // Makes an object, which calls back at once and sets itself while its group closes it.
    template <class Make>
    void run(Make make) {
        const PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
        one_thread pool;
        SetThreadpoolCallbackCleanupGroup(pool.environment(), group, nullptr);
        make(pool.environment());
        join(inside);
        thread_group threads;
        threads.start("closes", [&] { CloseThreadpoolCleanupGroupMembers(group, FALSE, nullptr); });
        support::until_sound_asleep(threads.id(0));
        set(go_on);
        threads.join();
        pool.run_all();
        EXPECT_EQ(calls, 1);
        CloseThreadpoolCleanupGroup(group);
    }
};
FILETIME now{0, 0};  // an absolute time that has passed

TEST(win32_pool_ends, ATimerThatItsCallbackSetsAfterItsEndDoesNotCallBack) {
    set_again its;
    its.run([&](PTP_CALLBACK_ENVIRON environment) {
        const PTP_TIMER timer = CreateThreadpoolTimer(
            [](PTP_CALLBACK_INSTANCE, void* me, PTP_TIMER self) {
                if (!static_cast<set_again*>(me)->is_first()) return;
                SetThreadpoolTimer(self, &now, 0, 0);
                EXPECT_FALSE(IsThreadpoolTimerSet(self));
            },
            &its, environment);
        SetThreadpoolTimer(timer, &now, 0, 0);
    });
}

TEST(win32_pool_ends, AWaitThatItsCallbackSetsAfterItsEndDoesNotCallBack) {
    set_again its;
    its.run([&](PTP_CALLBACK_ENVIRON environment) {
        const PTP_WAIT wait = CreateThreadpoolWait(
            [](PTP_CALLBACK_INSTANCE, void* me, PTP_WAIT self, TP_WAIT_RESULT) {
                auto& all = *static_cast<set_again*>(me);
                if (all.is_first()) SetThreadpoolWait(self, all.ready.get(), nullptr);
            },
            &its, environment);
        SetThreadpoolWait(wait, its.ready.get(), nullptr);
    });
}

// The races whose order no call can force. A right library passes these always, and a wrong one fails sometimes.

TEST(win32_pool_ends, AWaitThatTwoThreadsSetAtOnceWaitsForOneObject) {
    for (int i = 0; i < rounds(200); ++i) {
        std::atomic<int> calls{0};
        const event objects[]{{false, false}, {false, false}};
        one_thread pool;
        const PTP_WAIT wait =
            CreateThreadpoolWait([](PTP_CALLBACK_INSTANCE, void* count, PTP_WAIT,
                                    TP_WAIT_RESULT) { ++*static_cast<std::atomic<int>*>(count); },
                                 &calls, pool.environment());
        std::atomic<int> ready{0};
        thread_group threads;
        for (const event& one : objects)
            threads.start("sets", [&] {
                for (++ready; ready != 2;) std::this_thread::yield();
                SetThreadpoolWait(wait, one.get(), nullptr);
            });
        threads.join();
        SetThreadpoolWait(wait, nullptr, nullptr);
        WaitForThreadpoolWaitCallbacks(wait, TRUE);
        for (const event& one : objects) set(one);
        pool.run_all();
        EXPECT_EQ(calls, 0);
        for (const event& one : objects) EXPECT_EQ(WaitForSingleObject(one.get(), 0), WAIT_OBJECT_0);
        CloseThreadpoolWait(wait);
    }
}

TEST(win32_pool_ends, AQueueThatIsDeletedWhileTimersAreMadeEnds) {
    for (int i = 0; i < rounds(60); ++i) {
        const HANDLE queue = CreateTimerQueue();
        std::atomic<bool> begun{false};
        thread_group threads;
        threads.start("creates", [&] {
            for (HANDLE timer = nullptr;
                 CreateTimerQueueTimer(&timer, queue, [](void*, BOOLEAN) {}, nullptr, 3'600'000, 0, 0) != 0;)
                begun = true;
        });
        support::until("a timer", [&] { return begun.load(); });
        EXPECT_TRUE(DeleteTimerQueueEx(queue, INVALID_HANDLE_VALUE));
        threads.join();
    }
}

TEST(win32_pool_ends, ATimerThatIsChangedWhileItIsDeletedDoesNotCallBack) {
    for (int i = 0; i < rounds(200); ++i) {
        struct {
            HANDLE timer = nullptr;
            std::atomic<int> calls{0};
            std::atomic<bool> deleted{false};
        } its;
        EXPECT_TRUE(CreateTimerQueueTimer(
            &its.timer, nullptr,
            [](void* context, BOOLEAN) {
                auto& self = *static_cast<decltype(its)*>(context);
                EXPECT_FALSE(self.deleted) << "the context is gone";
                ++self.calls;
                (void)ChangeTimerQueueTimer(nullptr, self.timer, 0, 1);  // fails once it is deleted
            },
            &its, 0, 1, 0));
        support::until("calls", [&] { return its.calls >= 2; });
        EXPECT_TRUE(DeleteTimerQueueTimer(nullptr, its.timer, INVALID_HANDLE_VALUE));
        its.deleted = true;
    }
}

TEST(win32_pool_ends, AGroupThatIsClosedWhileACallbackIsSubmittedWaitsForIt) {
    const PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    one_thread pool;
    SetThreadpoolCallbackCleanupGroup(pool.environment(), group, nullptr);
    std::atomic<int> calls{0};
    std::atomic<bool> over{false};
    const int wanted = rounds(2000);
    thread_group threads;
    threads.start("submits", [&] {
        for (int i = 0; i < wanted; ++i)
            EXPECT_TRUE(TrySubmitThreadpoolCallback(
                [](PTP_CALLBACK_INSTANCE, void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls,
                pool.environment()));
        over = true;
    });
    while (!over) CloseThreadpoolCleanupGroupMembers(group, FALSE, nullptr);
    threads.join();
    CloseThreadpoolCleanupGroupMembers(group, FALSE, nullptr);
    EXPECT_EQ(calls, wanted);
    CloseThreadpoolCleanupGroup(group);
}

}  // namespace

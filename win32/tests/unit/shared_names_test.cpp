// SPDX-License-Identifier: Apache-2.0
// Names that reach other processes: TocsinShareNames(). A program of its own. Other processes are the program itself,
// started as an *actor* that does one thing; the test kills some of them.
#include "next_allocation.hpp"
#include "support.hpp"

#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace win32_test;
namespace fs = std::filesystem;

std::string folder;  // of the names in this run

constexpr int failed = 250;

// What several processes write for the tests, in a file of the folder.
struct notes {
    std::atomic<std::uint32_t> inside{0};
    std::atomic<std::uint32_t> twice{0};
    std::atomic<std::uint32_t> taken{0};
    std::atomic<std::uint32_t> abandoned{0};
};
notes& shared_notes() {
    static notes* const at = [] {
        const int file = ::open((folder + "/notes").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0 || ::ftruncate(file, sizeof(notes)) != 0) std::abort();
        void* const data = ::mmap(nullptr, sizeof(notes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        (void)::close(file);
        return static_cast<notes*>(data);
    }();
    return *at;
}

// Actors. Each returns its exit code. One that waits to be killed says "ready" first.

[[noreturn]] void be_ready() {
    (void)!::write(STDOUT_FILENO, "r", 1);
    for (;;) ::pause();
}
int make_event(const char* name) {
    return CreateEventA(nullptr, TRUE, TRUE, name) != nullptr ? static_cast<int>(GetLastError()) : failed;
}
int make_semaphore(const char* name) {
    return CreateSemaphoreA(nullptr, 0, 5, name) == nullptr ? static_cast<int>(GetLastError()) : failed;
}
int open_event(const char* name) {
    return OpenEventA(SYNCHRONIZE, FALSE, name) != nullptr ? 0 : static_cast<int>(GetLastError());
}
int set_event(const char* name) {
    const HANDLE event = OpenEventA(EVENT_MODIFY_STATE, FALSE, name);
    return event != nullptr && SetEvent(event) != FALSE ? 0 : failed;
}
int wait_for_event(const char* name) {
    const HANDLE event =
        OpenEventW(SYNCHRONIZE, FALSE, std::u16string(name, name + std::strlen(name)).c_str());
    return event != nullptr && WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0 ? 0 : failed;
}
int release_permits(const char* name) {
    const HANDLE permits = OpenSemaphoreA(SEMAPHORE_MODIFY_STATE, FALSE, name);
    LONG before = -1;
    if (permits == nullptr || ReleaseSemaphore(permits, 2, &before) == FALSE || before != 1) return failed;
    return ReleaseSemaphore(permits, 3, &before) == FALSE ? static_cast<int>(GetLastError() & 0xFF) : failed;
}
int keep_event(const char* name) {
    if (CreateEventA(nullptr, TRUE, TRUE, name) == nullptr) return failed;
    be_ready();
}
int own_mutex(const char* name) {
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, name);
    if (WaitForSingleObject(mutex, INFINITE) != WAIT_OBJECT_0) return failed;
    be_ready();
}
int own_new_mutex(const char* name) {
    if (CreateMutexA(nullptr, TRUE, name) == nullptr || GetLastError() != 0) return failed;
    be_ready();
}
int try_mutex(const char* name) {
    const HANDLE mutex = OpenMutexA(SYNCHRONIZE, FALSE, name);
    if (mutex == nullptr) return failed;
    const DWORD how = WaitForSingleObject(mutex, 0);
    if (how == WAIT_OBJECT_0 || how == WAIT_ABANDONED) ReleaseMutex(mutex);
    return static_cast<int>(how & 0xFF);
}
int take_permit_and_wait(const char* name) {
    const HANDLE permits = OpenSemaphoreA(SYNCHRONIZE, FALSE, name);
    (void)!::write(STDOUT_FILENO, "r", 1);
    return WaitForSingleObject(permits, INFINITE) == WAIT_OBJECT_0 ? 0 : failed;
}
// Works under the mutex until it is killed. At any time at most one process may be inside.
int work_under_mutex(const char* name) {
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, name);
    const HANDLE never = CreateEventA(nullptr, TRUE, FALSE, nullptr);
    const std::array both{never, mutex};
    notes& all = shared_notes();
    const auto me = static_cast<std::uint32_t>(::getpid());
    for (unsigned round = 0;; ++round) {
        const DWORD how = round % 2 == 0 ? WaitForSingleObject(mutex, INFINITE)
                                         : WaitForMultipleObjects(2, both.data(), FALSE, INFINITE) - 1;
        if (how == WAIT_ABANDONED) {
            all.abandoned.fetch_add(1);
            all.inside.store(0);
        } else if (how != WAIT_OBJECT_0) {
            return failed;
        }
        if (all.inside.exchange(me) != 0) all.twice.fetch_add(1);
        for (unsigned i = 0; i != round % 50; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
        if (all.inside.exchange(0) != me) all.twice.fetch_add(1);
        all.taken.fetch_add(1);
        if (ReleaseMutex(mutex) == FALSE) return failed;
    }
}

const std::map<std::string, int (*)(const char*)>& actors() {
    static const std::map<std::string, int (*)(const char*)> all{
        {"make_event", make_event},
        {"make_semaphore", make_semaphore},
        {"open_event", open_event},
        {"set_event", set_event},
        {"wait_for_event", wait_for_event},
        {"release_permits", release_permits},
        {"keep_event", keep_event},
        {"own_mutex", own_mutex},
        {"own_new_mutex", own_new_mutex},
        {"try_mutex", try_mutex},
        {"take_permit", take_permit_and_wait},
        {"work_under_mutex", work_under_mutex},
    };
    return all;
}

class actor {
public:
    actor(const char* what, const std::string& name) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
        const std::array arguments{"actor", what, folder.c_str(), name.c_str(),
                                   static_cast<const char*>(nullptr)};
        child_ = ::fork();
        if (child_ == 0) {
            (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also if the test is killed
            (void)::dup2(ends[1], STDOUT_FILENO);
            (void)::execv("/proc/self/exe", const_cast<char* const*>(arguments.data()));
            ::_exit(failed);
        }
        (void)::close(ends[1]);
        output_ = ends[0];
    }
    actor(const actor&) = delete;
    actor& operator=(const actor&) = delete;
    ~actor() {
        if (child_ > 0) kill();
        (void)::close(output_);
    }

    bool is_ready() const {
        char said = 0;
        return ::read(output_, &said, 1) == 1;
    }
    void kill() {
        (void)::kill(child_, SIGKILL);
        (void)end();
    }
    void signal(int which) const { (void)::kill(child_, which); }
    // Its exit code, or -1.
    int end() {
        int status = 0;
        while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
        }
        child_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    pid_t child_ = -1;
    int output_ = -1;
};

int act(const char* what, const std::string& name) { return actor(what, name).end(); }

std::size_t files() {
    std::size_t count = 0;
    for (const auto& each : fs::directory_iterator(folder)) {
        const std::string file = each.path().filename().string();
        count += file.starts_with("l-") || file.starts_with("g-") ? 1 : 0;
    }
    return count;
}

class shared_names : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(TocsinShareNames(folder.c_str())) << GetLastError();
        ASSERT_EQ(files(), 0u);
    }
    void TearDown() override { EXPECT_EQ(files(), 0u) << "a name outlived its last handle"; }
};

TEST_F(shared_names, AnEventIsTheSameInAllProcesses) {
    const HANDLE event = CreateEventA(nullptr, FALSE, FALSE, "e");
    EXPECT_EQ(GetLastError(), 0u);
    EXPECT_EQ(act("make_event", "e"), static_cast<int>(ERROR_ALREADY_EXISTS));
    EXPECT_EQ(WaitForSingleObject(event, 0), DWORD{WAIT_TIMEOUT})
        << "its mode and state are those of the first";
    actor waits("wait_for_event", "e");
    EXPECT_EQ(act("set_event", "e"), 0);
    EXPECT_EQ(waits.end(), 0);
    EXPECT_EQ(WaitForSingleObject(event, 0), DWORD{WAIT_TIMEOUT}) << "the other process has taken it";
    EXPECT_EQ(act("set_event", "e"), 0);
    EXPECT_EQ(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(SetEvent(event));
    EXPECT_TRUE(ResetEvent(event));
    EXPECT_EQ(WaitForSingleObject(event, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(CloseHandle(event));
}

TEST_F(shared_names, AManualResetEventReleasesAllAlsoIfItIsPulsed) {
    const HANDLE event = CreateEventA(nullptr, TRUE, FALSE, "gate");
    std::vector<std::thread> waiting;
    std::atomic<int> released{0};
    for (int i = 0; i != 3; ++i)
        waiting.emplace_back(
            [&] { released += WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0 ? 1 : 0; });
    while (released != 3) {
        EXPECT_TRUE(PulseEvent(event));
        std::this_thread::yield();
    }
    for (auto& each : waiting) each.join();
    EXPECT_EQ(WaitForSingleObject(event, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(CloseHandle(event));
}

TEST_F(shared_names, ANameOfAnotherKindIsRefused) {
    const HANDLE event = CreateEventA(nullptr, TRUE, TRUE, "kind");
    EXPECT_EQ(act("make_semaphore", "kind"), static_cast<int>(ERROR_INVALID_HANDLE));
    EXPECT_EQ(OpenMutexA(SYNCHRONIZE, FALSE, "kind"), nullptr);
    EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    EXPECT_EQ(CreateMutexA(nullptr, FALSE, "kind"), nullptr);
    EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    EXPECT_EQ(CreateWaitableTimerA(nullptr, FALSE, "kind"), nullptr) << "a timer's name stays in the process";
    EXPECT_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    EXPECT_TRUE(CloseHandle(event));
}

TEST_F(shared_names, TheLastHandleFreesTheNameInWhicheverProcessItIs) {
    EXPECT_EQ(act("open_event", "last"), static_cast<int>(ERROR_FILE_NOT_FOUND));
    const HANDLE event = CreateEventA(nullptr, TRUE, TRUE, "last");
    actor other("keep_event", "last");
    ASSERT_TRUE(other.is_ready());
    EXPECT_TRUE(CloseHandle(event));
    EXPECT_EQ(act("open_event", "last"), 0) << "the other process has a handle";
    other.kill();
    EXPECT_EQ(act("open_event", "last"), static_cast<int>(ERROR_FILE_NOT_FOUND));
    const HANDLE next = CreateEventA(nullptr, TRUE, FALSE, "last");
    EXPECT_EQ(GetLastError(), 0u) << "a new object";
    EXPECT_EQ(WaitForSingleObject(next, 0), DWORD{WAIT_TIMEOUT}) << "nothing of the old one is left";
    HANDLE copy = nullptr;
    EXPECT_TRUE(DuplicateHandle(GetCurrentProcess(), next, GetCurrentProcess(), &copy, 0, FALSE,
                                DUPLICATE_SAME_ACCESS));
    EXPECT_TRUE(CloseHandle(next));
    EXPECT_EQ(act("open_event", "last"), 0);
    EXPECT_TRUE(CloseHandle(copy));
    EXPECT_EQ(act("open_event", "last"), static_cast<int>(ERROR_FILE_NOT_FOUND));
}

TEST_F(shared_names, AnObjectOfProcessesThatHaveAllDiedIsGone) {
    for (int i = 0; i != 20; ++i) {
        actor other("own_new_mutex", "orphan");
        ASSERT_TRUE(other.is_ready());
    }
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, "orphan");
    EXPECT_EQ(GetLastError(), 0u);
    EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0) << "a new mutex, which nobody has abandoned";
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST_F(shared_names, NamesMayHaveAnyCharactersAndAPrefix) {
    const std::string odd = "a/b.. %\xC3\xA4~|";
    const HANDLE event = CreateEventA(nullptr, FALSE, FALSE, odd.c_str());
    EXPECT_EQ(act("set_event", "Local\\" + odd), 0);
    EXPECT_EQ(act("open_event", "Global\\" + odd), static_cast<int>(ERROR_FILE_NOT_FOUND));
    EXPECT_EQ(act("make_event", "Global\\" + odd), 0) << "another object";
    EXPECT_EQ(act("open_event", "A" + odd.substr(1)), static_cast<int>(ERROR_FILE_NOT_FOUND));
    EXPECT_EQ(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(CloseHandle(event));
    std::string longest(MAX_PATH, '*');
    const HANDLE one = CreateEventA(nullptr, TRUE, TRUE, longest.c_str());
    ASSERT_NE(one, nullptr);
    longest.back() = '+';
    const HANDLE other = CreateEventA(nullptr, TRUE, FALSE, longest.c_str());
    EXPECT_EQ(GetLastError(), 0u);
    EXPECT_EQ(act("open_event", longest), 0);
    EXPECT_EQ(WaitForSingleObject(one, 0), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(other, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(CloseHandle(one));
    EXPECT_TRUE(CloseHandle(other));
    EXPECT_EQ(CreateEventA(nullptr, TRUE, TRUE, "a\\b"), nullptr);
    EXPECT_EQ(GetLastError(), ERROR_PATH_NOT_FOUND);
}

TEST_F(shared_names, IsCreatedByExactlyOneOfManyProcessesThatRace) {
    for (int round = 0; round != 3; ++round) {
        const HANDLE go = CreateEventA(nullptr, TRUE, FALSE, "go");
        std::vector<std::unique_ptr<actor>> all;
        for (int i = 0; i != 6; ++i) all.push_back(std::make_unique<actor>("own_new_mutex", "race"));
        int refused = 0;
        int owners = 0;
        for (auto& each : all) {
            if (each->is_ready())
                ++owners;
            else
                refused += each->end() == failed ? 1 : 0;
        }
        EXPECT_EQ(owners, 1);
        EXPECT_EQ(refused, 5);
        EXPECT_TRUE(CloseHandle(go));
        all.clear();
        EXPECT_EQ(OpenMutexA(SYNCHRONIZE, FALSE, "race"), nullptr);
    }
}

TEST_F(shared_names, ASemaphoreHasOneCountAndOneMaximum) {
    const HANDLE permits = CreateSemaphoreA(nullptr, 1, 4, "s");
    EXPECT_EQ(act("release_permits", "s"), static_cast<int>(ERROR_TOO_MANY_POSTS & 0xFF));
    for (int i = 0; i != 3; ++i) EXPECT_EQ(WaitForSingleObject(permits, 0), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(permits, 0), DWORD{WAIT_TIMEOUT});
    LONG before = 7;
    EXPECT_FALSE(ReleaseSemaphore(permits, 5, &before));
    EXPECT_EQ(GetLastError(), ERROR_TOO_MANY_POSTS);
    EXPECT_EQ(before, 7);
    EXPECT_FALSE(ReleaseSemaphore(permits, 0, nullptr));
    EXPECT_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    actor waits("take_permit", "s");
    ASSERT_TRUE(waits.is_ready());
    EXPECT_TRUE(ReleaseSemaphore(permits, 1, &before));
    EXPECT_EQ(before, 0);
    EXPECT_EQ(waits.end(), 0);
    EXPECT_TRUE(CloseHandle(permits));
}

TEST_F(shared_names, AMutexIsOwnedByAThreadOfOneProcess) {
    const HANDLE mutex = CreateMutexA(nullptr, TRUE, "m");
    EXPECT_EQ(GetLastError(), 0u);
    EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), WAIT_OBJECT_0) << "its owner enters it again";
    EXPECT_EQ(WaitForMultipleObjects(1, &mutex, TRUE, INFINITE), WAIT_OBJECT_0);
    for (int depth = 0; depth != 3; ++depth) {
        EXPECT_EQ(act("try_mutex", "m"), static_cast<int>(WAIT_TIMEOUT & 0xFF));
        EXPECT_TRUE(ReleaseMutex(mutex));
    }
    EXPECT_FALSE(ReleaseMutex(mutex));
    EXPECT_EQ(GetLastError(), ERROR_NOT_OWNER);
    EXPECT_EQ(act("try_mutex", "m"), static_cast<int>(WAIT_OBJECT_0));
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST_F(shared_names, AMutexOfAKilledProcessIsAbandonedOnce) {
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, "m");
    const event never(true, false);
    const std::array both{never.get(), mutex};
    for (int round = 0; round != 4; ++round) {
        actor owner("own_mutex", "m");
        ASSERT_TRUE(owner.is_ready());
        EXPECT_EQ(WaitForSingleObject(mutex, 0), DWORD{WAIT_TIMEOUT});
        EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, 1), DWORD{WAIT_TIMEOUT});
        if (round == 3) owner.kill();
        std::thread kills([&] {
            if (round == 3) return;
            std::this_thread::sleep_for(
                std::chrono::milliseconds(20));  // no fact to wait for: the wait may sleep
            owner.kill();
        });
        if (round == 1) {
            EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, INFINITE), DWORD{WAIT_ABANDONED_0 + 1});
        } else {
            EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), DWORD{WAIT_ABANDONED});
        }
        kills.join();
        EXPECT_TRUE(ReleaseMutex(mutex));
        EXPECT_EQ(act("try_mutex", "m"), static_cast<int>(WAIT_OBJECT_0)) << "only the next owner is told";
    }
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST_F(shared_names, AMutexOfAThreadThatEndsIsAbandonedForOtherProcesses) {
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, "m");
    std::thread([&] { EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), WAIT_OBJECT_0); }).join();
    EXPECT_EQ(act("try_mutex", "m"), static_cast<int>(WAIT_ABANDONED));
    EXPECT_EQ(act("try_mutex", "m"), static_cast<int>(WAIT_OBJECT_0));
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST_F(shared_names, AnOwnedMutexWithoutHandlesIsFoundAgain) {
    EXPECT_TRUE(CloseHandle(CreateMutexA(nullptr, TRUE, "m")));
    EXPECT_EQ(act("try_mutex", "m"), static_cast<int>(WAIT_TIMEOUT & 0xFF));
    const HANDLE again = CreateMutexA(nullptr, FALSE, "m");
    EXPECT_EQ(GetLastError(), ERROR_ALREADY_EXISTS);
    EXPECT_EQ(WaitForSingleObject(again, INFINITE), WAIT_OBJECT_0) << "the caller owns it";
    EXPECT_TRUE(ReleaseMutex(again));
    EXPECT_TRUE(ReleaseMutex(again));
    EXPECT_EQ(act("try_mutex", "m"), static_cast<int>(WAIT_OBJECT_0));
    EXPECT_TRUE(CloseHandle(again));
}

TEST_F(shared_names, ObjectsAreWaitedForBesideDescriptorsTimersAndLocalEvents) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const HANDLE timer = CreateWaitableTimerA(nullptr, FALSE, nullptr);
    const event local(false, false);
    const std::array all{TocsinHandleOfDescriptor(ends[0], TOCSIN_READABLE),
                         timer,
                         local.get(),
                         CreateEventA(nullptr, FALSE, FALSE, "e"),
                         CreateSemaphoreA(nullptr, 0, 1, "s"),
                         CreateMutexA(nullptr, FALSE, "m")};
    actor owner("own_mutex", "m");
    ASSERT_TRUE(owner.is_ready());
    const std::array signals{
        std::function<void()>([&] { EXPECT_EQ(::write(ends[1], "x", 1), 1); }),
        std::function<void()>([&] {
            const LARGE_INTEGER due = relative(std::chrono::milliseconds(5));
            EXPECT_TRUE(SetWaitableTimer(timer, &due, 0, nullptr, nullptr, FALSE));
        }),
        std::function<void()>([&] { EXPECT_TRUE(SetEvent(local.get())); }),
        std::function<void()>([&] { EXPECT_EQ(act("set_event", "e"), 0); }),
        std::function<void()>([&] { EXPECT_TRUE(ReleaseSemaphore(all[4], 1, nullptr)); }),
        std::function<void()>([&] { owner.kill(); }),
    };
    for (DWORD i = 0; i != 6; ++i) {
        EXPECT_EQ(WaitForMultipleObjects(6, all.data(), FALSE, 0), DWORD{WAIT_TIMEOUT});
        std::thread signal([&] { signals[i](); });
        const DWORD how = WaitForMultipleObjects(6, all.data(), FALSE, INFINITE);
        EXPECT_EQ(how, i == 5 ? DWORD{WAIT_ABANDONED_0 + 5} : i);
        signal.join();
        char byte = 0;
        if (i == 0) {
            EXPECT_EQ(::read(ends[0], &byte, 1), 1);
        }
    }
    EXPECT_TRUE(ReleaseMutex(all[5]));
    EXPECT_EQ(WaitForMultipleObjects(2, &all[4], TRUE, 0), DWORD{WAIT_FAILED});
    EXPECT_EQ(GetLastError(), ERROR_NOT_SUPPORTED) << "a wait for all";
    EXPECT_EQ(WaitForMultipleObjects(2, &all[2], TRUE, 0), DWORD{WAIT_FAILED});
    EXPECT_EQ(GetLastError(), ERROR_NOT_SUPPORTED) << "also alongside a local event";
    EXPECT_TRUE(SetEvent(all[3]));
    EXPECT_EQ(WaitForMultipleObjects(1, &all[3], TRUE, 0), WAIT_OBJECT_0) << "one alone is possible";
    for (const HANDLE each : all) EXPECT_TRUE(each == local.get() || CloseHandle(each) != FALSE);
    (void)::close(ends[0]);
    (void)::close(ends[1]);
}

TEST_F(shared_names, AWaitMayNameSeveralMutexes) {
    const std::array both{CreateMutexA(nullptr, FALSE, "m1"), CreateMutexA(nullptr, FALSE, "m2")};
    actor first("own_mutex", "m1");
    actor second("own_mutex", "m2");
    ASSERT_TRUE(first.is_ready() && second.is_ready());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, 25), DWORD{WAIT_TIMEOUT});
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(25));
    second.kill();
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, INFINITE), DWORD{WAIT_ABANDONED_0 + 1});
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, INFINITE), DWORD{1}) << "owned already";
    first.kill();
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, INFINITE), DWORD{WAIT_ABANDONED_0});
    EXPECT_TRUE(ReleaseMutex(both[0]));
    EXPECT_TRUE(ReleaseMutex(both[1]));
    EXPECT_TRUE(ReleaseMutex(both[1]));
    for (const HANDLE each : both) EXPECT_TRUE(CloseHandle(each));
}

TEST_F(shared_names, AWaitForAnyTakesOneObjectAlsoIfTwoComeAtOnce) {
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, "m");
    const event other(false, false);
    const std::array both{other.get(), mutex};
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    const int all = rounds(200);
    std::thread owner([&] {
        for (int i = 1; i <= all; ++i) {
            EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), WAIT_OBJECT_0);
            begun = i;
            const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(i % 60);
            while (std::chrono::steady_clock::now() < end) {
            }
            EXPECT_TRUE(i % 2 != 0 || SetEvent(other.get()) != FALSE);
            EXPECT_TRUE(ReleaseMutex(mutex));
            EXPECT_TRUE(i % 2 == 0 || SetEvent(other.get()) != FALSE);
            while (ended != i) std::this_thread::yield();
        }
    });
    for (int i = 1; i <= all; ++i) {
        while (begun != i) std::this_thread::yield();
        const DWORD how = WaitForMultipleObjects(2, both.data(), FALSE, INFINITE);
        EXPECT_LT(how, 2u);
        EXPECT_EQ(ReleaseMutex(mutex) != FALSE, how == 1);
        EXPECT_EQ(WaitForSingleObject(other.get(), how == 1 ? INFINITE : 0),
                  how == 1 ? WAIT_OBJECT_0 : WAIT_TIMEOUT);
        ended = i;
    }
    owner.join();
    EXPECT_EQ(act("try_mutex", "m"), static_cast<int>(WAIT_OBJECT_0));
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST_F(shared_names, AnAbandonedMutexThatIsNotTakenAfterAllIsStillAbandoned) {
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, "m");
    const event other(false, false);
    const std::array both{other.get(), mutex};
    for (int i = 0; i != rounds(50); ++i) {
        actor owner("own_mutex", "m");
        ASSERT_TRUE(owner.is_ready());
        std::thread kills([&] {
            EXPECT_TRUE(SetEvent(other.get()));
            owner.kill();
        });
        const DWORD how = WaitForMultipleObjects(2, both.data(), FALSE, INFINITE);
        kills.join();
        if (how == WAIT_OBJECT_0) {
            EXPECT_EQ(WaitForSingleObject(mutex, INFINITE), DWORD{WAIT_ABANDONED});
        } else {
            EXPECT_EQ(how, DWORD{WAIT_ABANDONED_0 + 1});
            EXPECT_EQ(WaitForSingleObject(other.get(), 0), WAIT_OBJECT_0);
        }
        EXPECT_TRUE(ReleaseMutex(mutex));
        EXPECT_EQ(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
        EXPECT_TRUE(ReleaseMutex(mutex));
    }
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST_F(shared_names, AQueuedCallEndsAnAlertableWaitForAMutex) {
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, "m");
    actor owner("own_mutex", "m");
    ASSERT_TRUE(owner.is_ready());
    std::atomic<bool> called{false};
    std::atomic<DWORD> number{0};
    std::thread waits([&] {
        number = GetCurrentThreadId();
        EXPECT_EQ(WaitForSingleObjectEx(mutex, INFINITE, TRUE), DWORD{WAIT_IO_COMPLETION});
    });
    HANDLE thread = nullptr;
    while (thread == nullptr) thread = OpenThread(THREAD_ALL_ACCESS, FALSE, number);
    EXPECT_TRUE(QueueUserAPC([](ULONG_PTR at) { *reinterpret_cast<std::atomic<bool>*>(at) = true; }, thread,
                             reinterpret_cast<ULONG_PTR>(&called)));
    waits.join();
    EXPECT_TRUE(called);
    owner.kill();
    EXPECT_EQ(WaitForSingleObjectEx(mutex, INFINITE, TRUE), DWORD{WAIT_ABANDONED});
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_TRUE(CloseHandle(thread));
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST_F(shared_names, OneObjectIsSignaledAndAnotherWaitedFor) {
    const HANDLE set = CreateEventA(nullptr, FALSE, FALSE, "set");
    const HANDLE permits = CreateSemaphoreA(nullptr, 0, 1, "permits");
    const HANDLE mutex = CreateMutexA(nullptr, TRUE, "mutex");
    EXPECT_EQ(SignalObjectAndWait(set, permits, 1, FALSE), DWORD{WAIT_TIMEOUT}) << "the signal stays";
    EXPECT_EQ(SignalObjectAndWait(permits, set, INFINITE, FALSE), WAIT_OBJECT_0);
    EXPECT_EQ(SignalObjectAndWait(permits, set, 0, FALSE), DWORD{WAIT_FAILED});
    EXPECT_EQ(GetLastError(), ERROR_TOO_MANY_POSTS);
    EXPECT_EQ(SignalObjectAndWait(mutex, permits, INFINITE, FALSE), WAIT_OBJECT_0);
    EXPECT_EQ(act("try_mutex", "mutex"), static_cast<int>(WAIT_OBJECT_0));
    EXPECT_EQ(SignalObjectAndWait(set, mutex, INFINITE, FALSE), WAIT_OBJECT_0);
    EXPECT_EQ(SignalObjectAndWait(set, set, INFINITE, FALSE), WAIT_OBJECT_0);
    EXPECT_EQ(WaitForSingleObject(set, 0), DWORD{WAIT_TIMEOUT});
    EXPECT_TRUE(ReleaseMutex(mutex));
    for (const HANDLE each : {set, permits, mutex}) EXPECT_TRUE(CloseHandle(each));
}

TEST_F(shared_names, ARegisteredWaitTakesEventsButNoMutexes) {
    const HANDLE event = CreateEventA(nullptr, FALSE, FALSE, "e");
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, "m");
    HANDLE wait = nullptr;
    std::atomic<int> calls{0};
    const auto count = [](void* at, BOOLEAN) { ++*static_cast<std::atomic<int>*>(at); };
    EXPECT_FALSE(RegisterWaitForSingleObject(&wait, mutex, count, &calls, INFINITE, 0));
    EXPECT_EQ(GetLastError(), ERROR_NOT_SUPPORTED);
    ASSERT_TRUE(RegisterWaitForSingleObject(&wait, event, count, &calls, INFINITE, 0));
    for (int i = 1; i != 4; ++i) {
        EXPECT_EQ(act("set_event", "e"), 0);
        support::until("a call for the signal", [&] { return calls == i; });
    }
    EXPECT_TRUE(UnregisterWaitEx(wait, INVALID_HANDLE_VALUE));
    EXPECT_TRUE(CloseHandle(event));
    EXPECT_TRUE(CloseHandle(mutex));
    support::until("the pool's thread has let the event go", [] { return files() == 0; });
}

TEST_F(shared_names, AStoppedProcessHoldsNobodyUp) {
    const HANDLE permits = CreateSemaphoreA(nullptr, 0, 10, "s");
    actor stopped("take_permit", "s");
    ASSERT_TRUE(stopped.is_ready());
    stopped.signal(SIGSTOP);
    EXPECT_TRUE(ReleaseSemaphore(permits, 2, nullptr)) << "one may be handed to the stopped process";
    EXPECT_EQ(WaitForSingleObject(permits, INFINITE), WAIT_OBJECT_0);
    EXPECT_EQ(act("open_event", "other"), static_cast<int>(ERROR_FILE_NOT_FOUND));
    stopped.signal(SIGCONT);
    EXPECT_EQ(stopped.end(), 0);
    EXPECT_TRUE(CloseHandle(permits));
}

TEST_F(shared_names, AtMostOneProcessIsInsideWhileSomeAreKilled) {
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, "work");
    notes& all = shared_notes();
    std::mt19937 random(37);
    std::vector<std::unique_ptr<actor>> workers(4);
    const int kills = rounds(100);
    for (int i = 0; i != kills; ++i) {
        auto& one = workers[random() % workers.size()];
        one = std::make_unique<actor>("work_under_mutex", "work");
        const std::uint32_t before = all.taken;
        support::until("work goes on", [&] { return all.taken != before; });
    }
    workers.clear();
    EXPECT_EQ(all.twice, 0u);
    EXPECT_GT(all.taken, static_cast<std::uint32_t>(kills));
    const DWORD how = WaitForSingleObject(mutex, INFINITE);
    EXPECT_TRUE(how == WAIT_OBJECT_0 || how == WAIT_ABANDONED);
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_TRUE(CloseHandle(mutex));
}

TEST_F(shared_names, AThreadOwnsUpTo64Mutexes) {
    const auto name = [](int i) { return "m" + std::to_string(i); };
    std::vector<HANDLE> all;
    for (int i = 0; i != 64; ++i) all.push_back(CreateMutexA(nullptr, TRUE, name(i).c_str()));
    EXPECT_EQ(CreateMutexA(nullptr, TRUE, "too many"), nullptr);
    EXPECT_EQ(GetLastError(), ERROR_NO_SYSTEM_RESOURCES);
    EXPECT_EQ(OpenMutexA(SYNCHRONIZE, FALSE, "too many"), nullptr);
    const HANDLE other = CreateMutexA(nullptr, FALSE, "other");
    const event never(false, false);
    const std::array both{never.get(), other};
    for (const DWORD time : {DWORD{0}, INFINITE}) {
        SetLastError(0);
        EXPECT_EQ(WaitForSingleObject(other, time), WAIT_FAILED);
        EXPECT_EQ(GetLastError(), ERROR_NO_SYSTEM_RESOURCES);
        SetLastError(0);
        EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, time), WAIT_FAILED);
        EXPECT_EQ(GetLastError(), ERROR_NO_SYSTEM_RESOURCES);
    }
    EXPECT_TRUE(ReleaseMutex(all.back()));
    EXPECT_EQ(WaitForSingleObject(other, INFINITE), WAIT_OBJECT_0);
    EXPECT_TRUE(ReleaseMutex(other));
    EXPECT_TRUE(CloseHandle(other));
    EXPECT_TRUE(CloseHandle(all.back()));
    all.pop_back();
    for (const HANDLE each : all) {
        EXPECT_TRUE(ReleaseMutex(each));
        EXPECT_TRUE(CloseHandle(each));
    }
}

// The socket is first in the list, so a mutex behind it that is always free does not starve it.
TEST_F(shared_names, AReadyDescriptorIsNotPassedOver) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const HANDLE readable = TocsinHandleOfDescriptor(ends[0], TOCSIN_READABLE);
    const HANDLE mutex = CreateMutexA(nullptr, FALSE, "m");
    const std::array both{readable, mutex};
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, INFINITE), WAIT_OBJECT_0 + 1);
    EXPECT_TRUE(ReleaseMutex(mutex));
    ASSERT_EQ(::write(ends[1], "", 1), 1);
    EXPECT_EQ(WaitForMultipleObjects(2, both.data(), FALSE, INFINITE), WAIT_OBJECT_0);
    for (const HANDLE each : both) EXPECT_TRUE(CloseHandle(each));
    for (const int each : ends) (void)::close(each);
}

// A thread that is inside an operation's function calls no other operation's function until it has returned.
TEST_F(shared_names, AWaitForAMutexAndMoreEndsInsideAnOperationsFunction) {
    const HANDLE mutex = CreateMutexA(nullptr, TRUE, "m");
    const event never(false, false);
    const std::array both{never.get(), mutex};
    DWORD how = WAIT_FAILED;
    DWORD in_vain = WAIT_FAILED;
    std::atomic<bool> waits{false};
    std::thread other([&] {
        tocsin::auto_reset_event go;
        auto operation = tocsin::any_operation(
            [&](tocsin::any_result) noexcept {
                in_vain = WaitForMultipleObjects(2, both.data(), FALSE, 1);
                waits = true;
                how = WaitForMultipleObjects(2, both.data(), FALSE, INFINITE);
                (void)ReleaseMutex(mutex);
            },
            go);
        operation.start();
        go.set();
    });
    support::until("the thread waits for the mutex alone", [&] { return waits.load(); });
    EXPECT_TRUE(ReleaseMutex(mutex));
    other.join();
    EXPECT_EQ(in_vain, DWORD{WAIT_TIMEOUT});
    EXPECT_EQ(how, WAIT_OBJECT_0 + 1);
    EXPECT_TRUE(CloseHandle(mutex));
}

// The thread that ends the wait may be inside an operation's function, and return only after the wait.
TEST_F(shared_names, AWaitForAMutexAndMoreIsEndedFromInsideAnOperationsFunction) {
    const HANDLE mutex = CreateMutexA(nullptr, TRUE, "m");
    const event set(false, false);
    std::atomic<DWORD> how = WAIT_FAILED;
    std::atomic<bool> has_returned{false};
    const std::array both{set.get(), mutex};
    std::thread other([&] {
        how = WaitForMultipleObjects(2, both.data(), FALSE, INFINITE);
        has_returned = true;
    });
    bool returned_inside = false;
    tocsin::auto_reset_event go;
    auto operation = tocsin::any_operation(
        [&](tocsin::any_result) noexcept {
            (void)SetEvent(set.get());
            support::until("the wait returns", [&] { return has_returned.load(); });
            returned_inside = true;
        },
        go);
    support::until("the thread waits", [&] { return tocsin::describe_parked_waits().size() != 0; });
    operation.start();
    go.set();
    other.join();
    EXPECT_TRUE(returned_inside);
    EXPECT_EQ(how, WAIT_OBJECT_0);
    EXPECT_TRUE(ReleaseMutex(mutex));
    EXPECT_TRUE(CloseHandle(mutex));
}

thread_local int memory_left = -1;  // so many allocations of this thread succeed; -1: all
void spend_memory() {
    if (memory_left == 0) throw std::bad_alloc();
    if (memory_left > 0) --memory_left;
}

TEST_F(shared_names, ACallThatFindsNoMemoryLeavesNothingBehind) {
    support::at_each_allocation = spend_memory;
    for (const bool owned : {false, true}) {
        bool works = false;
        for (int left = 0; !works; ++left) {
            memory_left = left;
            const HANDLE mutex =
                CreateMutexA(nullptr, owned ? TRUE : FALSE, "a name that needs memory of its own");
            const DWORD error = GetLastError();
            memory_left = 0;
            works = mutex != nullptr;
            if (works) {
                EXPECT_EQ(ReleaseMutex(mutex) != FALSE, owned);
                EXPECT_TRUE(CloseHandle(mutex));
            }
            memory_left = -1;
            EXPECT_EQ(error, works ? 0u : ERROR_NOT_ENOUGH_MEMORY);
            EXPECT_EQ(files(), 0u) << left;
            EXPECT_LT(left, 100);
        }
        const HANDLE next = CreateMutexA(nullptr, TRUE, "next");  // the thread's list of locks is whole
        EXPECT_TRUE(ReleaseMutex(next));
        EXPECT_TRUE(CloseHandle(next));
    }
    support::at_each_allocation = nullptr;
}

TEST_F(shared_names, AFolderThatOthersMayUseIsRefused) {
    const std::string open_to_all = folder + "/open";
    ASSERT_EQ(::mkdir(open_to_all.c_str(), 0700), 0);
    ASSERT_EQ(::chmod(open_to_all.c_str(), 0755), 0);
    const std::map<std::string, DWORD> refused{{"relative", ERROR_INVALID_PARAMETER},
                                               {folder + "/no/such", ERROR_PATH_NOT_FOUND},
                                               {open_to_all, ERROR_ACCESS_DENIED}};
    for (const auto& [path, error] : refused) {
        EXPECT_FALSE(TocsinShareNames(path.c_str())) << path;
        EXPECT_EQ(GetLastError(), error) << path;
    }
    ASSERT_EQ(::chmod(open_to_all.c_str(), 0700), 0);
    EXPECT_FALSE(TocsinShareNames(open_to_all.c_str()));
    EXPECT_EQ(GetLastError(), ERROR_BUSY) << "another folder than before";
    fs::remove_all(open_to_all);
}

TEST_F(shared_names, AFileThatIsNoObjectIsRefusedOrReplaced) {
    const std::string path = folder + "/l-odd";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::flock(file, LOCK_SH), 0) << "it looks as if a process used it";
    for (const off_t size : {0, 10, 128, 5000}) {
        ASSERT_EQ(::ftruncate(file, size), 0);
        EXPECT_EQ(CreateEventA(nullptr, TRUE, FALSE, "odd"), nullptr);
        EXPECT_EQ(GetLastError(), size >= 64 ? ERROR_NOT_SUPPORTED : ERROR_INVALID_HANDLE) << size;
    }
    (void)::close(file);
    const HANDLE event = CreateEventA(nullptr, TRUE, FALSE, "odd");
    EXPECT_NE(event, nullptr) << "nobody used it any more";
    EXPECT_TRUE(CloseHandle(event));
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 4 && std::string(arguments[0]) == "actor") {
        folder = arguments[2];
        if (TocsinShareNames(arguments[2]) == FALSE) return failed;
        return actors().at(arguments[1])(arguments[3]);
    }
    testing::InitGoogleTest(&count, arguments);
    std::string pattern = (fs::temp_directory_path() / "tocsin-names-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    const int result = RUN_ALL_TESTS();
    fs::remove_all(folder);
    return result;
}

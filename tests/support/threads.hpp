// SPDX-License-Identifier: Apache-2.0
// Threads that are joined at the end. If a test hangs, it names the threads that hang and ends the program.
#pragma once

#include "facts.hpp"
#include "sanitizer.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#if !defined(_WIN32) && !defined(__EMSCRIPTEN__)
#include <signal.h>
#include <time.h>
#include <unistd.h>
#endif

namespace support {

// While it lives, threads start with small stacks where addresses have 32 bits, because a thousand stacks of the usual
// size do not fit there.
class small_stacks {
public:
    small_stacks(const small_stacks&) = delete;
    small_stacks& operator=(const small_stacks&) = delete;
#if defined(__GLIBC__)
    small_stacks() {
        pthread_getattr_default_np(&before_);
        if (sizeof(void*) > 4) return;
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 256 * 1024);
        pthread_setattr_default_np(&small);
        pthread_attr_destroy(&small);
    }
    ~small_stacks() {
        pthread_setattr_default_np(&before_);
        pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_;
#else
    small_stacks() {}
#endif
};

// Starts a thread that nobody joins, for a program that ends while the thread waits. Only one thread may call it. The
// thread is not detached: with MinGW-w64's threads, one that is detached at once may never run.
template <class Function>
void start_unjoined(Function run) {
    static auto& kept = *new std::deque<std::thread>;
    kept.emplace_back(std::move(run));
}

class thread_group {
public:
    thread_group() = default;
    thread_group(const thread_group&) = delete;
    thread_group& operator=(const thread_group&) = delete;
    ~thread_group() { join(); }

    // Starts a thread and returns its index.
    template <class Body>
    std::size_t start(std::string name, Body body) {
        auto& made = *members_.emplace_back(std::make_unique<member>(std::move(name)));
        made.thread = std::thread([&made, body = std::move(body)]() mutable {
            prepare_for_signals();
            made.number.store(thread_number());
            made.id.store(thread_id());
            body();
            made.finished.store(true);
        });
        return members_.size() - 1;
    }
    template <class Body>
    std::size_t start(Body body) {
        return start("thread " + std::to_string(members_.size()), std::move(body));
    }

    // Starts `count` threads, each with its number, from 0.
    template <class Body>
    void start_many(int count, const std::string& name, Body body) {
        for (int i = 0; i < count; ++i) {
            start(name + ' ' + std::to_string(i), [body, i] { body(i); });
        }
    }

    std::size_t size() const { return members_.size(); }
    bool finished(std::size_t index) const { return members_[index]->finished.load(); }
    std::size_t finished() const {
        std::size_t count = 0;
        for (const auto& each : members_) count += each->finished.load() ? 1 : 0;
        return count;
    }
    void until_finished(std::size_t count) const {
        until("waiting for threads to finish", [&] { return finished() >= count; });
    }

    // The kernel's number of a thread that has begun to run.
    pid_t id(std::size_t index) const {
        until("waiting for a thread to begin", [&] { return members_[index]->id.load() != 0; });
        return members_[index]->id.load();
    }
    // The number by which the library names the thread.
    std::uint64_t number(std::size_t index) const {
        (void)id(index);
        return members_[index]->number.load();
    }
    pthread_t handle(std::size_t index) { return members_[index]->thread.native_handle(); }
    void until_asleep(std::size_t index) const { support::until_asleep(id(index)); }

    // Waits for all threads. If that takes too long, names those that still run and aborts.
    void join() {
        const auto begin = std::chrono::steady_clock::now();
        for (auto& each : members_) {
            int looks = 0;
            while (!each->finished.load()) {
                if (++looks < 100) {
                    std::this_thread::yield();
                    continue;
                }
                std::this_thread::sleep_for(std::chrono::microseconds(50));
                if (std::chrono::steady_clock::now() - begin > patience()) name_and_abort();
            }
        }
        for (auto& each : members_) {
            if (each->thread.joinable()) each->thread.join();
        }
    }

private:
    struct member {
        explicit member(std::string its_name) : name(std::move(its_name)) {}
        std::string name;
        std::atomic<pid_t> id{0};
        std::atomic<std::uint64_t> number{0};
        std::atomic<bool> finished{false};
        std::thread thread;
    };

    [[noreturn]] void name_and_abort() const {
        for (const auto& each : members_) {
            if (each->finished.load()) continue;
            std::fprintf(stderr, "HANG: \"%s\" (thread %d, state %c) has not finished\n", each->name.c_str(),
                         static_cast<int>(each->id.load()), state_of(each->id.load()));
        }
        give_up("threads that don't finish, see above");
    }

    std::deque<std::unique_ptr<member>> members_;
};

// The processor time that a thread has used so far.
#if defined(_WIN32)
inline std::chrono::nanoseconds cpu_time_of(pthread_t thread) {
    FILETIME begun{}, ended{}, system{}, user{};
    if (!GetThreadTimes(pthread_gethandle(thread), &begun, &ended, &system, &user)) {
        give_up("no processor clock of a thread");
    }
    const auto count = [](const FILETIME& time) {  // in 100 ns
        return static_cast<std::int64_t>(std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
    };
    return std::chrono::nanoseconds((count(system) + count(user)) * 100);
}
#elif defined(__EMSCRIPTEN__)
inline std::chrono::nanoseconds cpu_time_of(pthread_t thread) {
    std::ifstream file(about_thread(thread_id_of(thread)) + "schedstat");
    std::int64_t nanoseconds = 0;
    if (!(file >> nanoseconds)) give_up("no processor time of a thread");
    return std::chrono::nanoseconds(nanoseconds);
}
#else
inline std::chrono::nanoseconds cpu_time_of(pthread_t thread) {
    clockid_t clock{};
    timespec time{};
    if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) {
        give_up("no processor clock of a thread");
    }
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}
#endif

// How often a thread left its processor: because it waited for something, and because the kernel took the processor.
struct switches {
    long voluntary = 0;
    long forced = 0;
};
inline switches switches_of(pid_t thread) {
    std::ifstream file(about_thread(thread) + "status");
    switches seen;
    std::string word;
    while (file >> word) {
        if (word == "voluntary_ctxt_switches:") file >> seen.voluntary;
        if (word == "nonvoluntary_ctxt_switches:") file >> seen.forced;
    }
    return seen;
}

// Waits until the thread is asleep, and not only for a moment: several looks find it asleep with no switch in between.
// None of them finds another thread that is about to run and could end the sleep. (Under qemu, a thread that starts
// another sleeps until that one has run.)
inline void until_sound_asleep(pid_t thread) {
    until("sound asleep", [&] {
        const auto before = switches_of(thread);
        for (int i = 0; i < 4; ++i) {
            if (state_of(thread) != 'S' || another_is_about_to_run()) return false;
            std::this_thread::sleep_for(300us);  // no fact to wait for: the thread must stay asleep
        }
        return switches_of(thread).voluntary == before.voluntary;
    });
}

// Stops single threads of this process wherever they are, until they are thawed. So a test can be sure that a thread
// has not run in between.
#if defined(_WIN32)
class freezer {
public:
    static constexpr bool works = true;

    freezer() = default;
    freezer(const freezer&) = delete;
    freezer& operator=(const freezer&) = delete;
    ~freezer() { thaw(); }

    void freeze(pthread_t thread) {
        const HANDLE handle = pthread_gethandle(thread);
        CONTEXT context{};
        context.ContextFlags = CONTEXT_CONTROL;
        // The thread has stopped when its registers can be read.
        if (SuspendThread(handle) == ~DWORD{0} || !GetThreadContext(handle, &context)) {
            give_up("can't freeze a thread");
        }
        frozen_.push_back(handle);
    }
    // Thaws one of the frozen threads, or all.
    void thaw_one() {
        if (frozen_.empty()) return;
        ResumeThread(frozen_.front());
        frozen_.erase(frozen_.begin());
    }
    void thaw() {
        while (!frozen_.empty()) thaw_one();
    }

private:
    std::vector<HANDLE> frozen_;
};
#elif defined(__EMSCRIPTEN__)
// Nothing can stop a thread of WebAssembly.
class freezer {
public:
    static constexpr bool works = false;

    freezer() {}
    void freeze(pthread_t) { give_up("can't freeze a thread"); }
    void thaw_one() {}
    void thaw() {}
};
#else
// Handles a signal without SA_RESTART: a system call that the signal interrupts ends with EINTR.
class handled_signal {
public:
    handled_signal(int number, void (*handler)(int)) : number_(number) {
        struct sigaction action{};
        action.sa_handler = handler;
        sigaction(number, &action, &before_);
    }
    handled_signal(const handled_signal&) = delete;
    handled_signal& operator=(const handled_signal&) = delete;
    ~handled_signal() { sigaction(number_, &before_, nullptr); }

private:
    const int number_;
    struct sigaction before_{};
};

// Stops threads in a signal handler. Does not work under ThreadSanitizer, which defers handlers.
class freezer {
public:
    static constexpr bool works = !thread_sanitizer;

    freezer() {
        if (pipe(pipe_) != 0) give_up("no pipe");
        frozen_.store(0);
        thawed_.store(0);
        input_.store(pipe_[0]);
    }
    freezer(const freezer&) = delete;
    freezer& operator=(const freezer&) = delete;
    ~freezer() {
        thaw();
        close(pipe_[0]);
        close(pipe_[1]);
    }

    void freeze(pthread_t thread) {
        pthread_kill(thread, SIGUSR2);
        ++wanted_;
        until("waiting for a thread to freeze", [&] { return frozen_.load() == wanted_; });
    }
    // Thaws one of the frozen threads (the system chooses which), or all.
    void thaw_one() {
        if (thawn_ == wanted_) return;
        ++thawn_;
        const char byte = 0;
        if (write(pipe_[1], &byte, 1) != 1) give_up("can't thaw a thread");
    }
    void thaw() {
        while (thawn_ < wanted_) thaw_one();
        until("waiting for threads to thaw", [&] { return thawed_.load() == wanted_; });
    }

private:
    static void stand_still() {
        const int before = errno;
        frozen_.fetch_add(1);
        char byte = 0;
        while (read(input_.load(), &byte, 1) != 1) {
        }
        thawed_.fetch_add(1);
        errno = before;
    }

    int pipe_[2] = {-1, -1};
    int wanted_ = 0;
    int thawn_ = 0;
    const handled_signal handled_{SIGUSR2, [](int) { stand_still(); }};
    inline static std::atomic<int> input_{-1};
    inline static std::atomic<int> frozen_{0};
    inline static std::atomic<int> thawed_{0};
};

// Counts the signals of one number.
class signal_counter {
public:
    explicit signal_counter(int number)
        : handled_(number, [](int) { count_.fetch_add(1, std::memory_order_relaxed); }) {}

    long count() const { return count_.load() - before_; }

private:
    inline static std::atomic<long> count_{0};
    const long before_ = count_.load();
    const handled_signal handled_;
};
#endif

// A barrier that spins a little and then yields: lets two threads start a round within nanoseconds.
class starting_line {
public:
    explicit starting_line(int threads) : threads_(threads) {}

    void arrive() {
        const int round = round_.load();
        if (arrived_.fetch_add(1) + 1 == threads_) {
            arrived_.store(0);
            round_.store(round + 1);
            return;
        }
        for (int looks = 0; round_.load() == round; ++looks) {
            if (looks > 300) std::this_thread::yield();
        }
    }

private:
    const int threads_;
    std::atomic<int> arrived_{0};
    std::atomic<int> round_{0};
};

}  // namespace support

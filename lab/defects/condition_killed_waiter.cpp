// SPDX-License-Identifier: Apache-2.0
// Processes share a robust mutex, a condition variable and a count of tokens. In each round a waiter is killed while it
// sleeps, another one waits, and a third process adds a token and signals. Both must then end. tocsin has no condition
// between processes, so this program has no second side.
#include "reproduction.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <gnu/libc-version.h>
#include <new>
#include <utility>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

namespace {

using namespace reproduction;
using namespace std::chrono_literals;

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    std::atomic<int> tokens{0};

    shared() {
        pthread_mutexattr_t of_mutex;
        pthread_mutexattr_init(&of_mutex);
        pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&of_mutex, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&mutex, &of_mutex);
        pthread_condattr_t of_condition;
        pthread_condattr_init(&of_condition);
        pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
        pthread_cond_init(&condition, &of_condition);
    }

    void mend(int error) {
        if (error == EOWNERDEAD) pthread_mutex_consistent(&mutex);
    }

    void take_token() {
        mend(pthread_mutex_lock(&mutex));
        while (tokens == 0) mend(pthread_cond_wait(&condition, &mutex));
        --tokens;
        pthread_mutex_unlock(&mutex);
    }

    void give_token() {
        mend(pthread_mutex_lock(&mutex));
        ++tokens;
        pthread_mutex_unlock(&mutex);
        pthread_cond_signal(&condition);
    }
};

template <class Work>
pid_t start(Work work) {
    const pid_t child = fork();
    if (child != 0) return child;
    work();
    _exit(0);
}

void kill_and_reap(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

// True: it has ended, and was reaped.
bool ends_within(pid_t child, std::chrono::milliseconds longest) {
    for (const clock::time_point end = clock::now() + longest; clock::now() < end;) {
        if (waitpid(child, nullptr, WNOHANG) == child) return true;
        std::this_thread::sleep_for(1ms);
    }
    return false;
}

struct finding {
    bool signaller_hangs = false;
    bool waiter_hangs = false;
    bool unclear = false;  // something did not end in time, but no hang was proven
};

// The waiter's condition is a token that nobody else can take; the signaller waits for nobody who lives.
finding play_round(shared& it) {
    const pid_t victim = start([&] { it.take_token(); });
    std::this_thread::sleep_for(20ms);
    kill_and_reap(victim);
    const pid_t waiter = start([&] { it.take_token(); });
    std::this_thread::sleep_for(20ms);
    const pid_t signaller = start([&] { it.give_token(); });
    const bool signaller_ends = ends_within(signaller, 1s);
    const bool waiter_ends = ends_within(waiter, signaller_ends ? 1s : 1ms);
    finding found;
    if (!signaller_ends)
        found.signaller_hangs = proven_to_hang(stat_of_process(signaller), [] { return true; });
    if (!waiter_ends)
        found.waiter_hangs = proven_to_hang(stat_of_process(waiter), [&] { return it.tokens == 1; });
    found.unclear = (!signaller_ends || !waiter_ends) && !found.signaller_hangs && !found.waiter_hangs;
    if (!signaller_ends) kill_and_reap(signaller);
    if (!waiter_ends) kill_and_reap(waiter);
    return found;
}

outcome play(double seconds) {
    void* memory = mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    outcome found{.version = std::string("glibc ") + gnu_get_libc_version()};
    if (memory == MAP_FAILED) return found;
    auto* it = new (memory) shared;
    unsigned signallers = 0;
    unsigned waiters = 0;
    for (const budget time(seconds); !time.spent(); ++found.tries) {
        const finding round = play_round(*it);
        signallers += round.signaller_hangs;
        waiters += round.waiter_hangs;
        if (!round.signaller_hangs && !round.waiter_hangs && !round.unclear) continue;
        found.seen += !round.unclear;
        it = new (memory) shared;  // the next round begins with new objects
    }
    found.note = "blocked for good: the live waiter (" + std::to_string(waiters) + "), the signaller (" +
                 std::to_string(signallers) + ")";
    return found;
}

}  // namespace

int main(int count, char** arguments) {
    return run(count, arguments, play, [](double) { return outcome{}; });
}

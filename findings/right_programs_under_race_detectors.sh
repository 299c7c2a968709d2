#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two threads change a number under a lock, or one after the other. The race detectors of Debian 12 know some ways to
# take a lock or to wait. For others that are as right they report a race, or an unlock of a mutex that nobody has
# locked:
#   1. ThreadSanitizer of GCC 12.2 reports try_lock_for() of std::timed_mutex and std::shared_timed_mutex, mtx_lock and
#      cnd_wait of C11, and sem_clockwait. It knows the same C++ locks if they are taken by lock().
#   2. helgrind of Valgrind 3.19 reports try_lock_for() of std::timed_mutex, and sem_clockwait. drd reports the latter.
# Why: a detector replaces the functions that it knows. What it doesn't know orders nothing in its eyes. try_lock_for()
# is pthread_mutex_clocklock or pthread_rwlock_clockwrlock, and C11's functions call glibc's own from within.
# Guessed before: no report, as these are the standard's own locks, and as with condition_variable::wait_for, which is
# pthread_cond_clockwait.
# Needs Debian 12 with g++ and valgrind.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > seen.cpp <<'CODE'
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <semaphore.h>
#include <shared_mutex>
#include <string>
#include <thread>
#include <threads.h>
#include <time.h>

int number = 0;

// Both threads change the number under a lock.
void both(auto lock, auto unlock) {
    const auto change = [&] {
        for (int i = 0; i < 100; ++i) {
            lock();
            ++number;
            unlock();
        }
    };
    std::thread other(change);
    change();
    other.join();
}

// The second thread changes the number after the first.
void in_turn(auto announce, auto wait) {
    std::thread other([&] {
        wait();
        ++number;
    });
    ++number;
    announce();
    other.join();
}

int main(int, char** given) {
    const std::string name = given[1];
    constexpr std::chrono::minutes long_time{1};
    std::mutex plain;
    std::timed_mutex timed;
    std::shared_timed_mutex shared;
    auto& condition = *new std::condition_variable;
    bool told = false;
    mtx_t c_mutex;
    mtx_init(&c_mutex, mtx_plain);
    cnd_t c_condition;
    cnd_init(&c_condition);
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += 60;
    if (name == "mutex") both([&] { plain.lock(); }, [&] { plain.unlock(); });
    if (name == "timed_mutex") both([&] { timed.lock(); }, [&] { timed.unlock(); });
    if (name == "timed_mutex, try_lock_for") {
        both([&] { while (!timed.try_lock_for(long_time)) {} }, [&] { timed.unlock(); });
    }
    if (name == "shared_timed_mutex") both([&] { shared.lock(); }, [&] { shared.unlock(); });
    if (name == "shared_timed_mutex, try_lock_for") {
        both([&] { while (!shared.try_lock_for(long_time)) {} }, [&] { shared.unlock(); });
    }
    if (name == "mtx_lock") both([&] { mtx_lock(&c_mutex); }, [&] { mtx_unlock(&c_mutex); });
    if (name == "condition_variable, wait_for") {
        in_turn([&] { std::lock_guard lock(plain); told = true; condition.notify_one(); },
                [&] { std::unique_lock lock(plain); condition.wait_for(lock, long_time, [&] { return told; }); });
    }
    if (name == "cnd_wait") {
        in_turn([&] { mtx_lock(&c_mutex); told = true; cnd_signal(&c_condition); mtx_unlock(&c_mutex); },
                [&] { mtx_lock(&c_mutex); while (!told) cnd_wait(&c_condition, &c_mutex); mtx_unlock(&c_mutex); });
    }
    if (name == "sem_wait") in_turn([&] { sem_post(&semaphore); }, [&] { sem_wait(&semaphore); });
    if (name == "sem_clockwait") {
        in_turn([&] { sem_post(&semaphore); }, [&] { sem_clockwait(&semaphore, CLOCK_MONOTONIC, &deadline); });
    }
    return number >= 2 ? 0 : 3;
}
CODE
g++ -std=c++20 -g -O0 -pthread seen.cpp -o plain
g++ -std=c++20 -g -O0 -pthread -fsanitize=thread seen.cpp -o tsan
said() {
    if "$@" > log.txt 2>&1; then echo -n "silent"; elif [ $? = 66 ]; then echo -n "reports"; else echo -n "failed"; fi
}
while read -r name; do
    echo -n "$name: ThreadSanitizer "
    said ./tsan "$name"
    for tool in helgrind drd; do
        echo -n ", $tool "
        said valgrind --tool=$tool --error-exitcode=66 ./plain "$name"
    done
    echo
done > seen.txt <<'TEXT'
mutex
timed_mutex
timed_mutex, try_lock_for
shared_timed_mutex
shared_timed_mutex, try_lock_for
mtx_lock
condition_variable, wait_for
cnd_wait
sem_wait
sem_clockwait
TEXT
cat seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
mutex: ThreadSanitizer silent, helgrind silent, drd silent
timed_mutex: ThreadSanitizer silent, helgrind silent, drd silent
timed_mutex, try_lock_for: ThreadSanitizer reports, helgrind reports, drd silent
shared_timed_mutex: ThreadSanitizer silent, helgrind silent, drd silent
shared_timed_mutex, try_lock_for: ThreadSanitizer reports, helgrind silent, drd silent
mtx_lock: ThreadSanitizer reports, helgrind silent, drd silent
condition_variable, wait_for: ThreadSanitizer silent, helgrind silent, drd silent
cnd_wait: ThreadSanitizer reports, helgrind silent, drd silent
sem_wait: ThreadSanitizer silent, helgrind silent, drd silent
sem_clockwait: ThreadSanitizer reports, helgrind reports, drd reports
TEXT

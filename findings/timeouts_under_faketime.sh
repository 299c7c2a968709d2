#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libfaketime 0.9.10 changes the length of sleeps, but not of waits. Its monotonic clock counts from 1970 instead of from
# the system's start. A wait of the standard library computes its deadline on this clock, and the kernel measures it
# on its own clock, where the deadline is decades ahead. So the wait doesn't end until somebody notifies.
#   1. With time ten times as fast: sleep_for() and poll() of 1 s last 0.1 s. Waits of 1 s for a condition variable and
#      for a timed mutex last until they get what they wait for, here after 2 s.
#   2. With FAKETIME_DONT_FAKE_MONOTONIC=1 as well, these waits last their 1 s, and the sleeps still 0.1 s.
# Guessed before: that with time ten times as fast all timed waits last a tenth.
# Seen with GCC 12.2 and glibc 2.36. Needs Debian 12, g++, and apt-get with a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq -o APT::Sandbox::User=root libfaketime=0.9.10-2.1 2> apt.log || { cat apt.log; exit 1; }
dpkg -x libfaketime_*.deb package
cat > waits.cpp <<'CODE'
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <poll.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>

constexpr std::chrono::seconds second{1};

double kernel_time() {
    timespec now{};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

void pause_on_kernel_time(double seconds) {
    timespec length{long(seconds), long((seconds - long(seconds)) * 1e9)};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &length, nullptr);
}

void show(const char* name, auto wait) {
    const double begin = kernel_time();
    const bool timed_out = !wait();
    const double took = kernel_time() - begin;
    const char* length = took < 0.6 ? "a tenth" : took < 1.6 ? "1 s" : "longer";
    std::printf("%s: %s%s\n", name, length, timed_out ? ", timed out" : "");
    std::fprintf(stderr, "    %s: %.2f s\n", name, took);
}

int main() {
    std::mutex mutex;
    std::condition_variable condition;
    std::timed_mutex timed_mutex;
    bool go = false;
    show("sleep_for", [] { return std::this_thread::sleep_for(second), true; });
    show("poll", [] { return poll(nullptr, 0, 1000) != 0; });
    std::thread notifier([&] {
        pause_on_kernel_time(2);
        std::lock_guard lock(mutex);
        go = true;
        condition.notify_one();
    });
    show("condition_variable", [&] {
        std::unique_lock lock(mutex);
        return condition.wait_for(lock, second, [&] { return go; });
    });
    notifier.join();
    std::thread holder([&] {
        timed_mutex.lock();
        pause_on_kernel_time(2.5);
        timed_mutex.unlock();
    });
    pause_on_kernel_time(0.5);
    show("timed_mutex", [&] { return timed_mutex.try_lock_for(second); });
    holder.join();
}
CODE
g++ -std=c++20 -O1 -pthread waits.cpp -o waits
library=$(echo "$PWD"/package/usr/lib/*/faketime/libfaketimeMT.so.1)
echo "all clocks faked:" | tee seen.txt
LD_PRELOAD=$library FAKETIME='+0 x10' ./waits | tee -a seen.txt
echo "the monotonic clock not faked:" | tee -a seen.txt
LD_PRELOAD=$library FAKETIME='+0 x10' FAKETIME_DONT_FAKE_MONOTONIC=1 ./waits | tee -a seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
all clocks faked:
sleep_for: a tenth
poll: a tenth, timed out
condition_variable: longer
timed_mutex: longer
the monotonic clock not faked:
sleep_for: a tenth
poll: a tenth, timed out
condition_variable: 1 s, timed out
timed_mutex: 1 s, timed out
TEXT

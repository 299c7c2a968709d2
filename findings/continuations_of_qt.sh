#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What Qt's futures and semaphores do with those who wait:
#   1. Three continuations are attached to one QFuture with then(). If it hasn't finished yet, only the last one runs,
#      when it finishes. The futures of the others are cancelled. If it has finished already, all three run. So the
#      result depends on who is faster. Why: a future keeps one continuation, and a new one replaces it.
#   2. The future that then() returned is cancelled before the source finishes. The continuation runs nevertheless.
#      Why: cancel() marks this future only, and the source still has the continuation.
#   3. QSemaphore, one of two units is taken, and a thread waits for two. Threads that want one pass it, 20 of 20.
# Guessed before: (1) that all three run, (2) that it doesn't run, (3) that newcomers line up.
# Seen with Qt 6.4.2. Needs Debian 12's g++ and qt6-base-dev.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > seen.cpp <<'CODE'
#include <QFuture>
#include <QPromise>
#include <QSemaphore>
#include <cstdio>
#include <thread>

void continuations(bool finished) {
    QPromise<int> promise;
    promise.start();
    if (finished) promise.addResult(1), promise.finish();
    QFuture<int> source = promise.future();
    bool ran[3] = {};
    QFuture<void> futures[3];
    for (int i = 0; i < 3; ++i) futures[i] = source.then([&ran, i](int) { ran[i] = true; });
    if (!finished) promise.addResult(1), promise.finish();
    std::printf(finished ? "then() after the end:" : "then() before the end:");
    for (int i = 0; i < 3; ++i) {
        futures[i].waitForFinished();
        std::printf(" %s", ran[i] ? "ran" : futures[i].isCanceled() ? "cancelled" : "neither");
    }
    std::puts("");
}

int main() {
    continuations(false);
    continuations(true);

    QPromise<int> promise;
    promise.start();
    bool ran = false;
    QFuture<void> continuation = promise.future().then([&](int) { ran = true; });
    continuation.cancel();
    promise.addResult(1);
    promise.finish();
    continuation.waitForFinished();
    std::printf("cancelled before: %s\n", ran ? "ran" : "did not run");

    QSemaphore units(2);
    units.acquire();
    std::thread heavy([&] { units.acquire(2); });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    int passed = 0;
    for (int i = 0; i < 20; ++i) {
        if (!units.tryAcquire(1, 2000)) continue;
        ++passed;
        units.release();
    }
    std::printf("waits for one that pass a wait for two: %d\n", passed);
    units.release();
    heavy.join();
}
CODE
headers=/usr/include/$(gcc -print-multiarch)/qt6
g++ -std=c++17 -O0 -fPIC -I "$headers" -I "$headers/QtCore" seen.cpp -o seen -lQt6Core -pthread
./seen | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
then() before the end: cancelled cancelled ran
then() after the end: ran ran ran
cancelled before: ran
waits for one that pass a wait for two: 20
TEXT

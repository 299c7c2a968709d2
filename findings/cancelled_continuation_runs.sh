#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In Qt, a continuation is attached to a QFuture with then(), and the future that then() returned is cancelled before
# the source finishes. The source finishes, and the continuation runs nevertheless. The cancelled future says that it is
# cancelled, before and after that.
# Why: cancel() marks this future only. The source still has the continuation, which looks at the source's state alone.
# The documentation says that cancel() "cancels the asynchronous computation represented by this future", and warns of
# running ones that can't be cancelled. This one hasn't begun. Qt 6.10 adds cancelChain(), which by its documentation
# cancels the continuations that are pending.
# Guessed before: that it doesn't run.
# Seen with Qt 6.4.2. Needs Debian 12's g++ and qt6-base-dev.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > seen.cpp <<'CODE'
#include <QFuture>
#include <QPromise>
#include <cstdio>

int main() {
    QPromise<int> promise;
    promise.start();
    bool ran = false;
    QFuture<void> continuation = promise.future().then([&](int) { ran = true; });
    continuation.cancel();
    std::printf("before the source finishes: %s,", continuation.isCanceled() ? "cancelled" : "not cancelled");
    std::printf(" %s\n", ran ? "ran" : "did not run");
    promise.addResult(1);
    promise.finish();
    continuation.waitForFinished();
    std::printf("when it has finished: %s,", continuation.isCanceled() ? "cancelled" : "not cancelled");
    std::printf(" %s\n", ran ? "ran" : "did not run");
}
CODE
headers=/usr/include/$(gcc -print-multiarch)/qt6
g++ -std=c++17 -O0 -fPIC -I "$headers" -I "$headers/QtCore" seen.cpp -o seen -lQt6Core -pthread
./seen | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
before the source finishes: cancelled, did not run
when it has finished: cancelled, ran
TEXT

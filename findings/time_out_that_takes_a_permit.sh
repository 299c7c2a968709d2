#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wait for a permit of Failsafe's bulkhead times out, or its thread is interrupted. The next release gives its permit
# to this wait nevertheless, and nobody ever gets it back: the bulkhead has one permit less from then on. With two
# permits and three waits that timed out, all permits are gone after two releases.
#   1. tryAcquirePermit(time) that times out, acquirePermit() that is interrupted, and an execution through the bulkhead
#      that its own Timeout interrupts, take a permit each.
#   2. An asynchronous execution that is cancelled while it waits takes nothing.
# Why: a waiter is a future in a queue. A blocking wait that gives up leaves the future there, not cancelled, and the
# release completes it. The asynchronous one cancels its future, and the release passes by.
# Guessed before: that a wait that has reported failure takes nothing.
# Seen with Failsafe 3.3.2 (Maven, dev.failsafe) under OpenJDK 17. Needs java, mvn, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > pom.xml <<'TEXT'
<project><modelVersion>4.0.0</modelVersion><groupId>seen</groupId><artifactId>seen</artifactId><version>1</version>
<dependencies><dependency>
  <groupId>dev.failsafe</groupId><artifactId>failsafe</artifactId><version>3.3.2</version>
</dependency></dependencies></project>
TEXT
cat > Seen.java <<'CODE'
import dev.failsafe.*;
import java.time.Duration;

class Seen {
    interface Wait {
        void on(Bulkhead<Object> bulkhead) throws Exception;
    }

    static final Duration SHORT = Duration.ofMillis(50);
    static final Duration LONG = Duration.ofSeconds(20);

    static void trial(String name, int permits, Wait wait) throws Exception {
        Bulkhead<Object> bulkhead = Bulkhead.builder(permits).withMaxWaitTime(LONG).build();
        for (int i = 0; i < permits; ++i) bulkhead.acquirePermit();
        wait.on(bulkhead);
        for (int i = 0; i < permits; ++i) bulkhead.releasePermit();
        int free = 0;
        while (bulkhead.tryAcquirePermit()) ++free;
        System.out.println(name + ": " + permits + " released, " + free + " free");
    }

    static void failedTry(Bulkhead<Object> bulkhead) throws InterruptedException {
        if (bulkhead.tryAcquirePermit(SHORT)) throw new IllegalStateException();
    }

    static void interruptedWait(Bulkhead<Object> bulkhead) {
        Thread waiter = Thread.currentThread();
        new Thread(() -> {
            while (waiter.getState() != Thread.State.WAITING) Thread.onSpinWait();
            waiter.interrupt();
        }).start();
        try {
            bulkhead.acquirePermit();
            throw new IllegalStateException();
        } catch (InterruptedException expected) {
        }
    }

    static void timedOutExecution(Bulkhead<Object> bulkhead) {
        var limit = Timeout.builder(SHORT).withInterrupt().build();
        try {
            Failsafe.with(limit, bulkhead).run(() -> {});
            throw new IllegalStateException();
        } catch (TimeoutExceededException expected) {
        }
    }

    static void cancelled(Bulkhead<Object> bulkhead) throws Exception {
        var execution = Failsafe.with(bulkhead).runAsync(() -> System.out.println("runs"));
        Thread.sleep(200);
        if (!execution.cancel(true)) throw new IllegalStateException();
    }

    public static void main(String[] none) throws Exception {
        trial("no wait", 1, bulkhead -> {});
        trial("a try times out", 1, Seen::failedTry);
        trial("three tries time out", 2, bulkhead -> {
            for (int i = 0; i < 3; ++i) failedTry(bulkhead);
        });
        trial("a wait is interrupted", 1, Seen::interruptedWait);
        trial("a Timeout ends an execution", 1, Seen::timedOutExecution);
        trial("an asynchronous execution is cancelled", 1, Seen::cancelled);
        System.exit(0);
    }
}
CODE
mvn -q dependency:copy-dependencies -DoutputDirectory=jars > mvn.log
java -cp 'jars/*' Seen.java | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
no wait: 1 released, 1 free
a try times out: 1 released, 0 free
three tries time out: 2 released, 0 free
a wait is interrupted: 1 released, 0 free
a Timeout ends an execution: 1 released, 0 free
an asynchronous execution is cancelled: 1 released, 1 free
TEXT

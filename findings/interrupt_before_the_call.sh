#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Java thread has been interrupted. Then it makes a call that doesn't have to wait: the item, the place or the permit
# is there, the future is done, the thread has ended. Most of these methods may throw InterruptedException. Whether they
# do here depends on the class, on the method within one class, and on Java's version:
#   1. put() and take() of LinkedBlockingQueue throw. Those of LinkedBlockingDeque do their work, but its poll() with a
#      time-out throws. With LinkedTransferQueue it is the poll() that works, and take() works in Java 17 and throws in
#      Java 25.
#   2. Semaphore, ReentrantLock and CountDownLatch throw, also with a time-out of 0, and Thread.sleep(0) throws.
#   3. join(), get() of a done future, and awaitTermination() return.
# tryAcquire() and tryLock() without a time-out, and put() of PriorityBlockingQueue and LinkedTransferQueue, don't
# declare the exception. They return.
# So a loop of take() that always finds an item in a LinkedBlockingDeque is not ended by an interrupt.
# Why: some take their lock by lockInterruptibly(), others by lock(), and some look only when they are about to wait.
# Guessed before: that all that declare it throw, as a wait that must sleep does.
# Seen with OpenJDK 17 and 25. Needs a JDK, 17 or later. It runs `java`, or the one that is given.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
java=${1:-java}
cd "$folder"
cat > Seen.java <<'CODE'
import java.util.List;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

class Seen {
    static Thread ended() throws Exception {
        Thread thread = new Thread(() -> {});
        thread.start();
        while (thread.isAlive()) Thread.onSpinWait();
        return thread;
    }

    static void trial(String name, Callable<?> call) throws Exception {
        Thread.currentThread().interrupt();
        String seen = "returns";
        try {
            call.call();
        } catch (InterruptedException e) {
            seen = "throws";
        }
        if (Thread.interrupted() == seen.equals("throws")) seen += ", and leaves the thread in an odd state";
        System.out.println(name + ": " + seen);
    }

    static void queue(BlockingQueue<Integer> queue) throws Exception {
        String name = queue.getClass().getSimpleName();
        trial(name + " put", () -> { queue.put(1); return 0; });
        if (queue.isEmpty()) queue.add(1);
        trial(name + " take", () -> queue.take());
        if (queue.isEmpty()) queue.add(1);
        trial(name + " poll, 1 s", () -> queue.poll(1, TimeUnit.SECONDS));
    }

    public static void main(String[] arguments) throws Exception {
        queue(new ArrayBlockingQueue<>(2));
        queue(new LinkedBlockingQueue<>());
        queue(new PriorityBlockingQueue<>());
        queue(new LinkedBlockingDeque<>());
        queue(new LinkedTransferQueue<>());
        trial("Semaphore acquire", () -> { new Semaphore(1).acquire(); return 0; });
        trial("Semaphore tryAcquire", () -> new Semaphore(1).tryAcquire());
        trial("Semaphore tryAcquire, 0 s", () -> new Semaphore(1).tryAcquire(0, TimeUnit.SECONDS));
        trial("ReentrantLock tryLock", () -> new ReentrantLock().tryLock());
        trial("ReentrantLock tryLock, 0 s", () -> new ReentrantLock().tryLock(0, TimeUnit.SECONDS));
        trial("CountDownLatch await", () -> { new CountDownLatch(0).await(); return 0; });
        trial("Thread sleep 0", () -> { Thread.sleep(0); return 0; });
        Thread thread = ended();
        trial("Thread join", () -> { thread.join(); return 0; });
        trial("CompletableFuture get", () -> CompletableFuture.completedFuture(1).get(1, TimeUnit.SECONDS));
        FutureTask<Integer> task = new FutureTask<>(() -> 1);
        task.run();
        trial("FutureTask get", () -> task.get());
        ExecutorService executor = Executors.newCachedThreadPool();
        executor.shutdown();
        trial("awaitTermination", () -> executor.awaitTermination(1, TimeUnit.SECONDS));
    }
}
CODE
"$java" -XX:TieredStopAtLevel=1 Seen.java | tee seen.txt
version=$("$java" -XshowSettings:properties -version 2>&1 | awk '/java.specification.version/ {print $3}')
take=throws # in versions that nobody has tried, too
if [ "$version" -le 17 ]; then take=returns; fi
diff - seen.txt <<TEXT || { echo "changed"; exit 1; }
ArrayBlockingQueue put: throws
ArrayBlockingQueue take: throws
ArrayBlockingQueue poll, 1 s: throws
LinkedBlockingQueue put: throws
LinkedBlockingQueue take: throws
LinkedBlockingQueue poll, 1 s: throws
PriorityBlockingQueue put: returns
PriorityBlockingQueue take: throws
PriorityBlockingQueue poll, 1 s: throws
LinkedBlockingDeque put: returns
LinkedBlockingDeque take: returns
LinkedBlockingDeque poll, 1 s: throws
LinkedTransferQueue put: returns
LinkedTransferQueue take: $take
LinkedTransferQueue poll, 1 s: returns
Semaphore acquire: throws
Semaphore tryAcquire: returns
Semaphore tryAcquire, 0 s: throws
ReentrantLock tryLock: returns
ReentrantLock tryLock, 0 s: throws
CountDownLatch await: throws
Thread sleep 0: throws
Thread join: returns
CompletableFuture get: returns
FutureTask get: returns
awaitTermination: returns
TEXT

// SPDX-License-Identifier: Apache-2.0
// Java's LockSupport in the scenarios of the lab; worker.py says how it is called.

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

public final class Events {
    static void meet(String word) throws IOException {
        System.out.println(word);
        System.out.flush();
        while (System.in.read() != '\n') {}
    }

    static void report(String metric, int size, List<Long> times) {
        StringBuilder line = new StringBuilder("batch " + metric + " " + size);
        for (long took : times) line.append(' ').append(took);
        System.out.println(line);
    }

    // For one waiter, which stores itself in `waiter` before it waits.
    static final class Event {
        private volatile boolean set;
        private volatile Thread waiter;

        void set() {
            set = true;
            LockSupport.unpark(waiter);
        }

        void await() {
            waiter = Thread.currentThread();
            while (!set) LockSupport.park(this);
            set = false;
        }
    }

    static int answers;
    static volatile boolean over;

    static void pingPong(long budget) throws Exception {
        final int size = 8;
        Event there = new Event(), back = new Event();
        Thread partner = new Thread(() -> {
            for (;;) {
                there.await();
                if (over) return;
                ++answers;
                back.set();
            }
        });
        partner.start();
        List<Long> times = new ArrayList<>();
        meet("ready");
        long end = System.nanoTime() + budget;
        while (times.isEmpty() || System.nanoTime() < end) {
            long start = System.nanoTime();
            for (int i = 0; i < size; ++i) {
                there.set();
                back.await();
            }
            times.add(System.nanoTime() - start);
        }
        meet("done");
        report("trip", size, times);
        System.out.println("operations " + size * times.size());
        if (answers != size * times.size()) System.out.println("wrong each trip is answered once");
        over = true;
        there.set();
        partner.join();
    }

    static volatile int opened;

    static void broadcast(long budget, int count) throws Exception {
        List<Long> held = new ArrayList<>(), last = new ArrayList<>();
        long[] woke = new long[count];
        AtomicInteger arrived = new AtomicInteger(), awake = new AtomicInteger();
        CountDownLatch[] all = {null};
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; ++i) {
            int index = i;
            threads[i] = new Thread(null, () -> {
                for (int repetition = 1;; ++repetition) {
                    arrived.incrementAndGet();
                    while (opened < repetition) LockSupport.park();
                    if (over) return;
                    woke[index] = System.nanoTime();
                    awake.incrementAndGet();
                    all[0].countDown();
                }
            }, "sleeper", 256 * 1024);
            threads[i].start();
        }
        meet("ready");
        boolean early = false;
        long end = System.nanoTime() + budget;
        int repetition = 0;
        while (repetition < 3 || System.nanoTime() < end) {
            ++repetition;
            while (arrived.get() < count * repetition) Thread.sleep(1);
            Thread.sleep(10);
            early |= awake.getAndSet(0) != (repetition == 1 ? 0 : count);
            all[0] = new CountDownLatch(count);
            long start = System.nanoTime();
            opened = repetition;
            for (Thread thread : threads) LockSupport.unpark(thread);
            held.add(System.nanoTime() - start);
            all[0].await();
            long latest = start;
            for (long at : woke) latest = Math.max(latest, at);
            last.add(latest - start);
        }
        meet("done");
        report("held", 1, held);
        report("last", 1, last);
        System.out.println("operations " + (long) count * repetition);
        if (early) System.out.println("wrong nobody wakes before the set");
        over = true;
        opened = Integer.MAX_VALUE;
        for (Thread thread : threads) LockSupport.unpark(thread);
        for (Thread thread : threads) thread.join();
    }

    public static void main(String[] words) throws Exception {
        long budget = (long) (Double.parseDouble(words[1]) * 1e6);
        if (words[0].equals("ping_pong")) {
            pingPong(budget);
        } else {
            broadcast(budget, Integer.parseInt(words[2].split("=")[1]));
        }
    }
}

# SPDX-License-Identifier: Apache-2.0
"""What threading's own tests don't ask of events, semaphores, locks and waits for several things."""

import copy
import gc
import math
import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
import warnings
import weakref

import support
import tocsin
from support import PATIENCE
from tocsin import _core


class BusyLocks(unittest.TestCase):
    """A thread that takes a lock again and again doesn't keep it from one that waits, although it has the interpreter's
    lock all the time. (A waiter that asked for the interpreter's lock first would never get this one. The main thread
    asks for it once, 5 ms after its wait began, so it is not tested here.)"""

    def take_again_and_again(self, lock, until):
        patience = time.monotonic() + PATIENCE  # the waiter needs a few thousand uses, which take milliseconds
        while not until():
            with lock:
                for _ in range(300):  # the lock is free for a small part of a use
                    pass
            self.assertLess(time.monotonic(), patience, "the waiting thread has never got the lock")

    def setUp(self):
        former = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, former)

    def test_a_thread_that_waits_gets_a_busy_lock(self):
        for kind in (tocsin.Lock, tocsin.RLock):
            lock, got = kind(), []

            def wait(lock=lock, got=got):
                with lock:
                    got.append(1)

            with lock:
                threads = support.Threads(1, wait)
                threads.__enter__()
                support.wait_until_parked(lock, 1)
            sys.setswitchinterval(100)
            self.take_again_and_again(lock, lambda got=got: got)
            sys.setswitchinterval(0.005)
            threads.join()


class Events(unittest.TestCase):
    def test_set_then_clear_releases_everyone_who_waited(self):
        event = tocsin.Event()
        with support.Threads(20, lambda: self.assertTrue(event.wait(PATIENCE))) as threads:
            support.wait_until_parked(event, 20)
            event.set()
            event.clear()
            threads.join()

    def test_two_sets_release_two_threads(self):
        event = tocsin.AutoResetEvent()
        with support.Threads(2, lambda: self.assertTrue(event.wait(PATIENCE))) as threads:
            support.wait_until_parked(event, 2)
            event.set()
            event.set()
            threads.join()
        self.assertFalse(event.is_set())

    def test_is_small_and_can_be_referred_to_weakly(self):
        for kind in (tocsin.Event, tocsin.AutoResetEvent, tocsin.Semaphore, tocsin.Lock, tocsin.RLock):
            one = kind()
            self.assertLessEqual(sys.getsizeof(one), 64)
            reference = weakref.ref(one)
            self.assertIs(reference(), one)
            del one
            gc.collect()
            self.assertIsNone(reference())

    def test_set_in_a_destructor_and_in_a_weakref_callback(self):
        event = tocsin.Event()

        class Sets:
            def __del__(self):
                event.set()

        one = Sets()
        one.itself = one
        del one
        gc.collect()
        self.assertTrue(event.is_set())
        event.clear()
        one = tocsin.Lock()
        reference = weakref.ref(one, lambda _: event.set())
        del one
        self.assertTrue(event.is_set())
        del reference

    def test_a_subclass_may_override_set_and_take_arguments(self):
        class Counting(tocsin.Event):
            def __init__(self, name):
                super().__init__()
                self.name = name
                self.sets = 0

            def set(self):
                self.sets += 1
                super().set()

        one = Counting("x")
        one.set()
        self.assertEqual((one.sets, one.is_set(), tocsin.wait_any(one)), (1, True, 0))

    def test_a_trace_function_inside_a_wait(self):
        event = tocsin.Event()

        def trace(frame, what, argument):
            event.is_set()
            event.wait(0)
            return trace

        sys.settrace(trace)
        try:
            self.assertFalse(event.wait(0.01))
        finally:
            sys.settrace(None)

    def test_a_time_out_passes_though_a_test_has_frozen_pythons_clock(self):
        event, items, condition = tocsin.Event(), tocsin.Queue(), tocsin.Condition()
        names = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
        with unittest.mock.patch.multiple(time, **{name: lambda: 1_000_000 for name in names}), condition:
            self.assertFalse(event.wait(0.01))
            self.assertFalse(condition.wait_for(lambda: False, 0.01))
            self.assertIsNone(tocsin.wait_any(event, items, timeout=0.01))
            self.assertRaises(queue.Empty, items.get, timeout=0.01)


class Refusals(unittest.TestCase):
    def test_timeouts(self):
        event = tocsin.Event()
        with self.assertRaisesRegex(ValueError, "nan"):
            event.wait(math.nan)
        with self.assertRaisesRegex(TypeError, "number of seconds or None, not str"):
            event.wait("soon")
        self.assertFalse(event.wait(-3))
        event.set()
        for long in (1e300, math.inf, 10**400):
            self.assertTrue(event.wait(long))
            event.clear()
            with support.Threads(1, lambda long=long: self.assertTrue(event.wait(long))) as threads:
                support.wait_until_parked(event, 1)
                event.set()
                threads.join()
            self.assertGreater(tocsin.monotonic_deadline(long).remaining(), 1e9)
        event.clear()
        for short in (-math.inf, -10**400):
            self.assertFalse(event.wait(short))
        with self.assertRaises(TypeError):
            event.wait(1, 2)
        with self.assertRaisesRegex(TypeError, "no argument 'seconds'"):
            event.wait(seconds=1)
        with self.assertRaisesRegex(TypeError, "was given 'timeout' twice"):
            event.wait(1, timeout=1)
        self.assertRaises(OverflowError, tocsin.Lock().acquire, timeout=1e100)

    def test_a_time_out_is_never_early(self):
        event = tocsin.Event()
        for seconds in (0.001, 0.01, 0.0123456):
            began = time.monotonic()
            self.assertFalse(event.wait(seconds))
            self.assertGreaterEqual(time.monotonic() - began, seconds)

    def test_constructors(self):
        for kind in (tocsin.Event, tocsin.AutoResetEvent, tocsin.Lock, tocsin.RLock):
            self.assertRaises(TypeError, kind, 1)
            self.assertRaises(TypeError, kind, a=1)
        self.assertRaises(ValueError, tocsin.Semaphore, -1)
        self.assertRaises(OverflowError, tocsin.Semaphore, 1 << 40)
        one = tocsin.Semaphore(3)
        self.assertRaises(RuntimeError, one.__init__, 4)
        for wrong in (0, -1, 1 << 30):
            self.assertRaisesRegex(ValueError, "n must be at least 1", one.release, wrong)
        self.assertEqual(one.value, 3)

    def test_what_is_no_source(self):
        for wrong, words in ((queue.Queue(), "use tocsin.Queue"), (queue.SimpleQueue(), "use tocsin.Queue"),
                             (threading.Event(), "use tocsin's"), (threading.Lock(), "use tocsin's"),
                             (1.5, "timeout="), (True, "timeout="), ([], r"wait_any\(\*sources\)"),
                             (None, "no event"), ("text", "no event")):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(TypeError, words):
                tocsin.wait_any(wrong, timeout=0)

    def test_nothing_or_twice(self):
        self.assertRaisesRegex(ValueError, "something to wait for", tocsin.wait_any)
        self.assertRaisesRegex(ValueError, "something to wait for", tocsin.wait_all, timeout=1)
        one = tocsin.Event()
        self.assertIsNone(tocsin.wait_any(one, one, timeout=0))
        with self.assertRaisesRegex(ValueError, "the same"):
            tocsin.wait_all(one, one, timeout=0)
        with self.assertRaises(ValueError):
            tocsin.wait_all(one, 0, timeout=0)
        with self.assertRaisesRegex(TypeError, "not both"):
            tocsin.wait_any(one, timeout=1, deadline=tocsin.monotonic_deadline(1))
        with self.assertRaisesRegex(TypeError, "monotonic_deadline"):
            tocsin.wait_any(one, deadline=3.0)

    def test_closed_descriptors(self):
        ours, theirs = socket.socketpair()
        theirs.close()
        number = ours.fileno()
        ours.close()
        self.assertRaises(ValueError, tocsin.wait_any, ours)
        with self.assertRaises(OSError) as raised:
            tocsin.wait_any(tocsin.Event(), number)
        self.assertIn(str(number), str(raised.exception))

    def test_pickling(self):
        for one in (tocsin.Event(), tocsin.AutoResetEvent(), tocsin.Semaphore(), tocsin.BoundedSemaphore(), tocsin.Lock(),
                    tocsin.RLock(), tocsin.Condition(), tocsin.Barrier(2), tocsin.Queue(), tocsin.WaitSet(),
                    tocsin.monotonic_deadline(1), tocsin.readable(0)):
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with self.subTest(one=one, protocol=protocol), self.assertRaisesRegex(TypeError, "make one in each process"):
                    pickle.dumps(one, protocol)
            with self.subTest(one=one), self.assertRaisesRegex(TypeError, "threads share the object itself"):
                copy.deepcopy(one)

    def test_a_blocking_wait_in_a_coroutine_warns_once(self):
        code = """if True:
            import asyncio, tocsin, warnings
            async def main():
                tocsin.Event().wait(0.001)
                tocsin.Event().wait(0.001)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                asyncio.run(main())
            assert len([w for w in seen if "await" in str(w.message)]) == 1, seen
            """
        subprocess.run([sys.executable, "-c", code], check=True)


class Several(unittest.TestCase):
    def test_the_lowest_index_wins_and_nothing_else_is_taken(self):
        first, second = tocsin.AutoResetEvent(), tocsin.AutoResetEvent()
        second.set()
        self.assertEqual(tocsin.wait_any(first, second), 1)
        first.set()
        second.set()
        self.assertEqual(tocsin.wait_any(first, second), 0)
        self.assertTrue(second.is_set())

    def test_events_semaphores_sockets_and_deadlines_together(self):
        event, permits = tocsin.Event(), tocsin.Semaphore(0)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            def wait(**limits):
                return tocsin.wait_any(event, permits, ours, tocsin.monotonic_deadline(0.02), **limits)
            self.assertEqual(wait(), 3)
            self.assertIsNone(wait(timeout=0.001))
            self.assertEqual(tocsin.wait_any(event, tocsin.writable(ours)), 1)
            theirs.send(b"x")
            self.assertEqual(wait(), 2)
            self.assertEqual(ours.recv(1), b"x")
            for make_ready, index in ((event.set, 0), (permits.release, 1), (lambda: theirs.send(b"y"), 2)):
                for in_main in (True, False):
                    event.clear()
                    found = []

                    def far(index=index):
                        found.append(tocsin.wait_any(event, permits, ours, timeout=PATIENCE))

                    with support.Threads(1, make_ready if in_main else far) as threads:
                        if in_main:
                            far()
                        else:
                            support.wait_until_parked(event, 1)
                            make_ready()
                        threads.join()
                    self.assertEqual(found, [index])
                    if index == 2:
                        ours.recv(1)
        self.assertEqual(permits.value, 0)

    def test_many_sources(self):
        events = [tocsin.Event() for _ in range(200)]
        with support.Threads(1, lambda: (support.wait_until_parked(events[150], 1), events[150].set())) as threads:
            self.assertEqual(tocsin.wait_any(*events), 150)
            threads.join()

    def test_two_threads_answer_each_other_through_many_events(self):
        # A wait for more than eight looks before it is queued, in the main thread, too. It sees an answer in time if
        # the other thread has a processor of its own.
        there, back = ([tocsin.AutoResetEvent() for _ in range(20)] for _ in range(2))
        rounds = 5000
        processors = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []

        def bind(which):
            if len(processors) > 1:
                os.sched_setaffinity(0, {processors[which]})  # this thread alone

        def answer():
            bind(1)
            for i in range(rounds):
                self.assertEqual(tocsin.wait_any(*there, timeout=PATIENCE), i % 20)
                back[-1 - i % 20].set()

        with support.Threads(1, answer) as threads:
            if processors:
                self.addCleanup(os.sched_setaffinity, 0, processors)
            bind(0)
            for i in range(rounds):
                there[i % 20].set()
                self.assertEqual(tocsin.wait_any(*back, timeout=PATIENCE), 19 - i % 20)
            threads.join()
        self.assertFalse(any(each.is_set() for each in there + back))

    def test_wait_all_takes_all_or_nothing(self):
        a, b = tocsin.AutoResetEvent(), tocsin.Semaphore(0)
        for in_main in (True, False):
            a.set()
            self.assertFalse(tocsin.wait_all(a, b, timeout=0.001))
            self.assertTrue(a.is_set())

            def far():
                self.assertTrue(tocsin.wait_all(a, b, timeout=PATIENCE))

            def near():
                support.wait_until_parked(b, 1)
                b.release()

            with support.Threads(1, near if in_main else far) as threads:
                (far if in_main else near)()
                threads.join()
            self.assertEqual((a.is_set(), b.value), (False, 0))

    def test_threads_and_processes(self):
        go = tocsin.Event()
        thread = threading.Thread(target=go.wait)
        with self.assertRaisesRegex(RuntimeError, "started"):
            tocsin.wait_any(thread)
        with self.assertRaisesRegex(RuntimeError, "current"):
            tocsin.wait_any(threading.current_thread())
        thread.start()
        self.assertIsNone(tocsin.wait_any(thread, timeout=0.01))
        go.set()
        self.assertEqual(tocsin.wait_any(thread, timeout=PATIENCE), 0)
        thread.join()
        self.assertEqual(tocsin.wait_any(thread, timeout=PATIENCE), 0)
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
        self.assertIsNone(tocsin.wait_any(child, timeout=0.01))
        child.stdin.close()
        self.assertEqual(tocsin.wait_any(tocsin.Event(), child, timeout=PATIENCE), 1)
        child.wait()
        self.assertEqual(tocsin.wait_any(child), 0)

    def test_a_process_has_ended_though_its_child_has_its_pipe_open(self):
        command = [sys.executable, "-c", "import subprocess; subprocess.run(['cat'])"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            child.stdin.write(b"x")
            child.stdin.flush()
            self.assertEqual(child.stdout.read(1), b"x")
            child.kill()
            self.assertEqual(tocsin.wait_any(child, timeout=PATIENCE), 0)
            child.stdin.write(b"y")
            child.stdin.close()
            self.assertEqual(child.stdout.read(), b"y")


class Conditions(unittest.TestCase):
    def test_a_notification_that_meets_a_time_out_is_not_lost(self):
        for seconds in (0.01, 0.1, 1, 10):  # again if the thread's time passed before this one had the lock
            lock = tocsin.RLock()
            condition = tocsin.Condition(lock)
            results = []

            def wait(condition=condition, seconds=seconds, results=results):
                with condition:
                    results.append(condition.wait(seconds))

            with support.Threads(1, wait) as threads:
                support.wait_for(lambda: condition._waiters or results)
                with condition:
                    if waits := bool(condition._waiters):
                        support.wait_until_parked(lock, 1)  # its time has passed, and it is still on the list
                        condition.notify()
                threads.join()
            if waits:
                return self.assertEqual(results, [True])
        self.fail("a thread that waits ten seconds was never found waiting")

    def test_a_wait_without_the_lock_is_refused_and_leaves_nobody_behind(self):
        for lock in (None, tocsin.Lock(), threading.RLock()):
            condition = tocsin.Condition(lock)
            self.assertRaisesRegex(RuntimeError, "cannot wait on un-acquired lock", condition.wait, 0.001)
            self.assertIn(", 0)>", repr(condition))

    def test_over_a_plain_lock_and_over_a_foreign_one(self):
        for lock in (tocsin.Lock(), threading.Lock(), threading.RLock()):
            condition = tocsin.Condition(lock)
            ready = []

            def wait():
                with condition:
                    self.assertTrue(condition.wait_for(lambda: ready, PATIENCE))

            with support.Threads(5, wait) as threads:
                with condition:
                    ready.append(1)
                    condition.notify_all()
                threads.join()


class Locks(unittest.TestCase):
    def test_many_threads(self):
        for kind in (tocsin.Lock, tocsin.RLock, tocsin.Semaphore):
            lock, count = kind(), [0]

            def work():
                for _ in range(2000):
                    with lock:
                        seen = count[0]
                        count[0] = seen + 1
                    if lock.acquire(timeout=0.0001):
                        lock.release()

            with support.Threads(4, work) as threads:
                threads.join()
            self.assertEqual(count[0], 8000)
            self.assertTrue(lock.acquire(False))


if __name__ == "__main__":
    unittest.main()

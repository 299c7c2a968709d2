# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and other signals in waits of the main thread; waits at a fork and at the interpreter's end."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import support
import tocsin
from support import PATIENCE

ME = threading.get_ident()


def every_blocking_wait():
    """(name, a wait that would last an hour, what checks that it has taken nothing and left nobody behind)"""
    event, auto, permits, taken = tocsin.Event(), tocsin.AutoResetEvent(), tocsin.Semaphore(0), tocsin.Lock()
    taken.acquire()
    full, condition, waits = tocsin.Queue(1), tocsin.Condition(), tocsin.WaitSet()
    full.put(1)
    waits.add(event)
    reading, writing = os.pipe()
    hour = {"timeout": 3600}

    def wait_condition():
        with condition:
            condition.wait(**hour)

    yield "Event", lambda: event.wait(**hour), event
    yield "AutoResetEvent", lambda: auto.wait(), auto
    yield "Semaphore", lambda: permits.acquire(), permits
    yield "Lock", lambda: taken.acquire(**hour), taken
    yield "Condition", wait_condition, None
    yield "Queue.get", lambda: tocsin.Queue().get(**hour), None
    yield "Queue.put", lambda: full.put(2), full
    yield "wait_any", lambda: tocsin.wait_any(event, auto, **hour), auto
    yield "wait_any with a descriptor", lambda: tocsin.wait_any(event, auto, reading, **hour), auto
    yield "wait_any of a descriptor", lambda: tocsin.wait_any(reading), None
    yield "wait_all", lambda: tocsin.wait_all(event, auto, **hour), auto
    yield "WaitSet", lambda: waits.wait(**hour), None
    os.close(reading)
    os.close(writing)


@contextlib.contextmanager
def wakeup_descriptor():
    """The reading end of a pipe that has the slot of signal.set_wakeup_fd(), and has it again at the end."""
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    former = signal.set_wakeup_fd(writing)
    try:
        yield reading
        if signal.set_wakeup_fd(writing) != writing:
            raise AssertionError("the slot was not restored")
    finally:
        signal.set_wakeup_fd(former)
        os.close(reading)
        os.close(writing)


class Signals(unittest.TestCase):
    def setUp(self):
        self.former = signal.signal(signal.SIGUSR1, lambda *_: None)

    def tearDown(self):
        signal.signal(signal.SIGUSR1, self.former)

    def test_an_exception_of_a_handler_ends_every_wait(self):
        class Stop(Exception):
            pass

        def handler(*_):
            raise Stop

        signal.signal(signal.SIGUSR1, handler)
        for name, wait, left in every_blocking_wait():
            for delay in (0, 0.002):
                with self.subTest(name=name, delay=delay):
                    # There is no fact to wait for: both the first microseconds of the sleep and later moments count.
                    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGUSR1))
                    with self.assertRaises(Stop):
                        timer.start()
                        wait()
                    timer.join()
                    if left is not None:
                        self.assertEqual(tocsin.waiting_on(left), 0)

    def test_a_signal_that_another_thread_gets_ends_the_wait(self):
        seen = []

        def handler(*_):
            seen.append(threading.get_ident())
            if len(seen) == 2:  # after the first one, the wait is in its second sleep
                raise KeyboardInterrupt

        signal.signal(signal.SIGUSR1, handler)
        event = tocsin.Event()

        def kill_myself():
            support.wait_until_parked(event, 1)
            for number in (1, 2):
                signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
                support.wait_for(lambda: len(seen) == number)

        with support.Threads(1, kill_myself) as threads:
            self.assertRaises(KeyboardInterrupt, event.wait, PATIENCE)
            threads.join()
        self.assertEqual(seen, [ME, ME])

    def test_a_handler_that_returns_keeps_place_and_deadline(self):
        first, event = [], tocsin.AutoResetEvent()
        inside, go_on = tocsin.Event(), tocsin.Event()

        def handler(*_):
            inside.set()
            go_on.wait(PATIENCE)

        signal.signal(signal.SIGUSR1, handler)

        def interrupt():
            support.wait_until_parked(event, 1)
            os.kill(os.getpid(), signal.SIGUSR1)
            inside.wait(PATIENCE)
            with support.Threads(1, lambda: (event.wait(PATIENCE), first.append("other"))) as other:
                support.wait_until_parked(event, 2)
                event.set()  # while the handler runs: the main thread is still first
                support.wait_until_parked(event, 1)
                self.assertEqual(first, [])
                go_on.set()
                support.wait_for(lambda: first == ["main"])
                event.set()
                other.join()

        with support.Threads(1, interrupt) as threads:
            self.assertTrue(event.wait(PATIENCE))
            first.append("main")
            threads.join()
        self.assertEqual(first, ["main", "other"])

    def test_set_then_clear_during_a_handler_releases_the_wait(self):
        event = tocsin.Event()
        signal.signal(signal.SIGUSR1, lambda *_: (event.set(), event.clear()))
        with support.signal_once_parked(event) as threads:
            self.assertTrue(event.wait(PATIENCE))
            threads.join()
        self.assertFalse(event.is_set())

    def test_set_in_a_handler_that_interrupts_sets(self):
        event, left = tocsin.Event(), [2000]

        def handler(*_):
            left[0] -= 1
            event.set()
            event.clear()

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
        try:
            while left[0] > 0:
                event.set()
                event.clear()
                event.wait(0.00001)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def test_a_token_that_was_handed_over_is_given_back(self):
        class Stop(Exception):
            pass

        token, permits = tocsin.AutoResetEvent(), tocsin.Semaphore(0)
        for one, give, wait, count in ((token, token.set, lambda: token.wait(PATIENCE), lambda: token.wait(0)),
                                       (permits, permits.release, lambda: permits.acquire(timeout=PATIENCE),
                                        lambda: permits.acquire(False))):
            def handler(*_, give=give):
                give()
                raise Stop

            signal.signal(signal.SIGUSR1, handler)
            with support.signal_once_parked(one) as threads:
                self.assertRaises(Stop, wait)
                threads.join()
            self.assertTrue(count())
            self.assertFalse(count())

    def test_a_notification_of_a_wait_that_an_exception_ends_goes_to_the_next(self):
        class Stop(Exception):
            pass

        condition, results = tocsin.Condition(), []

        def handler(*_):
            with condition:
                condition.notify()  # the main thread, which has waited longest
            raise Stop

        def wait_second():
            support.wait_for(lambda: condition._waiters)
            with condition:
                results.append(condition.wait(PATIENCE))

        def interrupt():
            support.wait_for(lambda: len(condition._waiters) == 2)
            support.wait_until_parked(condition._waiters[0], 1)
            os.kill(os.getpid(), signal.SIGUSR1)

        signal.signal(signal.SIGUSR1, handler)
        with support.Threads(1, wait_second) as others, support.Threads(1, interrupt) as threads:
            with condition:
                self.assertRaises(Stop, condition.wait, PATIENCE)
            threads.join()
            others.join()
        self.assertEqual(results, [True])

    def test_a_token_that_comes_when_the_time_has_passed_is_taken_or_left(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        for kind, give in ((tocsin.AutoResetEvent, "set"), (tocsin.Semaphore, "release")):
            one = kind()
            if kind is tocsin.Semaphore:
                one.acquire()
            for wait in (tocsin.wait_any, tocsin.wait_all):
                with self.subTest(kind=kind.__name__, wait=wait.__name__):
                    end = tocsin.monotonic_deadline(0.05)

                    def give_late():
                        # This thread keeps the interpreter's lock, for which the main thread waits when its time has
                        # passed. There is no fact that says when it does; too early proves nothing, and fails nothing.
                        support.wait_for(lambda: tocsin.waiting_on(one) or end.passed())
                        sys.setswitchinterval(100)
                        late = time.monotonic() + end.remaining() + 0.02
                        while time.monotonic() < late:
                            pass
                        getattr(one, give)()
                        sys.setswitchinterval(0.005)

                    with support.Threads(1, give_late) as threads:
                        found = wait(one, deadline=end)
                        threads.join()
                    is_taken = found is not None and found is not False
                    self.assertEqual(tocsin.wait_any(one, timeout=0) is None, is_taken)

    def test_signals_still_reach_the_wakeup_descriptor_of_others(self):
        event, seen = tocsin.Event(), []

        def handler(*_):
            seen.append(0)
            if len(seen) == 2:
                event.set()

        def interrupt():
            support.wait_until_parked(event, 1)
            os.kill(os.getpid(), signal.SIGUSR1)
            support.wait_for(lambda: seen)  # then the wait is in its second sleep, or in the look before it
            os.kill(os.getpid(), signal.SIGUSR1)

        signal.signal(signal.SIGUSR1, handler)
        with wakeup_descriptor() as reading:
            with support.Threads(1, interrupt) as threads:
                self.assertTrue(event.wait(PATIENCE))
                threads.join()
            self.assertEqual(os.read(reading, 10), bytes([signal.SIGUSR1] * 2))

    def test_a_signal_during_a_handler_that_ends_the_wait_reaches_the_wakeup_descriptor(self):
        event, calls = tocsin.Event(), []

        def handler(*_):
            calls.append(0)
            if len(calls) == 1:
                os.kill(os.getpid(), signal.SIGUSR1)  # while the wait has its pipe in the slot
            else:
                event.set()

        signal.signal(signal.SIGUSR1, handler)
        with wakeup_descriptor() as reading:
            with support.signal_once_parked(event) as threads:
                self.assertTrue(event.wait(PATIENCE))
                threads.join()
            self.assertEqual(os.read(reading, 10), bytes([signal.SIGUSR1] * 2))

    def test_a_handler_that_waits_leaves_the_wakeup_descriptor(self):
        calls, arrived, inner, outer = [], bytearray(), tocsin.Event(), tocsin.Event()

        def has_arrived(number):
            with contextlib.suppress(BlockingIOError):
                arrived.extend(os.read(reading, 10))
            return arrived == bytes([signal.SIGUSR1] * number)

        def interrupt_inner():
            support.wait_until_parked(inner, 1)
            os.kill(os.getpid(), signal.SIGUSR1)
            support.wait_for(lambda: has_arrived(2))  # although neither wait has ended
            os.kill(os.getpid(), signal.SIGUSR1)

        def handler(*_):
            calls.append(0)
            if len(calls) == 1:
                with support.Threads(1, interrupt_inner) as threads:
                    calls.append(inner.wait(PATIENCE))
                    threads.join()
                outer.set()
            elif len(calls) == 3:
                inner.set()

        signal.signal(signal.SIGUSR1, handler)
        with wakeup_descriptor() as reading:
            with support.signal_once_parked(outer) as threads:
                self.assertTrue(outer.wait(PATIENCE))
                threads.join()
            self.assertEqual(calls, [0, 0, 0, True])
            support.wait_for(lambda: has_arrived(3))

    @unittest.skipUnless(support.FORKS_WITH_THREADS, "ThreadSanitizer: see support.py")
    def test_a_signal_of_a_child_leaves_the_parent_alone(self):
        self.assertFalse(tocsin.Event().wait(0.001))  # long enough for a pipe
        child = os.fork()
        if child == 0:
            calls = []

            def handler(*_):
                calls.append(0)
                if len(calls) == 2:
                    os._exit(5)
                os.kill(os.getpid(), signal.SIGUSR1)  # its byte stays in the child's pipe

            signal.signal(signal.SIGUSR1, handler)
            event = tocsin.Event()
            with support.signal_once_parked(event):
                event.wait(PATIENCE)
            os._exit(6)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 5)
        with wakeup_descriptor() as reading:
            self.assertFalse(tocsin.Event().wait(0.001))
            self.assertRaises(BlockingIOError, os.read, reading, 1)

    def test_other_threads_sleep_on(self):
        event = tocsin.Event()
        with support.Threads(1, lambda: self.assertTrue(event.wait(PATIENCE))) as threads:
            support.wait_until_parked(event, 1)
            for _ in range(5):
                signal.pthread_kill(threads._all[0].ident, signal.SIGUSR1)
            event.set()
            threads.join()


def run(code, **more):
    return subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], timeout=PATIENCE, capture_output=True,
                          text=True, **more)


class Ends(unittest.TestCase):
    def test_ctrl_c_ends_a_program(self):
        code = """if True:
            import os, signal, threading, tocsin
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for programs in the background
            event = tocsin.Event()
            def interrupt():
                while tocsin.waiting_on(event) == 0:
                    pass
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=interrupt, daemon=True).start()
            event.wait()
            """
        done = run(code)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("KeyboardInterrupt", done.stderr)

    def test_daemon_threads_at_the_end(self):
        code = """if True:
            import threading, time, tocsin
            event, token, queue, lock = tocsin.Event(), tocsin.AutoResetEvent(), tocsin.Queue(), tocsin.Lock()
            lock.acquire()
            waits = [event.wait, token.wait, queue.get, lock.acquire, lambda: tocsin.wait_any(event, token),
                     lambda: event.wait(0.01), lambda: tocsin.wait_all(event, token, timeout=0.01)]
            class Late:
                def __del__(self, sleep=time.sleep):
                    event.set(); token.set(); lock.release()
                    # The interpreter's lock is free meanwhile. There is no fact to wait for: they end, or stay.
                    sleep(0.01)
            def loop(wait):
                while True:
                    wait()
            for wait in waits:
                threading.Thread(target=loop, args=(wait,), daemon=True).start()
            while len({wait["thread"] for wait in tocsin.parked_waits()}) < len(waits):
                tocsin.wait_any(tocsin.Event(), timeout=0.001)
            late = Late()
            late.itself = late
            """
        for _ in range(3):
            done = run(code)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    @unittest.skipUnless(support.FORKS_WITH_THREADS, "ThreadSanitizer: see support.py")
    def test_fork_with_waiting_threads(self):
        code = """if True:
            import os, signal, threading, tocsin, warnings
            warnings.simplefilter("ignore")
            event, lock, permits = tocsin.Event(), tocsin.Lock(), tocsin.Semaphore(0)
            lock.acquire()
            for wait in (event.wait, lock.acquire, permits.acquire, lambda: tocsin.wait_any(event, permits)):
                threading.Thread(target=wait, daemon=True).start()
            while tocsin.waiting_on(event) < 2 or tocsin.waiting_on(permits) < 2:
                pass
            child = os.fork()
            if child == 0:
                assert not event.wait(0.01)
                signal.signal(signal.SIGALRM, lambda *_: event.set())
                signal.setitimer(signal.ITIMER_REAL, 0.01)
                assert event.wait(30)
                threading.Thread(target=permits.release).start()
                assert tocsin.wait_any(permits, timeout=30) == 0
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            # In a handler, and from another thread than the main one.
            def handler(*_):
                global inner
                inner = os.fork()
            signal.signal(signal.SIGUSR1, handler)
            mine = tocsin.Event()
            def interrupt():
                while tocsin.waiting_on(mine) == 0:
                    pass
                os.kill(os.getpid(), signal.SIGUSR1)
            threading.Thread(target=interrupt).start()
            here, inner, woke = os.getpid(), None, False
            while inner is None:
                woke = mine.wait(0.2)
            if os.getpid() != here:
                os._exit(0 if not woke else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) == 0
            def fork_here():
                child = os.fork()
                if child == 0:  # this thread is its main one, which runs its handlers
                    handled = tocsin.Event()
                    signal.signal(signal.SIGALRM, lambda *_: handled.set())
                    signal.setitimer(signal.ITIMER_REAL, 0.01)
                    os._exit(3 if handled.wait(30) else 4)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
                event.set()
            thread = threading.Thread(target=fork_here)
            thread.start()
            assert event.wait(30)
            thread.join()
            """
        done = run(code)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_two_interpreters(self):
        code = """if True:
            import signal, sys, tocsin
            try:
                import _interpreters as interpreters
                make, run = interpreters.create, interpreters.exec
            except ImportError:
                import _xxsubinterpreters as interpreters
                make, run = interpreters.create, interpreters.run_string
            for _ in range(2):
                one = make()
                failed = run(one, "import tocsin; e = tocsin.Event(); e.set(); assert tocsin.wait_any(e) == 0; "
                             "assert not tocsin.Event().wait(0.001); q = tocsin.Queue(); q.put(1); q.get()")
                assert failed is None, failed
                interpreters.destroy(one)
            # Signals still end the waits of the main interpreter.
            event = tocsin.Event()
            signal.signal(signal.SIGALRM, lambda *_: event.set())
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            assert event.wait(30)
            """
        done = run(code)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()

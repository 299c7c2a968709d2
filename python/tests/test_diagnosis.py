# SPDX-License-Identifier: Apache-2.0
"""Lists of waits, signals as sources, patch_threading(), and what an import costs."""

import json
import os
import signal
import subprocess
import sys
import threading
import unittest

import support
import tocsin
from support import PATIENCE


class Lists(unittest.TestCase):
    def test_show_who_waits_on_what_and_where(self):
        event, lock = tocsin.Event(), tocsin.Lock()
        lock.acquire()
        tocsin.name(event, "shutdown")

        def waits_for_shutdown():
            event.wait(PATIENCE)

        with support.Threads(1, waits_for_shutdown) as threads, support.Threads(1, lock.acquire) as others:
            support.wait_until_parked(event, 1)
            support.wait_until_parked(lock, 1)
            row = next(row for row in tocsin.parked_waits() if row["name"] == "shutdown")
            self.assertEqual((row["type"], row["python"], row["thread"]),
                             ("event", threads._all[0].name, threads._all[0].native_id))
            self.assertIn("in waits_for_shutdown", row["stack"][-1])
            text = tocsin.describe_parked_waits()
            self.assertIn("'shutdown': thread", text)
            self.assertIn("in waits_for_shutdown", text)
            rows = json.loads(tocsin.parked_waits_as_json())["parked_waits"]
            self.assertGreaterEqual(len(rows), 2)
            event.set()
            lock.release()
            threads.join()
            others.join()
        tocsin.name(event, "")
        self.assertEqual(tocsin.waiting_on(event), 0)
        self.assertRaises(TypeError, tocsin.waiting_on, tocsin.readable(0))

    def test_show_who_waits_for_what_processes_share(self):
        for kind in (tocsin.SharedEvent, tocsin.SharedAutoResetEvent, lambda: tocsin.SharedSemaphore(0)):
            with self.subTest(kind=kind):
                source = kind()
                wait = source.acquire if isinstance(source, tocsin.SharedSemaphore) else source.wait
                wake = source.release if isinstance(source, tocsin.SharedSemaphore) else source.set
                self.check_shared(source, wait, wake)
                self.check_shared(source, lambda: tocsin.wait_any(tocsin.Event(), source), wake)
        lock = tocsin.SharedLock()
        lock.acquire()

        def waits_for_the_lock():
            with lock:
                pass

        self.check_shared(lock, waits_for_the_lock, lock.release)
        self.assertRaises(RuntimeError, tocsin.waiting_on, tocsin.SharedEvent.__new__(tocsin.SharedEvent))

    def check_shared(self, source, wait, wake):
        tocsin.name(source, "between processes")
        self.assertEqual(tocsin.waiting_on(source), 0)

        def waits_here():
            wait()

        with support.Threads(1, waits_here) as threads:
            support.wait_until_parked(source, 1)
            row = next(row for row in tocsin.parked_waits() if row["name"] == "between processes")
            self.assertRegex(row["type"], "shared_[a-z_]+$")
            self.assertEqual(row["python"], threads._all[0].name)
            self.assertTrue(any("in waits_here" in line for line in row["stack"]), row["stack"])
            self.assertRegex(tocsin.describe_parked_waits(),
                             r"shared_\w+ 0x[0-9a-f]+ 'between processes': thread \d+ '[^\n]*\n(    .*\n)*.*waits_here")
            wake()
            threads.join()
        self.assertEqual(tocsin.waiting_on(source), 0)
        tocsin.name(source, "")
        if isinstance(source, tocsin.SharedEvent):
            source.clear()


class Signals(unittest.TestCase):
    def test_as_sources_in_any_thread(self):
        with tocsin.Signal(signal.SIGUSR2) as arrived:
            found = []

            def wait():
                found.append(tocsin.wait_any(tocsin.Event(), arrived, timeout=PATIENCE))

            with support.Threads(1, wait) as threads:
                os.kill(os.getpid(), signal.SIGUSR2)
                threads.join()
            self.assertEqual(found, [1])
            self.assertTrue(arrived.take())
            self.assertFalse(arrived.take())
        self.assertRaises(ValueError, arrived.fileno)
        self.assertRaises(ValueError, tocsin.Signal, 100000)
        self.assertRaises(TypeError, tocsin.Signal, "SIGTERM")


class Types(unittest.TestCase):
    def test_that_only_functions_make(self):
        for kind in (tocsin.Ready, tocsin.Deadline):
            self.assertRaises(TypeError, kind)

    def test_deadlines(self):
        later, now = tocsin.monotonic_deadline(100), tocsin.monotonic_deadline(-1)
        self.assertTrue(99 < later.remaining() <= 100 and not later.passed())
        self.assertTrue(now.remaining() == 0 and now.passed())
        self.assertRaises(ValueError, tocsin.monotonic_deadline, float("nan"))
        self.assertRaises(TypeError, tocsin.monotonic_deadline, "x")
        self.assertFalse(tocsin.monotonic_deadline(1e300).passed())


class Patching(unittest.TestCase):
    def test_replaces_only_what_is_asked_for(self):
        code = """if True:
            import threading, tocsin
            lock = threading.Lock
            assert threading.Event is not tocsin.Event
            tocsin.patch_threading("Event", "Condition")
            assert threading.Event is tocsin.Event and threading.Lock is lock
            tocsin.patch_threading()
            assert threading.Lock is tocsin.Lock
            thread = threading.Thread(target=print, args=("ran",)); thread.start(); thread.join()
            try: tocsin.patch_threading("Thread")
            except ValueError as error: assert "Semaphore" in str(error)
            else: raise AssertionError
            """
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "ran\n")

    def test_an_import_brings_little_with_it(self):
        code = """if True:
            import sys, threading, queue
            before = set(sys.modules)
            import tocsin
            more = {name for name in set(sys.modules) - before if not name.startswith("tocsin")}
            assert not more & {"asyncio", "json", "subprocess", "multiprocessing", "typing", "signal"}, more
            """
        subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    unittest.main()

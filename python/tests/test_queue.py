# SPDX-License-Identifier: Apache-2.0
"""tocsin.Queue and tocsin.WaitSet."""

import gc
import os
import queue
import socket
import subprocess
import sys
import threading
import unittest
import weakref

import support
import tocsin
from support import PATIENCE


class Queues(unittest.TestCase):
    def test_order_bounds_and_errors(self):
        one = tocsin.Queue(2)
        one.put(1)
        one.put(2, timeout=1)
        self.assertTrue(one.full())
        self.assertRaises(queue.Full, one.put_nowait, 3)
        self.assertRaises(queue.Full, one.put, 3, timeout=0.001)
        self.assertRaises(ValueError, one.put, 3, timeout=-1)
        self.assertEqual((one.get(), one.get(timeout=1), one.qsize(), one.maxsize), (1, 2, 0, 2))
        self.assertRaises(queue.Empty, one.get_nowait)
        self.assertRaises(queue.Empty, one.get, True, 0.001)
        self.assertRaises(TypeError, one.put)
        self.assertRaises(TypeError, one.put, 1, timeout="x")
        self.assertRaises(ValueError, one.put, 1, timeout=float("nan"))
        self.assertRaises(OverflowError, tocsin.Queue, 1 << 40)
        self.assertRaises(RuntimeError, one.__init__, 3)
        self.assertEqual(one.maxsize, 2)
        self.assertIn("0 items", repr(one))

    def test_an_item_that_was_accepted_before_close_is_got(self):
        accepted = [0]
        for _ in range(200):
            one, got = tocsin.Queue(), []

            def put(one=one):
                try:
                    one.put(1)
                except tocsin.QueueClosed:
                    return
                accepted[0] += 1

            accepted[0] = 0
            with support.Threads(1, lambda: got.extend(one)) as consumer:
                support.wait_for(tocsin.parked_waits)
                with support.Threads(1, put) as producer:
                    support.wait_for(lambda: one.qsize() != 0 or got)
                    one.close()
                    producer.join()
                consumer.join()
            self.assertEqual(len(got), accepted[0])

    def test_close_ends_everybody_who_waits(self):
        for name in ("get", "put"):
            one = tocsin.Queue(1)
            if name == "put":
                one.put(1)
            arguments = [2] if name == "put" else []
            results = []

            def run(one=one, name=name, arguments=arguments):
                try:
                    getattr(one, name)(*arguments)
                except tocsin.QueueClosed:
                    results.append("closed")

            with support.Threads(3, run) as threads:
                support.wait_for(lambda: len([t for t in threads._all if t.is_alive()]) == 3)
                one.close()
                threads.join()
            self.assertEqual(results, ["closed"] * 3)

    def test_what_is_left_can_be_got(self):
        one = tocsin.Queue()
        for i in range(3):
            one.put(i)
        one.close()
        one.close()
        self.assertRaises(tocsin.QueueClosed, one.put, 3)
        self.assertEqual(tocsin.wait_any(one), 0)
        self.assertEqual(list(one), [0, 1, 2])
        self.assertRaises(tocsin.QueueClosed, one.get)
        self.assertEqual(tocsin.wait_any(one), 0)
        self.assertTrue(one.closed)
        if hasattr(queue, "ShutDown"):
            self.assertRaises(queue.ShutDown, one.get)
        two = tocsin.Queue()
        two.put(1)
        two.shutdown(immediate=True)
        self.assertRaises(tocsin.QueueClosed, two.get)
        two.join()

    def test_join_waits_for_tasks(self):
        one = tocsin.Queue()
        for i in range(50):
            one.put(i)

        def work():
            for _ in one:
                one.task_done()

        with support.Threads(3, work) as threads:
            one.join()
            self.assertRaises(ValueError, one.task_done)
            one.close()
            threads.join()

    def test_many_producers_and_consumers_lose_nothing(self):
        for bound in (0, 3):
            one, got = tocsin.Queue(bound), []

            def produce():
                for i in range(500):
                    one.put(i)

            def consume():
                for item in one:
                    got.append(item)

            def look():
                while True:
                    tocsin.wait_any(one)
                    try:
                        got.append(one.get_nowait())
                    except queue.Empty:
                        pass
                    except tocsin.QueueClosed:
                        return

            with support.Threads(2, consume) as consumers, support.Threads(1, look) as lookers:
                with support.Threads(3, produce) as producers:
                    producers.join()
                one.close()
                consumers.join()
                lookers.join()
            self.assertEqual(sorted(got), sorted(list(range(500)) * 3))

    def test_keeps_its_items_alive_and_lets_them_go(self):
        class Item:
            pass

        one = tocsin.Queue()
        item = Item()
        item.queue = one  # a cycle through the queue
        gone = weakref.ref(item)
        one.put(item)
        del item
        gc.collect()
        self.assertIsNotNone(gone())
        del one
        gc.collect()
        self.assertIsNone(gone())


class WaitSets(unittest.TestCase):
    def test_reports_what_is_ready(self):
        event, token, permits, jobs = tocsin.Event(), tocsin.AutoResetEvent(), tocsin.Semaphore(0), tocsin.Queue()
        ours, theirs = socket.socketpair()
        one = tocsin.WaitSet()
        self.assertRaises(ValueError, one.wait)
        for source, data in ((event, "event"), (token, "token"), (permits, "permits"), (jobs, "jobs"), (ours, "ours")):
            one.add(source, data)
        with ours, theirs:
            self.assertEqual(one.wait(timeout=0.001), [])
            self.assertEqual(one.wait(0), [])
            self.assertEqual(one.wait(deadline=tocsin.monotonic_deadline(0.001)), [])
            token.set()
            permits.release()
            self.assertEqual(sorted(one.wait()), ["permits", "token"])
            self.assertEqual((token.is_set(), permits.value), (False, 0))
            jobs.put(1)
            self.assertEqual(one.wait(), ["jobs"])
            jobs.get()
            with support.Threads(1, lambda: theirs.send(b"x")) as threads:
                self.assertEqual(one.wait(timeout=PATIENCE), ["ours"])
                threads.join()
            self.assertIn(ours, one)
            one.remove(ours)
            self.assertNotIn(ours, one)
            self.assertEqual(len(one), 4)
            self.assertEqual(one.wait(timeout=0.001), [])
            self.assertRaises(KeyError, one.remove, ours)
            self.assertRaises(ValueError, one.add, event)
            self.assertRaises(TypeError, one.add, 1.5)
            self.assertRaises(TypeError, one.add, tocsin.monotonic_deadline(1))
            self.assertRaises(TypeError, one.add)

    def test_in_another_thread_and_with_members_that_come_and_go(self):
        first, second, one = tocsin.AutoResetEvent(), tocsin.AutoResetEvent(), tocsin.WaitSet()
        one.add(first)
        seen = []
        with support.Threads(1, lambda: seen.extend(one.wait(PATIENCE))) as threads:
            support.wait_until_parked(first, 0)
            one.add(second)
            second.set()
            threads.join()
        self.assertEqual(seen, [second])
        one.remove(first)
        first.set()
        self.assertEqual(one.wait(0), [])
        self.assertTrue(first.is_set())

    def test_a_member_that_is_removed_and_added_while_it_is_removed(self):
        one, ends = tocsin.WaitSet(), socket.socketpair()

        class Restless:
            is_calm = True

            def fileno(self):
                if not self.is_calm:
                    self.is_calm = True
                    one.remove(self)
                    one.add(self)
                return ends[0].fileno()

        with ends[0], ends[1]:
            member = Restless()
            one.add(member)
            member.is_calm = False
            self.assertRaisesRegex(KeyError, "has removed", one.remove, member)
            self.assertEqual(len(one), 1)
            one.remove(member)
            self.assertEqual(len(one), 0)

    def test_keeps_members_alive_and_takes_threads_and_processes(self):
        one, event = tocsin.WaitSet(), tocsin.Event()
        gone = weakref.ref(event)
        one.add(event, "event")
        del event
        gc.collect()
        self.assertIsNotNone(gone())
        thread = threading.Thread(target=lambda: None)
        thread.start()
        child = subprocess.Popen([sys.executable, "-c", ""])
        one.add(thread, "thread")
        one.add(child, "child")
        seen = set()
        while seen != {"thread", "child"}:
            seen.update(one.wait(PATIENCE))
        thread.join()
        child.wait()
        one.remove(thread)
        one.remove(child)
        del one
        gc.collect()
        self.assertIsNone(gone())

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_belongs_to_the_parent_of_a_fork(self):
        one, event = tocsin.WaitSet(), tocsin.Event()
        one.add(event)
        child = os.fork()
        if child == 0:
            try:
                one.wait(0)
            except RuntimeError:
                os._exit(5)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 5)


if __name__ == "__main__":
    unittest.main()

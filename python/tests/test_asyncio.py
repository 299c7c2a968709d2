# SPDX-License-Identifier: Apache-2.0
"""Waits of coroutines: results, cancelling, many of them, and what they cost."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import tracemalloc
import unittest

import support
import tocsin
from support import PATIENCE
from tocsin import _asyncio, _core


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


class Coroutines(unittest.TestCase):
    def test_await_an_event_that_a_thread_sets(self):
        async def main():
            event, token, permits = tocsin.Event(), tocsin.AutoResetEvent(), tocsin.Semaphore(0)
            for source, give in ((event, event.set), (token, token.set), (permits, permits.release)):
                def far(source=source, give=give):
                    support.wait_until_parked(source, 1)
                    give()
                with support.Threads(1, far) as threads:
                    self.assertIs(await source, True)
                    threads.join()
            self.assertFalse(token.is_set())
            self.assertEqual(permits.value, 0)
            self.assertIs(await event, True)
        run(main())

    def test_await_outside_a_loop_is_refused_and_takes_nothing(self):
        event = tocsin.AutoResetEvent()
        event.set()
        with self.assertRaisesRegex(RuntimeError, "no running event loop"):
            event.__await__().send(None)
        self.assertTrue(event.wait(0))

    def test_any_all_and_time(self):
        async def main():
            a, b = tocsin.AutoResetEvent(), tocsin.Semaphore(0)
            ours, theirs = socket.socketpair()
            with ours, theirs:
                self.assertIsNone(await tocsin.wait_async(a, b, timeout=0.01))
                self.assertIsNone(await tocsin.wait_async(a, b, timeout=0))
                b.release()
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(tocsin.wait_async(a, b), 0)
                self.assertEqual(await tocsin.wait_async(a, b, timeout=0), 1)
                self.assertIsNone(await tocsin.wait_async(a, deadline=tocsin.monotonic_deadline(0.01)))
                asyncio.get_running_loop().call_later(0.01, b.release)
                self.assertEqual(await tocsin.wait_async(a, b, ours), 1)
                asyncio.get_running_loop().call_later(0.01, theirs.send, b"x")
                self.assertEqual(await tocsin.wait_async(a, b, ours), 2)
                self.assertEqual(await tocsin.wait_async(a, tocsin.monotonic_deadline(0.01)), 1)
            waiting = asyncio.ensure_future(tocsin.wait_all_async(a, b))
            await asyncio.sleep(0)
            a.set()
            await asyncio.sleep(0.01)
            self.assertTrue(a.is_set())
            b.release()
            self.assertIs(await waiting, True)
            self.assertEqual((a.is_set(), b.value), (False, 0))
            self.assertIs(await tocsin.wait_all_async(a, b, timeout=0.001), False)
        run(main())

    def test_bad_input(self):
        event = tocsin.Event()
        for error, words, begin in (
            (ValueError, r"wait_async\(\) needs something", lambda: tocsin.wait_async()),
            (ValueError, r"wait_all_async\(\) needs something", lambda: tocsin.wait_all_async(timeout=1)),
            (ValueError, "the same", lambda: tocsin.wait_all_async(event, event)),
            (TypeError, "no event", lambda: tocsin.wait_async(object())),
            (ValueError, "nan", lambda: tocsin.wait_async(event, timeout=float("nan"))),
            (TypeError, "not str", lambda: tocsin.wait_async(event, timeout="soon")),
            (TypeError, "not both", lambda: tocsin.wait_async(event, timeout=1, deadline=tocsin.monotonic_deadline(1))),
            (TypeError, "monotonic_deadline", lambda: tocsin.wait_async(event, deadline=3.0)),
            (OSError, "", lambda: tocsin.wait_async(event, 1 << 30)),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(error, words):
                run(begin())
        for function in (_core._run_bridge, _core._close_bridge, _core._give_back):
            self.assertRaisesRegex(TypeError, "not a", function, event)

    def test_a_queue_between_a_thread_and_a_coroutine(self):
        async def main():
            queue = tocsin.Queue(5)

            def produce():
                for i in range(1000):
                    queue.put(i)
                queue.close()

            seen = []
            with support.Threads(1, produce) as threads:
                while True:
                    await tocsin.wait_async(queue)
                    try:
                        seen.append(queue.get_nowait())
                    except tocsin.QueueClosed:
                        break
                threads.join()
            self.assertEqual(seen, list(range(1000)))
        run(main())

    def test_a_cancelled_wait_takes_nothing(self):
        async def main():
            token = tocsin.AutoResetEvent()

            async def one():
                await token

            for wait in (one, lambda: tocsin.wait_async(token)):
                for give_first in (False, True):
                    task = asyncio.ensure_future(wait())
                    await asyncio.sleep(0)
                    if give_first:
                        token.set()  # handed to the wait, whose future does not know yet
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                    if not give_first:
                        token.set()
                    self.assertTrue(token.wait(0))
                    self.assertEqual(tocsin.waiting_on(token), 0)
        run(main())

    def test_a_coroutine_that_is_closed_takes_nothing(self):
        async def main():
            token = tocsin.AutoResetEvent()
            for wait in (token.__await__, tocsin.wait_async(token).__await__):
                waiting = wait()
                waiting.send(None)
                token.set()  # handed to the wait, whose future stays pending
                waiting.close()
                _core._run_bridge(_asyncio._bridges[asyncio.get_running_loop()])
                self.assertTrue(token.wait(0))
        run(main())

    def test_what_is_there_is_taken_without_giving_way_to_the_loop(self):
        async def main():
            token = tocsin.AutoResetEvent()
            for wait, result in ((token.__await__, True), (tocsin.wait_async(token).__await__, 0)):
                token.set()
                with self.assertRaises(StopIteration) as ended:
                    wait().send(None)
                self.assertEqual((ended.exception.value, token.is_set()), (result, False))
        run(main())

    def test_a_task_cancelled_after_its_future_has_the_token(self):
        async def main():
            token = tocsin.AutoResetEvent()
            loop = asyncio.get_running_loop()
            task = asyncio.ensure_future(tocsin.wait_async(token))
            await asyncio.sleep(0)
            token.set()
            # The bridge resolves the future; the task is cancelled before it runs.
            _core._run_bridge(_asyncio._bridges[loop])
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(token.wait(0))
        run(main())

    def test_cancelling_races_with_sets(self):
        async def main():
            token, taken, gone = tocsin.AutoResetEvent(), 0, 0
            stop = tocsin.Event()
            sets = [0]

            def set_often():
                while not stop.is_set():
                    if not token.is_set():
                        token.set()
                        sets[0] += 1
                    stop.wait(0.00005)

            with support.Threads(1, set_often) as threads:
                for i in range(500):
                    task = asyncio.ensure_future(tocsin.wait_async(token))
                    await asyncio.sleep(0 if i % 3 else 0.0001)
                    task.cancel()
                    try:
                        await task
                        taken += 1
                    except asyncio.CancelledError:
                        gone += 1
                stop.set()
                threads.join()
            for _ in range(3):
                await asyncio.sleep(0.01)
            # A set that finds the event set is absorbed, and so is a token that is given back to a set event.
            self.assertEqual(taken + gone, 500)
            self.assertLessEqual(taken, sets[0])
            self.assertGreaterEqual(taken + token.is_set(), 1)
        run(main())

    def test_a_closed_loop_leaves_the_token(self):
        token = tocsin.AutoResetEvent()
        loop = asyncio.new_event_loop()
        task = loop.create_task(tocsin.wait_async(token))
        loop.run_until_complete(asyncio.sleep(0))
        token.set()
        loop.close()
        task._log_destroy_pending = False
        del task
        gc.collect()
        self.assertTrue(token.wait(0))

    def test_a_loop_closed_while_threads_set(self):
        for _ in range(200):
            token = tocsin.AutoResetEvent()
            loop = asyncio.new_event_loop()
            task = loop.create_task(tocsin.wait_async(token))
            loop.run_until_complete(asyncio.sleep(0))
            with support.Threads(1, token.set) as threads:
                loop.close()
                task._log_destroy_pending = False
                del loop, task
                gc.collect(0)
                gc.collect()
                threads.join()
            self.assertTrue(token.wait(0))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_the_child_of_a_fork_leaves_the_loop(self):
        code = '''if True:
            import asyncio, os, signal, tocsin, warnings
            warnings.simplefilter("ignore")
            pending, token = tocsin.Event(), tocsin.AutoResetEvent()
            child = None

            async def main():
                global child
                waits = [asyncio.ensure_future(tocsin.wait_async(each)) for each in (pending, token)]
                await asyncio.sleep(0)
                token.set()  # the loop has not seen it at the fork
                child = os.fork()
                if child == 0:
                    signal.alarm(30)
                    return
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
                assert await asyncio.wait_for(waits[1], 30) == 0
                pending.set()
                assert await asyncio.wait_for(waits[0], 30) == 0

            asyncio.run(main())
            if child == 0:
                async def other():
                    asyncio.get_running_loop().call_later(0.01, token.set)
                    await token
                asyncio.run(other())
                os._exit(7)
            '''
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        if sys.version_info < (3, 14):  # since then, asyncio reports in the child that the loop runs no more
            self.assertEqual(done.stderr, "")

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_the_child_of_a_fork_can_not_wait_in_the_loop_of_the_parent(self):
        loop = asyncio.new_event_loop()
        self.assertIsNone(loop.run_until_complete(tocsin.wait_async(tocsin.Event(), timeout=0.001)))
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            try:
                loop.run_until_complete(tocsin.wait_async(tocsin.Event()))
            except RuntimeError as error:
                os._exit(5 if "belongs to the parent process" in str(error) else 6)
            os._exit(7)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 5)
        loop.close()

    def test_ten_thousand_waits(self):
        async def main():
            event = tocsin.Event()
            await tocsin.wait_async(event, timeout=0.0001)  # makes the bridge
            futures = []
            loop = asyncio.get_running_loop()
            bridge = _asyncio._bridges[loop]
            descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            waits = []
            for _ in range(10_000):
                future = loop.create_future()
                futures.append(future)
                waits.append(_core._begin_async(bridge, future, (event,), False))
            each = (tracemalloc.get_traced_memory()[0] - before) / 10_000
            tracemalloc.stop()
            if descriptors:
                self.assertLessEqual(len(os.listdir("/proc/self/fd")), descriptors)
            self.assertLessEqual(each, 1024)
            threading.Thread(target=event.set).start()
            await asyncio.gather(*futures)
        run(main())

    def test_several_loops_share_an_event(self):
        token = tocsin.AutoResetEvent()
        counts = []

        def loop():
            async def main():
                for _ in range(200):
                    await token
                    token.set()
                return 200
            counts.append(asyncio.run(main()))

        with support.Threads(3, loop) as threads:
            token.set()
            threads.join()
        self.assertEqual(counts, [200] * 3)


if __name__ == "__main__":
    unittest.main()

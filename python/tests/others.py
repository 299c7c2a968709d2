# SPDX-License-Identifier: Apache-2.0
"""Programs of others: trio and uvloop run our waits; pytest and Jupyter interrupt them.

Each is left out where it is not installed. `./dev test python` installs all of them, and requires that none is left
out."""

import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import support
import tocsin


def needs(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"NOT RUN: {' and '.join(missing)} not installed")


@needs("trio")
class Trio(unittest.TestCase):
    def run_in_trio(self, function):
        import trio

        async def main():
            with trio.fail_after(60):
                await function(trio)

        trio.run(main)

    def test_await_an_event_that_a_thread_sets(self):
        async def main(trio):
            event, token, permits = tocsin.Event(), tocsin.AutoResetEvent(), tocsin.Semaphore(0)
            for source, give in ((event, event.set), (token, token.set), (permits, permits.release)):
                def far(source=source, give=give):
                    support.wait_until_parked(source, 1)
                    give()
                with support.Threads(1, far) as threads:
                    self.assertIs(await source, True)
                    threads.join()
            self.assertEqual((token.is_set(), permits.value), (False, 0))
        self.run_in_trio(main)

    def test_any_all_and_time(self):
        async def main(trio):
            a, b = tocsin.AutoResetEvent(), tocsin.Semaphore(0)
            ours, theirs = socket.socketpair()
            with ours, theirs:
                self.assertIsNone(await tocsin.wait_async(a, b, timeout=0))
                self.assertIsNone(await tocsin.wait_async(a, b, ours, timeout=0.01))
                self.assertIsNone(await tocsin.wait_async(a, deadline=tocsin.monotonic_deadline(0.01)))
                theirs.send(b"x")
                self.assertEqual(await tocsin.wait_async(a, b, ours), 2)
            async with trio.open_nursery() as nursery:
                async def both():
                    self.assertIs(await tocsin.wait_all_async(a, b), True)
                nursery.start_soon(both)
                a.set()
                await trio.testing.wait_all_tasks_blocked()
                self.assertTrue(a.is_set())
                b.release()
            self.assertEqual((a.is_set(), b.value), (False, 0))
            self.assertIs(await tocsin.wait_all_async(a, b, timeout=0.001), False)
            with self.assertRaises(ValueError):
                await tocsin.wait_async()
            with self.assertRaises(TypeError):
                await tocsin.wait_async(object())
        import trio.testing  # noqa: F401
        self.run_in_trio(main)

    def test_a_cancelled_wait_takes_nothing_and_a_token_that_came_first_counts(self):
        async def main(trio):
            token = tocsin.AutoResetEvent()
            for give_first in (False, True):
                taken = []
                async with trio.open_nursery() as nursery:
                    async def wait():
                        taken.append(await tocsin.wait_async(token))
                    nursery.start_soon(wait)
                    while tocsin.waiting_on(token) == 0:
                        await trio.sleep(0)
                    if give_first:
                        token.set()
                    nursery.cancel_scope.cancel()
                self.assertEqual(taken, [0] if give_first else [])
                self.assertEqual((token.is_set(), tocsin.waiting_on(token)), (False, 0))
                token.set()
                self.assertTrue(token.wait(0))
        self.run_in_trio(main)

    def test_cancelling_races_with_sets(self):
        async def main(trio):
            permits, number, taken = tocsin.Semaphore(0), 500, 0

            def give():
                for _ in range(number):
                    permits.release()

            with support.Threads(1, give) as threads:
                for i in range(number):
                    with trio.move_on_after(0 if i % 3 else 0.0001):
                        await permits
                        taken += 1
                threads.join()
            self.assertEqual(taken + permits.value, number)
        self.run_in_trio(main)

    def test_a_thousand_tasks_and_no_descriptor_more(self):
        async def main(trio):
            event = tocsin.Event()
            await tocsin.wait_async(event, timeout=0.001)  # makes the bridge
            before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
            async with trio.open_nursery() as nursery:
                async def wait():
                    await event
                for _ in range(1000):
                    nursery.start_soon(wait)
                while tocsin.waiting_on(event) < 1000:
                    await trio.sleep(0)
                if before:
                    self.assertLessEqual(len(os.listdir("/proc/self/fd")), before)
                threading.Thread(target=event.set).start()
        self.run_in_trio(main)

    def test_a_blocking_wait_in_a_task_warns(self):
        code = """if True:
            import tocsin, trio, warnings
            async def main():
                tocsin.Event().wait(0.001)
                tocsin.Event().wait(0.001)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                trio.run(main)
            assert len([w for w in seen if "await" in str(w.message)]) == 1, seen
            """
        subprocess.run([sys.executable, "-c", code], check=True)


@needs("uvloop")
class Uvloop(unittest.TestCase):
    def test_the_tests_of_asyncio_pass_over_it(self):
        code = """if True:
            import asyncio, sys, unittest, uvloop
            asyncio.new_event_loop = uvloop.new_event_loop
            asyncio.run = uvloop.run if hasattr(uvloop, "run") else asyncio.run
            import test_asyncio
            # A forked child can't go on with a loop of libuv, with or without these waits.
            del test_asyncio.Coroutines.test_the_child_of_a_fork_leaves_the_loop
            async def kind():
                return type(asyncio.get_running_loop()).__module__
            assert asyncio.run(kind()) == "uvloop"
            unittest.main(test_asyncio)
            """
        done = subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(os.path.abspath(__file__)),
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


@needs("pytest")
class Pytest(unittest.TestCase):
    def test_is_interrupted_in_a_wait(self):
        code = """if True:
            import os, signal, threading
            import tocsin
            def test_waits():
                signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
                event = tocsin.Event()
                def interrupt():
                    while tocsin.waiting_on(event) == 0:
                        pass
                    os.kill(os.getpid(), signal.SIGINT)
                threading.Thread(target=interrupt).start()
                event.wait()
            def test_is_not_reached():
                assert False
            """
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "test_it.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(code.replace("\n            ", "\n").replace("if True:\n", "", 1))
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path], cwd=folder,
                                  capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)  # interrupted
        self.assertIn("KeyboardInterrupt", done.stdout)


@needs("ipykernel", "jupyter_client")
class Jupyter(unittest.TestCase):
    def test_interrupting_the_kernel_ends_a_wait_in_a_cell(self):
        from jupyter_client.manager import KernelManager

        manager = KernelManager(kernel_name="python3")
        manager.kernel_spec.argv[0] = sys.executable
        manager.start_kernel()
        try:
            client = manager.blocking_client()
            client.start_channels()
            client.wait_for_ready(timeout=60)

            def run(code, interrupts=False):
                """What the cell prints, and the names of its errors."""
                cell = client.execute(code)
                printed, errors = "", []
                while True:
                    message = client.get_iopub_msg(timeout=60)
                    if message["parent_header"].get("msg_id") != cell:
                        continue
                    kind, content = message["msg_type"], message["content"]
                    if kind == "stream":
                        printed += content["text"]
                        if interrupts and "waits" in printed:
                            interrupts = False
                            manager.interrupt_kernel()
                    elif kind == "error":
                        errors.append(content["ename"])
                    elif kind == "status" and content["execution_state"] == "idle":
                        return printed, errors

            printed, errors = run("import tocsin; token = tocsin.AutoResetEvent(); token.wait(0.001)")
            self.assertEqual((printed, errors), ("", []))  # no warning: a cell may wait
            for wait in ("token.wait()", "tocsin.wait_any(token, tocsin.Event())", "tocsin.Queue().get()"):
                with self.subTest(wait=wait):
                    printed, errors = run(f"print('waits', flush=True); {wait}", interrupts=True)
                    self.assertEqual(errors, ["KeyboardInterrupt"])
            self.assertEqual(run("token.set(); print(token.wait(0), tocsin.waiting_on(token))"), ("True 0\n", []))
            client.stop_channels()
        finally:
            manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    unittest.main()

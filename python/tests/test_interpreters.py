# SPDX-License-Identifier: Apache-2.0
"""An event that several interpreters of one process share. Each case with another interpreter is a process of its own,
because an interpreter that goes wrong takes its process with it."""

import os
import pickle
import subprocess
import sys
import textwrap
import unittest

import tocsin

HELP = """
import pickle, sys, threading, tocsin
try:
    import _interpreters as interpreters
    execute = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    execute = interpreters.run_string

class Other:
    '''Code that runs in another interpreter, in a thread. From CPython 3.12 on the thread destroys it. Before that, the
    main thread imports threading there and destroys it: CPython waits for ever for the thread that imported threading,
    if another one destroys the interpreter.'''
    def __init__(self, code):
        self.number, self.failed, self.ran = interpreters.create(), None, False
        if sys.version_info < (3, 12):
            execute(self.number, "import threading")
        self.thread = threading.Thread(target=self.run, args=(code,))
        self.thread.start()
    def run(self, code):
        self.failed = execute(self.number, code)
        if sys.version_info >= (3, 12):
            interpreters.destroy(self.number)
        self.ran = True
    def end(self):
        self.thread.join(60)
        assert self.ran and self.failed is None, self.failed
        if sys.version_info < (3, 12):
            interpreters.destroy(self.number)

def parked(event):
    while tocsin.waiting_on(event) != 1:
        threading.Event().wait(0.0005)
"""


class Interpreters(unittest.TestCase):
    def holds(self, code):
        if sys.version_info < (3, 11):
            self.skipTest("CPython before 3.11 can't end an interpreter that has imported threading in a thread")
        done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", HELP + textwrap.dedent(code)],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_set_in_another_interpreter_ends_a_wait(self):
        self.holds("""
            go, back = tocsin.InterpreterEvent(), tocsin.InterpreterEvent()
            other = Other(f'''if True:
                import tocsin
                go, back = map(tocsin.InterpreterEvent.attach, ({go.handle}, {back.handle}))
                for _ in range(100):
                    assert go.wait(60)
                    go.clear()
                    back.set()
                ''')
            unset = tocsin.Event()
            waits = (lambda: back.wait(60), lambda: tocsin.wait_any(unset, back, timeout=60) == 1,
                     lambda: tocsin.wait_all(back, timeout=60))
            for i in range(100):
                go.set()
                assert waits[i % 3]()
                back.clear()
            other.end()
            """)

    def test_a_wait_in_another_interpreter_ends_by_a_set_here(self):
        self.holds("""
            event, done = tocsin.InterpreterEvent(), tocsin.InterpreterEvent()
            other = Other(f'''if True:
                import tocsin
                event, done = map(tocsin.InterpreterEvent.attach, ({event.handle}, {done.handle}))
                unset = tocsin.AutoResetEvent()
                assert tocsin.wait_any(unset, event, timeout=60) == 1
                done.set()
                ''')
            parked(event)
            event.set()
            event.clear()  # the thread there was released all the same
            assert done.wait(60)
            other.end()
            """)

    def test_a_coroutine_is_woken_from_another_interpreter(self):
        self.holds("""
            import asyncio
            async def main():
                event = tocsin.InterpreterEvent()
                other = Other(f"import tocsin; tocsin.InterpreterEvent.attach({event.handle}).set()")
                assert await event
                event.clear()
                other.end()
                other = Other(f"import tocsin; tocsin.InterpreterEvent.attach({event.handle}).set()")
                assert await tocsin.wait_async(tocsin.Event(), event, timeout=60) == 1
                other.end()
            asyncio.run(main())
            """)

    def test_an_event_outlives_the_interpreter_that_made_it(self):
        self.holds("""
            import os
            reading, writing = os.pipe()
            attached = tocsin.InterpreterEvent()
            other = Other(f'''if True:
                import os, tocsin
                event = tocsin.InterpreterEvent()
                os.write({writing}, b"%d" % event.handle)
                assert tocsin.InterpreterEvent.attach({attached.handle}).wait(60)
                ''')
            handle = int(os.read(reading, 20))
            event = tocsin.InterpreterEvent.attach(handle)
            attached.set()
            other.end()
            timer = threading.Timer(0.001, event.set)
            timer.start()
            assert event.wait(60)
            timer.join()  # until then its thread has the event, and so has the timer itself
            del timer, event
            import gc
            gc.collect()
            try:
                tocsin.InterpreterEvent.attach(handle)
            except ValueError as error:
                assert str(handle) in str(error)
            else:
                assert False, "its last object is gone"
            """)

    def test_pickled_events_are_the_same_event(self):
        event = tocsin.InterpreterEvent()
        for one in (pickle.loads(pickle.dumps(event)), tocsin.InterpreterEvent.attach(event.handle)):
            self.assertFalse(event.is_set())
            one.set()
            self.assertTrue(event.is_set())
            self.assertEqual(one.handle, event.handle)
            event.clear()
            self.assertFalse(one.wait(0))
        self.holds(f"""
            event = tocsin.InterpreterEvent()
            data = pickle.dumps(event)
            other = Other(f"import pickle; pickle.loads({{data!r}}).set()")
            assert event.wait(60)
            other.end()
            try:
                pickle.loads({pickle.dumps(event)!r})
            except ValueError as error:
                assert "belongs to the process that made it ({os.getpid()})" in str(error), error
            else:
                assert False, "it is another process's"
            """)

    @unittest.skipUnless(sys.version_info >= (3, 14), "concurrent.interpreters is new in CPython 3.14")
    def test_queues_and_calls_of_the_standard_library_hand_it_over(self):
        self.holds("""
            from concurrent import interpreters
            event, queue = tocsin.InterpreterEvent(), interpreters.create_queue()
            queue.put(event)
            one = interpreters.create()
            one.prepare_main(queue=queue)
            thread = one.call_in_thread(exec, "import __main__; __main__.queue.get().set()")
            assert event.wait(60)
            thread.join()
            one.close()
            """)

    def test_bad_input(self):
        attach = tocsin.InterpreterEvent.attach
        for bad in ("1", 1.0, None):
            with self.assertRaisesRegex(TypeError, "takes the handle of an InterpreterEvent, an int, not"):
                attach(bad)
        for bad in (0, -1, 2**64, 2**63):
            with self.assertRaisesRegex(ValueError, f"handle {bad}:"):
                attach(bad)
        with self.assertRaises(TypeError):
            tocsin.InterpreterEvent(1)
        event = tocsin.InterpreterEvent()
        with self.assertRaises(ValueError):
            event.wait(float("nan"))
        self.assertRegex(repr(event), rf"^<tocsin\.InterpreterEvent at 0x\w+, handle {event.handle}: unset>$")

    def test_a_fork_keeps_what_it_says(self):
        event = tocsin.InterpreterEvent()
        event.set()
        child = os.fork()
        if child == 0:
            try:
                event.clear()
                os._exit(0 if not tocsin.InterpreterEvent.attach(event.handle).is_set() else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(event.is_set())


if __name__ == "__main__":
    unittest.main()

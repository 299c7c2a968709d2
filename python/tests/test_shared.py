# SPDX-License-Identifier: Apache-2.0
"""Events, semaphores and locks of several processes, some of which are killed."""

import asyncio
import copy
import gc
import mmap
import multiprocessing
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
import warnings
import weakref
from multiprocessing import shared_memory

import support
import tocsin
from support import PATIENCE
from tocsin import _asyncio

KINDS = (tocsin.SharedEvent, tocsin.SharedAutoResetEvent, tocsin.SharedSemaphore, tocsin.SharedLock)


def number_at(one, offset):
    return struct.unpack_from("=I", one.buffer.buf, one.offset + offset)[0]


def waiting_slots(one):
    return sum(number_at(one, 64 * slot + 4) & 3 == 1 for slot in range(1, 32))


def is_waited_for(one):
    """Whether a thread of any process waits: as the layout says (tocsin/detail/shared_layout.hpp)."""
    if isinstance(one, tocsin.SharedEvent):
        return number_at(one, 4) & 2 != 0
    return waiting_slots(one) != 0


def wait_until_waited_for(one):
    support.wait_for(lambda: is_waited_for(one))


def give(one):
    (one.release if isinstance(one, tocsin.SharedSemaphore) else one.set)()


def take(one, timeout=PATIENCE):
    if isinstance(one, (tocsin.SharedSemaphore, tocsin.SharedLock)):
        return one.acquire(timeout=timeout)
    return one.wait(timeout)


def empty(kind):
    return tocsin.SharedSemaphore(0) if kind is tocsin.SharedSemaphore else kind()


def work_with_all(event, auto, permits, lock, memory):
    if not event.wait(PATIENCE):
        return
    with lock:
        memory.buf[4000] += 1
    permits.release(2)
    auto.set()


def take_one(one, told):
    if take(one):
        told.set()


def hold_for_ever(lock, told):
    lock.acquire()
    told.set()
    time.sleep(3600)


def end_without_repair(lock, told):
    with lock:
        if not lock.owner_died:
            os._exit(2)
        told.set()


class Child:
    """A process that is killed at the end, if it still runs."""

    def __init__(self, function, *arguments, method="spawn"):
        self.process = multiprocessing.get_context(method).Process(target=function, args=arguments, daemon=True)

    def __enter__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
            self.process.start()
        return self

    def __exit__(self, *exception):
        self.kill()

    def kill(self):
        if self.process.is_alive():
            self.process.kill()
        self.process.join(PATIENCE)

    def stop(self):
        """SIGSTOP, and the system has seen it."""
        os.kill(self.process.pid, signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)


class Processes(unittest.TestCase):
    def test_each_way_to_start_a_process_passes_the_objects_on(self):
        for method in multiprocessing.get_all_start_methods():
            if method == "fork" and not support.FORKS_WITH_THREADS:
                continue
            with self.subTest(method=method):
                memory = tocsin.SharedMemory.anonymous(4096)
                event, auto = tocsin.SharedEvent(), tocsin.SharedAutoResetEvent()
                permits, lock = tocsin.SharedSemaphore(0), tocsin.SharedLock(buffer=memory, offset=1024)
                with Child(work_with_all, event, auto, permits, lock, memory, method=method) as child:
                    self.assertFalse(auto.wait(0))
                    event.set()
                    self.assertTrue(permits.acquire(timeout=PATIENCE) and permits.acquire(timeout=PATIENCE))
                    self.assertTrue(auto.wait(PATIENCE))
                    child.process.join(PATIENCE)
                    self.assertEqual(child.process.exitcode, 0)
                with lock:
                    self.assertEqual(memory.buf[4000], 1)

    def test_the_memory_of_multiprocessing_is_passed_on(self):
        memory = shared_memory.SharedMemory(create=True, size=4096)
        try:
            event = tocsin.SharedEvent(buffer=memory)
            told = tocsin.SharedEvent(buffer=memory, offset=64)
            with Child(take_one, event, told):
                wait_until_waited_for(event)
                event.set()
                self.assertTrue(told.wait(PATIENCE))
            self.assertRaises(BufferError, memory.close)
            self.assertTrue(event.is_set())
            del event, told
            gc.collect()
            memory.close()
        finally:
            memory.unlink()

    def test_programs_meet_by_a_name(self):
        name = f"/tocsin-test-{os.getpid()}"
        code = """if True:
            import sys, tocsin
            memory = tocsin.SharedMemory.open_or_create(sys.argv[1], 4096)
            if not tocsin.SharedEvent(buffer=memory).wait(60): sys.exit(1)
            tocsin.SharedSemaphore(buffer=memory, offset=64).release()
        """
        other = subprocess.Popen([sys.executable, "-c", code, name])
        try:
            memory = tocsin.SharedMemory.open_or_create(name, 4096)
            permits = tocsin.SharedSemaphore(buffer=memory, offset=64)
            tocsin.SharedEvent(buffer=memory).set()
            self.assertTrue(permits.acquire(timeout=PATIENCE))
            self.assertEqual(other.wait(PATIENCE), 0)
            self.assertRaises(FileExistsError, tocsin.SharedMemory.create, name, 4096)
            self.assertRaises(ValueError, tocsin.SharedMemory.open_or_create, name, 64)
            self.assertEqual((tocsin.SharedMemory.open(name).name, memory.size), (name, 4096))
            # What has a name can be pickled at any time.
            again, alike = pickle.loads(pickle.dumps((permits, permits.buffer)))
            self.assertIs(again.buffer, alike)
            again.release()
            self.assertEqual((permits.value, copy.copy(permits).value), (1, 1))
        finally:
            other.kill()
            other.wait()
            self.assertTrue(tocsin.SharedMemory.unlink(name))
        self.assertFalse(tocsin.SharedMemory.unlink(name))
        self.assertRaises(FileNotFoundError, tocsin.SharedMemory.open, name)

    def test_a_descriptor_passes_memory_on(self):
        memory = tocsin.SharedMemory.anonymous(64)
        again = tocsin.SharedMemory.map(memory.descriptor)
        self.assertNotEqual(again.descriptor, memory.descriptor)
        tocsin.SharedEvent(buffer=memory).set()
        self.assertTrue(tocsin.SharedEvent(buffer=again).wait(PATIENCE))


class Deaths(unittest.TestCase):
    def test_a_killed_waiter_blocks_nobody(self):
        # multiprocessing.Event.set() does not return after this (cpython#75158).
        for kind in KINDS[:3]:
            with self.subTest(kind=kind.__name__):
                one, told = empty(kind), tocsin.SharedEvent()
                with Child(take_one, one, told) as child:
                    wait_until_waited_for(one)
                    child.kill()
                    give(one)
                    self.assertTrue(take(one))
                self.assertFalse(told.is_set())

    def test_what_was_handed_to_the_dead_goes_on(self):
        for kind in KINDS[1:3]:
            with self.subTest(kind=kind.__name__):
                one, told = empty(kind), tocsin.SharedEvent()
                with Child(take_one, one, told) as child:
                    wait_until_waited_for(one)
                    child.stop()
                    give(one)
                    self.assertFalse(take(one, 0))  # a process that is stopped has not died
                    with support.Threads(1, lambda: self.assertTrue(take(one))) as threads:
                        child.kill()
                        threads.join()
                self.assertFalse(told.is_set())

    def test_the_next_owner_of_a_lock_learns_of_a_death(self):
        lock, told = tocsin.SharedLock(), tocsin.SharedEvent()
        with Child(hold_for_ever, lock, told) as child:
            self.assertTrue(told.wait(PATIENCE))
            self.assertFalse(lock.acquire(False))
            self.assertFalse(lock.acquire(timeout=0.001))
            self.assertFalse(lock.owner_died)
            # One thread sleeps while the owner is killed, and the main thread comes later.
            seen = []

            tickets = number_at(lock, 4)

            def repair():
                with lock:
                    seen.append(lock.owner_died)
                    lock.mark_repaired()
                    seen.append(lock.owner_died)

            with support.Threads(1, repair) as threads:
                support.wait_for(lambda: number_at(lock, 4) != tickets)  # it waits, or is about to
                child.kill()
                threads.join()
        self.assertEqual(seen, [True, False])
        with lock:
            self.assertFalse(lock.owner_died)

    def test_the_main_thread_learns_of_a_death_in_its_sleep(self):
        lock, told = tocsin.SharedLock(), tocsin.SharedEvent()
        with Child(hold_for_ever, lock, told) as child:
            self.assertTrue(told.wait(PATIENCE))

            def kill():
                support.wait_until_parked(lock, 1)
                os.kill(child.process.pid, signal.SIGKILL)

            with support.Threads(1, kill) as threads:
                self.assertTrue(lock.acquire(timeout=PATIENCE))
                threads.join()
            self.assertTrue(lock.owner_died)
            lock.mark_repaired()
            lock.release()

    def test_a_lock_that_nobody_has_repaired_is_lost(self):
        lock, told, ended = tocsin.SharedLock(), tocsin.SharedEvent(), tocsin.SharedEvent()
        with Child(hold_for_ever, lock, told) as child:
            self.assertTrue(told.wait(PATIENCE))
            child.kill()
        with Child(end_without_repair, lock, ended) as child:
            self.assertTrue(ended.wait(PATIENCE))
            self.assertRaises(tocsin.LockLost, lock.acquire)
            self.assertRaises(tocsin.LockLost, lock.acquire, False)
            child.process.join(PATIENCE)
            self.assertEqual(child.process.exitcode, 0)

    def test_a_thread_that_ends_with_the_lock_has_died(self):
        lock = tocsin.SharedLock()
        with support.Threads(1, lock.acquire) as threads:
            threads.join()
        self.assertTrue(lock.acquire(timeout=PATIENCE))
        self.assertTrue(lock.owner_died)
        lock.mark_repaired()
        lock.release()


class Threads(unittest.TestCase):
    def test_set_and_clear_release_who_waits(self):
        event = tocsin.SharedEvent()
        with support.Threads(1, lambda: self.assertTrue(event.wait(PATIENCE))) as threads:
            wait_until_waited_for(event)
            event.set()
            event.clear()
            threads.join()
        self.assertFalse(event.is_set())

    def test_two_sets_release_two(self):
        auto, done = tocsin.SharedAutoResetEvent(), tocsin.Semaphore(0)
        with support.Threads(2, lambda: auto.wait(PATIENCE) and done.release()) as threads:
            support.wait_for(lambda: waiting_slots(auto) == 2)
            auto.set()
            auto.set()
            threads.join()
        self.assertEqual((done.value, auto.is_set()), (2, False))

    def test_more_threads_than_slots_wait(self):
        permits, done = tocsin.SharedSemaphore(0), tocsin.Semaphore(0)
        with support.Threads(40, lambda: permits.acquire(timeout=PATIENCE) and done.release()) as threads:
            support.wait_for(lambda: waiting_slots(permits) == 31)
            permits.release(40)
            threads.join()
        self.assertEqual((done.value, permits.value), (40, 0))

    def test_a_lock_is_exclusive(self):
        lock, inside, total = tocsin.SharedLock(), [], []

        def work():
            for _ in range(200):
                with lock:
                    inside.append(1)
                    total.append(len(inside))
                    inside.pop()

        with support.Threads(3, work) as threads:
            work()
            threads.join()
        self.assertEqual(total, [1] * 800)

    def test_a_time_out_takes_nothing(self):
        for kind in KINDS[:3]:
            with self.subTest(kind=kind.__name__):
                one = empty(kind)
                for wait in (lambda: take(one, 0.002), lambda: take(one, -1)):
                    self.assertFalse(wait())
                    with support.Threads(1, lambda: self.assertFalse(wait())) as threads:
                        threads.join()
                give(one)
                self.assertTrue(take(one))
                self.assertEqual(take(one, 0), kind is tocsin.SharedEvent)

    def test_only_the_owner_frees_a_lock(self):
        lock = tocsin.SharedLock()
        self.assertRaises(RuntimeError, lock.release)
        with lock:
            self.assertRaises(RuntimeError, lock.acquire)
            self.assertRaises(RuntimeError, lock.acquire, False)
            with support.Threads(1, lambda: self.assertRaises(RuntimeError, lock.release)) as threads:
                threads.join()
            self.assertRaises(RuntimeError, tocsin.SharedLock(buffer=lock.buffer).release)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
                child = os.fork()
            if child == 0:
                try:
                    lock.release()
                except RuntimeError:
                    os._exit(5 if not lock.owner_died else 6)
                os._exit(7)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 5)
        self.assertTrue(lock.acquire(False))
        lock.release()

    def test_a_lock_that_is_held_keeps_its_memory(self):
        lock = tocsin.SharedLock()
        lock.acquire()
        alive = weakref.ref(lock)
        del lock
        gc.collect()
        for _ in range(3):  # the thread's list of held locks leads through all of them
            with tocsin.SharedLock():
                pass
        alive().release()
        gc.collect()
        self.assertIsNone(alive())


class Sources(unittest.TestCase):
    def test_beside_sockets_and_local_events(self):
        local, here, there = tocsin.Event(), *socket.socketpair()
        shared = [empty(kind) for kind in KINDS[:3]]
        sources = [local, here, *shared]

        def every():
            self.assertIsNone(tocsin.wait_any(*sources, timeout=0.002))
            for index, one in enumerate(shared):
                give(one)
                self.assertEqual(tocsin.wait_any(*sources, timeout=PATIENCE), index + 2)
                self.assertEqual(take(one, 0), index == 0)
                if index == 0:
                    one.clear()

        every()
        with support.Threads(1, every) as threads:
            threads.join()
        for index, one in enumerate(shared):
            for giver in (lambda: (wait_until_waited_for(one), give(one)), lambda: there.send(b"x")):
                with support.Threads(1, giver) as threads:
                    found = tocsin.wait_any(*sources, timeout=PATIENCE)
                    threads.join()
                if found == 1:
                    here.recv(1)
                    self.assertFalse(take(one, 0))
                else:
                    self.assertEqual(found, index + 2)
                    if index == 0:
                        one.clear()
        here.close()
        there.close()

    def test_coroutines_wait_and_a_cancelled_one_takes_nothing(self):
        async def main():
            for kind in KINDS[:3]:
                one = empty(kind)
                with support.Threads(1, lambda: (wait_until_waited_for(one), give(one))) as threads:
                    self.assertTrue(await one)
                    threads.join()
                if kind is tocsin.SharedEvent:
                    one.clear()
                task = asyncio.ensure_future(tocsin.wait_async(tocsin.Event(), one))
                await asyncio.sleep(0)
                task.cancel()
                give(one)
                with self.assertRaises(asyncio.CancelledError):
                    await task
                # If the token had been handed over already, it comes back once the loop has run.
                self.assertEqual(await tocsin.wait_async(one, timeout=PATIENCE), 0)

        asyncio.run(main())

    @unittest.skipUnless(support.FORKS_WITH_THREADS, "ThreadSanitizer: see support.py")
    def test_the_child_of_a_fork_gives_back_nothing_that_the_parent_was_handed(self):
        permits, children = tocsin.SharedSemaphore(0), []

        async def main():
            waiting = asyncio.ensure_future(tocsin.wait_async(permits))
            await asyncio.sleep(0)
            permits.release()
            # The wait has the permit, and its loop does not know yet.
            ends = _asyncio._bridges[asyncio.get_running_loop()].fileno()
            self.assertTrue(select.select([ends], [], [], PATIENCE)[0])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
                children.append(os.fork())
            if children[0] == 0:
                return
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]), 5)
            self.assertEqual((await waiting, permits.value), (0, 0))

        try:
            asyncio.run(main())
        finally:
            if children and children[0] == 0:
                os._exit(5)

    def test_what_is_refused(self):
        event, lock = tocsin.SharedEvent(), tocsin.SharedLock()
        self.assertRaisesRegex(TypeError, "processes share it", tocsin.wait_all, tocsin.Event(), event)
        self.assertRaisesRegex(TypeError, "processes share it", tocsin.WaitSet().add, event)
        self.assertRaisesRegex(TypeError, "call acquire", tocsin.wait_any, lock)
        with self.assertRaisesRegex(TypeError, "processes share it"):
            asyncio.run(tocsin.wait_all_async(event))


class Signals(unittest.TestCase):
    def setUp(self):
        self.former = signal.signal(signal.SIGUSR1, self.handle)
        self.handled = []
        self.raises = False

    def tearDown(self):
        signal.signal(signal.SIGUSR1, self.former)

    def handle(self, *_):
        self.handled.append(1)
        if self.raises:
            raise KeyboardInterrupt

    def every(self):
        """(an object, the process that has it or None)"""
        lock, told = tocsin.SharedLock(), tocsin.SharedEvent()
        with Child(hold_for_ever, lock, told) as child:
            self.assertTrue(told.wait(PATIENCE))
            yield lock, child
        for kind in KINDS[:3]:
            yield empty(kind), None

    def test_an_exception_of_a_handler_ends_the_wait_and_takes_nothing(self):
        self.raises = True
        for one, child in self.every():
            for delay in (0, 0.002):
                with self.subTest(kind=type(one).__name__, delay=delay):
                    # There is no fact to wait for: both the first microseconds of the sleep and later moments count.
                    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGUSR1))
                    with self.assertRaises(KeyboardInterrupt):
                        timer.start()
                        take(one, 3600)
                    timer.join()
            if child is None:
                give(one)
            else:
                child.kill()
            self.assertTrue(take(one))
            if child is not None:
                one.mark_repaired()
                one.release()

    def test_a_wait_goes_on_after_a_handler(self):
        for one, child in self.every():
            with self.subTest(kind=type(one).__name__):
                self.handled.clear()

                def interrupt():
                    support.wait_until_parked(one, 1)
                    for number in (1, 2):  # after the first one, the wait is in its second sleep
                        os.kill(os.getpid(), signal.SIGUSR1)
                        support.wait_for(lambda: len(self.handled) == number)
                    give(one) if child is None else os.kill(child.process.pid, signal.SIGKILL)

                with support.Threads(1, interrupt) as threads:
                    self.assertTrue(take(one))
                    threads.join()
                if child is not None:
                    self.assertTrue(one.owner_died)
                    one.mark_repaired()
                    one.release()


    @unittest.skipUnless(support.FORKS_WITH_THREADS, "ThreadSanitizer: see support.py")
    def test_a_handler_that_forks_leaves_both_processes_waiting(self):
        event, children = tocsin.SharedEvent(), []
        here = os.getpid()

        def fork(*_):
            children.append(os.fork())

        signal.signal(signal.SIGUSR1, fork)

        def interrupt():
            support.wait_until_parked(event, 1)
            os.kill(os.getpid(), signal.SIGUSR1)
            support.wait_for(lambda: children)
            event.set()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
            with support.Threads(1, interrupt) as threads:
                woken = event.wait(PATIENCE)
                if os.getpid() != here:
                    os._exit(5 if woken else 6)
                threads.join()
        self.assertTrue(woken)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]), 5)


class Buffers(unittest.TestCase):
    def test_every_kind_of_buffer(self):
        anonymous = mmap.mmap(-1, 8192)
        memory = tocsin.SharedMemory.anonymous(8192)
        for buffer in (anonymous, memoryview(anonymous)[64:], memory, memory.buf[128:]):
            for kind in KINDS:
                with self.subTest(buffer=type(buffer).__name__, kind=kind.__name__):
                    one = kind(buffer=buffer, offset=2048)
                    self.assertIs(one.buffer, buffer)
                    self.assertEqual(one.offset, 2048)
                    if kind is not tocsin.SharedLock:
                        give(one)
                    self.assertTrue(take(one, 0))
                    if kind is tocsin.SharedLock:
                        one.release()
                    del one
                    memoryview(buffer)[2048:4096] = bytes(2048)

    def test_memory_is_not_closed_under_an_object(self):
        anonymous, memory = mmap.mmap(-1, 4096), tocsin.SharedMemory.anonymous(4096)
        for buffer in (anonymous, memory):
            event = tocsin.SharedEvent(buffer=buffer)
            self.assertRaises(BufferError, buffer.close)
            event.set()
            del event
            gc.collect()
            buffer.close()
        with self.assertRaises(ValueError):
            memory.buf
        self.assertRaisesRegex(ValueError, "closed", tocsin.SharedEvent, buffer=memory)
        self.assertRaisesRegex(ValueError, "closed", lambda: memory.size)
        memory.close()
        with tocsin.SharedMemory.anonymous(64) as other:
            self.assertEqual(bytes(other.buf), bytes(64))
        self.assertIn("closed", repr(other))

    def test_the_last_user_keeps_the_memory(self):
        event = tocsin.SharedEvent(buffer=tocsin.SharedMemory.anonymous(64))
        gc.collect()
        event.set()
        self.assertTrue(event.buffer.buf[4] & 1)

    def test_a_cycle_is_collected(self):
        class Event(tocsin.SharedEvent):
            pass

        event = Event()
        event.me = event
        gone, memory = weakref.ref(event), weakref.ref(event.buffer)
        del event
        gc.collect()
        self.assertEqual((gone(), memory()), (None, None))

    def test_bad_input(self):
        memory = tocsin.SharedMemory.anonymous(4096)
        event = tocsin.SharedEvent(buffer=memory)
        read_only = memoryview(memory.buf).toreadonly()
        closed = shared_memory.SharedMemory(create=True, size=64)
        closed.close()
        closed.unlink()
        for error, text, call in (
            (TypeError, "not int", lambda: tocsin.SharedEvent(buffer=3)),
            (TypeError, "positional|arguments", lambda: tocsin.SharedEvent(memory)),
            (ValueError, "not shared|multiple of 64", lambda: tocsin.SharedEvent(buffer=bytearray(256))),
            (BufferError, "", lambda: tocsin.SharedEvent(buffer=read_only)),
            (ValueError, "closed", lambda: tocsin.SharedEvent(buffer=closed)),
            (ValueError, "multiple of 64", lambda: tocsin.SharedEvent(buffer=memory, offset=8)),
            (ValueError, "4096 bytes", lambda: tocsin.SharedEvent(buffer=memory, offset=-64)),
            (ValueError, "4096 bytes", lambda: tocsin.SharedEvent(buffer=memory, offset=8192)),
            (ValueError, "takes 2048 bytes", lambda: tocsin.SharedLock(buffer=memory, offset=2112)),
            (ValueError, "holds a shared_manual_reset_event", lambda: tocsin.SharedLock(buffer=memory)),
            (ValueError, "no buffer", lambda: tocsin.SharedEvent(offset=64)),
            (ValueError, "give no value", lambda: tocsin.SharedSemaphore(1, buffer=memory)),
            (ValueError, ">= 0", lambda: tocsin.SharedSemaphore(-1)),
            (OverflowError, "at most", lambda: tocsin.SharedSemaphore(2**40)),
            (OverflowError, "at most", lambda: tocsin.SharedSemaphore(2**31 - 1).release()),
            (ValueError, "one or more", lambda: tocsin.SharedSemaphore().release(0)),
            (ValueError, "non-blocking", lambda: tocsin.SharedLock().acquire(False, 1)),
            (ValueError, "nan", lambda: event.wait(float("nan"))),
            (TypeError, "seconds", lambda: event.wait("soon")),
            (RuntimeError, "__init__", lambda: tocsin.SharedEvent.__new__(tocsin.SharedEvent).set()),
            (RuntimeError, "once", event.__init__),
            (RuntimeError, "while multiprocessing starts", lambda: pickle.dumps(event)),
            (TypeError, "in a mmap", lambda: pickle.dumps(tocsin.SharedEvent(buffer=mmap.mmap(-1, 64)))),
            (TypeError, "cannot create", tocsin.SharedMemory),
            (ValueError, "positive", lambda: tocsin.SharedMemory.anonymous(0)),
            (ValueError, "a slash", lambda: tocsin.SharedMemory.create("no/slash/", 64)),
            (ValueError, "null", lambda: tocsin.SharedMemory.open("/a\0b")),
            (TypeError, "a name is a str", lambda: tocsin.SharedMemory.open(b"/a")),
            (OSError, "descriptor", lambda: tocsin.SharedMemory.map(2**30)),
        ):
            with self.subTest(text=text):
                self.assertRaisesRegex(error, text, call)
        # Nothing of this has changed the event.
        self.assertFalse(event.is_set())
        event.set()
        self.assertTrue(event.wait(0))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""No wait leaves anything behind, however it ends: an object of Python, memory of C++, a descriptor, a thread."""

import asyncio
import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import unittest

import support
import tocsin


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                     "fsmblks", "uordblks", "fordblks", "keepcost")]


def bytes_in_use():
    """What malloc() has handed out, in all threads' arenas; 0 where the system does not say."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return 0
    mallinfo2.restype = _Mallinfo2
    now = mallinfo2()
    return now.uordblks + now.hblkhd


def descriptors():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def in_a_thread(wait, make_ready, source):
    with support.Threads(1, wait) as threads:
        support.wait_until_parked(source, 1)
        make_ready()
        threads.join()


class Stop(Exception):
    pass


def interrupted(wait):
    def handler(*_):
        raise Stop

    former = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        wait()
    except Stop:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def refused(call, *arguments, **more):
    try:
        call(*arguments, **more)
    except (TypeError, ValueError, OSError, RuntimeError, KeyError):
        return
    raise AssertionError("it was not refused")


def everything():
    """(name, how often, what must leave nothing behind); each waits 150 times at least"""
    event, token, permits, lock, queue = (tocsin.Event(), tocsin.AutoResetEvent(), tocsin.Semaphore(0), tocsin.Lock(),
                                          tocsin.Queue(2))
    ours, theirs = socket.socketpair()
    always = tocsin.Event()
    always.set()
    condition, waits = tocsin.Condition(), tocsin.WaitSet()
    soon = {"timeout": 0.00001}

    def cycle_queue():
        queue.put(object())
        queue.get()

    def condition_wait():
        with condition:
            condition.wait(0.00001)

    def wait_set():
        waits.add(always, object())
        waits.wait()
        waits.remove(always)

    def shut_queue():
        one = tocsin.Queue()
        one.put(object())
        one.close()
        list(one)

    def signal_source():
        with tocsin.Signal(signal.SIGUSR2) as arrived:
            tocsin.wait_any(arrived, timeout=0)

    def ended_thread():
        thread = threading.Thread(target=event.wait, args=(0.0005,))
        thread.start()
        tocsin.wait_any(thread)
        thread.join()

    async def cancelled():
        task = asyncio.ensure_future(tocsin.wait_async(token, event))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def awaited():
        asyncio.get_running_loop().call_soon(token.set)
        await token

    async def many_coroutines():
        for _ in range(50):
            await cancelled()
            await awaited()
            await tocsin.wait_async(token, permits, timeout=0.00001)

    yield "objects", 300, lambda: [kind() for kind in (tocsin.Event, tocsin.AutoResetEvent, tocsin.Semaphore, tocsin.Lock,
                                                       tocsin.RLock, tocsin.Condition, tocsin.Queue, tocsin.WaitSet)]
    yield "InterpreterEvent", 300, lambda: ((one := tocsin.InterpreterEvent()), tocsin.InterpreterEvent.attach(one.handle))
    yield "time-outs of each type", 150, lambda: (event.wait(0.00001), token.wait(0.00001), permits.acquire(**soon))
    yield "wait_any, ready", 300, lambda: tocsin.wait_any(event, ours, always)
    yield "wait_any, time-out", 150, lambda: tocsin.wait_any(event, token, ours, **soon)
    yield "wait_all, time-out", 150, lambda: tocsin.wait_all(always, token, **soon)
    yield "deadlines", 300, lambda: tocsin.wait_any(event, tocsin.monotonic_deadline(0))
    yield "a hundred sources", 150, lambda: tocsin.wait_any(*[event] * 100, **soon)
    yield "queue", 300, cycle_queue
    yield "closed queue", 300, shut_queue
    yield "condition", 150, condition_wait
    yield "WaitSet", 150, wait_set
    yield "Signal", 150, signal_source
    yield "woken thread, event", 150, lambda: in_a_thread(token.wait, token.set, token)
    yield "woken thread, lock", 150, lambda: (lock.acquire(), in_a_thread(lock.acquire, lock.release, lock), lock.release())
    yield "woken thread, any", 150, lambda: in_a_thread(lambda: tocsin.wait_any(ours, token), token.set, token)
    yield "the end of a thread", 150, ended_thread
    yield "exceptions of handlers", 150, lambda: interrupted(token.wait)
    yield "exceptions of handlers, any", 150, lambda: interrupted(lambda: tocsin.wait_any(token, ours))
    yield "coroutines", 3, lambda: asyncio.run(many_coroutines())
    shared = tocsin.SharedEvent(), tocsin.SharedAutoResetEvent(), tocsin.SharedSemaphore(0), tocsin.SharedLock()

    def shared_lock():
        with shared[3]:
            refused(shared[3].acquire)

    yield "shared objects", 150, lambda: [type(one)(buffer=type(one)().buffer) for one in (*shared[:2], shared[3])]
    yield "shared semaphores", 150, tocsin.SharedSemaphore
    yield "shared time-outs", 150, lambda: (shared[0].wait(0.00001), shared[1].wait(0.00001), shared[2].acquire(**soon))
    yield "shared, wait_any", 150, lambda: tocsin.wait_any(event, ours, *shared[:3], **soon)
    yield "shared, exceptions of handlers", 150, lambda: interrupted(shared[1].wait)
    yield "shared lock", 150, shared_lock
    yield "shared refusals", 150, lambda: (refused(tocsin.SharedEvent, buffer=shared[3].buffer),
                                           refused(tocsin.SharedLock, buffer=shared[0].buffer),
                                           refused(tocsin.SharedMemory.open, "/no such memory"),
                                           refused(shared[0].buffer.__reduce__), refused(tocsin.wait_all, *shared[:2]))
    yield "lists of waits", 150, lambda: (tocsin.name(event, "event"), tocsin.parked_waits_as_json(), tocsin.name(event, ""))
    yield "refusals", 150, lambda: (refused(event.wait, "x"), refused(tocsin.wait_any, event, object()),
                                    refused(tocsin.wait_all, event, event, timeout=0), refused(event.wait, float("nan")),
                                    refused(tocsin.wait_any, event, 10**6), refused(waits.remove, event),
                                    refused(tocsin.Semaphore, -1), refused(event.__reduce__))
    ours.close()
    theirs.close()


class Leaks(unittest.TestCase):
    def test_nothing_is_left_behind(self):
        for name, times, action in everything():
            with self.subTest(name=name):
                for _ in range(times):  # what is made once, and what the allocators keep
                    action()
                # The interpreter keeps some objects for later, and does so now and then.
                self.assertLess(self.growth(times, action), 100, name)

    def growth(self, times, action):
        """By what the counts grow: by 150 at least if each wait leaves anything. The best round counts, because in
        some rounds the interpreter makes what it keeps for later."""
        best = None
        for _ in range(5):
            gc.collect()
            before = sys.getallocatedblocks(), bytes_in_use() // 16, descriptors(), threading.active_count()
            for _ in range(times):
                action()
            gc.collect()
            after = sys.getallocatedblocks(), bytes_in_use() // 16, descriptors(), threading.active_count()
            grown = max(now - then for now, then in zip(after, before))
            best = grown if best is None else min(best, grown)
            if best < 100:
                break
        return best

    def test_references_to_sources_are_given_back(self):
        event, token = tocsin.Event(), tocsin.AutoResetEvent()
        before = sys.getrefcount(event), sys.getrefcount(token)
        for _ in range(10):
            tocsin.wait_any(event, token, timeout=0.00001)
            tocsin.wait_all(event, token, timeout=0.00001)
            asyncio.run(tocsin.wait_async(event, token, timeout=0.00001))
            interrupted(lambda: tocsin.wait_any(event, token))
        gc.collect()
        self.assertEqual((sys.getrefcount(event), sys.getrefcount(token)), before)


if __name__ == "__main__":
    unittest.main()

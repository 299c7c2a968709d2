# SPDX-License-Identifier: Apache-2.0
"""What becomes a source by way of a descriptor: threads and processes. And the errors for what does not."""

import os
import queue
import threading

from tocsin import _core

try:
    _Closed = queue.ShutDown
except AttributeError:  # before 3.13
    class _Closed(Exception):
        pass


class QueueClosed(_Closed):
    """The queue is closed: a put() came too late, or a get() found nothing left."""


QueueClosed.__module__ = "tocsin"

PIDFD_THREAD = os.O_EXCL
_ended = _core.Event()
_ended.set()


class _Descriptor:
    """Owns a descriptor that is ready once a thread or a process has ended."""

    __slots__ = ("_number",)

    def __init__(self, number):
        self._number = number

    def fileno(self):
        return self._number

    def __del__(self):
        os.close(self._number)


def _end_of_thread(thread):
    if thread.ident is None:
        raise RuntimeError("cannot wait for a thread before it is started")
    if thread is threading.current_thread():
        raise RuntimeError("cannot wait for the end of the current thread")
    if not thread.is_alive():
        return _ended
    try:
        # Linux 6.9 and later have descriptors of threads.
        end = _Descriptor(os.pidfd_open(thread.native_id, PIDFD_THREAD))
    except (AttributeError, OSError):
        return _joined_elsewhere(thread)
    # The number may have been taken by another thread meanwhile.
    return end if thread.is_alive() else _ended


def _joined_elsewhere(thread):
    """An event that a further thread sets, where the system has no descriptors of threads."""
    end = _core.Event()

    def join():
        thread.join()
        end.set()

    threading.Thread(target=join, name=f"tocsin: end of {thread.name}", daemon=True).start()
    return end


def _end_of_process(number):
    try:
        return _Descriptor(os.pidfd_open(number))
    except ProcessLookupError:
        return _ended


def as_source(given):
    """What stands for the object in a wait: an event, or something with fileno()."""
    if isinstance(given, threading.Thread):
        return _end_of_thread(given)
    sentinel = getattr(given, "sentinel", None)  # multiprocessing.Process
    if isinstance(sentinel, int):
        return sentinel
    if isinstance(getattr(given, "pid", None), int) and hasattr(given, "poll"):  # subprocess.Popen
        return _ended if given.returncode is not None else _end_of_process(given.pid)
    kind = type(given).__name__
    if isinstance(given, (queue.Queue, queue.SimpleQueue)):
        raise TypeError(f"queue.{kind} has nothing to wait on; use tocsin.Queue, which has the same methods")
    if type(given).__module__ in ("threading", "_thread", "asyncio.locks"):
        raise TypeError(f"{type(given).__module__}.{kind} can't be waited for with others; use tocsin's type of that name")
    if isinstance(given, (float, int)):
        raise TypeError(f"can't wait for {given!r}; give a time as timeout=, or as tocsin.monotonic_deadline()")
    if isinstance(given, (list, tuple, set)):
        raise TypeError(f"can't wait for a {kind}; give the sources one by one: wait_any(*sources)")
    raise TypeError(f"can't wait for {kind!r} object: it is no event, semaphore, queue, deadline, thread or process of "
                    "a kind known here, and has no fileno()")


def wait_async(*sources, timeout=None, deadline=None):
    """Wait in a coroutine of asyncio or trio until one of the sources is ready, take it and no other, and return its
    index.

    None if the time has passed first. As wait_any(), but the loop runs on."""
    from tocsin import _coroutines  # not before: few programs need it
    return _coroutines.wait_any(sources, timeout, deadline)


def wait_all_async(*sources, timeout=None, deadline=None):
    """Wait in a coroutine of asyncio or trio until all sources are ready at the same instant, and take them in one
    step.

    False if the time has passed first. As wait_all(), but the loop runs on."""
    from tocsin import _coroutines
    return _coroutines.wait_all(sources, timeout, deadline)


wait_async.__module__ = wait_all_async.__module__ = "tocsin"
_core._set_names(as_source, QueueClosed)

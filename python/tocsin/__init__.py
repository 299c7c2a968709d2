# SPDX-License-Identifier: Apache-2.0
"""Waits for threads: events, semaphores, queues, sockets, processes and deadlines, also several at once.

    ready, stop = tocsin.Event(), tocsin.Event()
    which = tocsin.wait_any(stop, ready, connection, timeout=1.5)   # 0, 1, 2, or None for time

docs/python.md of the project is the guide.
"""

from tocsin._conditions import Barrier, BrokenBarrierError, Condition
from tocsin._core import (
    AutoResetEvent,
    BoundedSemaphore,
    Deadline,
    Event,
    InterpreterEvent,
    Lock,
    LockLost,
    Queue,
    Ready,
    RLock,
    Semaphore,
    SharedAutoResetEvent,
    SharedEvent,
    SharedLock,
    SharedMemory,
    SharedSemaphore,
    Signal,
    WaitSet,
    __version__,
    monotonic_deadline,
    readable,
    wait_all,
    wait_any,
    waiting_on,
    writable,
)
from tocsin._diagnosis import describe_parked_waits, name, parked_waits, parked_waits_as_json
from tocsin._patch import patch_threading
from tocsin._sources import QueueClosed, wait_all_async, wait_async

__all__ = [
    "AutoResetEvent",
    "Barrier",
    "BoundedSemaphore",
    "BrokenBarrierError",
    "Condition",
    "Deadline",
    "Event",
    "InterpreterEvent",
    "Lock",
    "LockLost",
    "Queue",
    "QueueClosed",
    "RLock",
    "Ready",
    "Semaphore",
    "SharedAutoResetEvent",
    "SharedEvent",
    "SharedLock",
    "SharedMemory",
    "SharedSemaphore",
    "Signal",
    "WaitSet",
    "__version__",
    "describe_parked_waits",
    "monotonic_deadline",
    "name",
    "parked_waits",
    "parked_waits_as_json",
    "patch_threading",
    "readable",
    "wait_all",
    "wait_all_async",
    "wait_any",
    "wait_async",
    "waiting_on",
    "writable",
]

# SPDX-License-Identifier: Apache-2.0
"""Waits for threads: events, semaphores, queues, sockets, processes and deadlines, also several at once.

Each wait takes `timeout`, in seconds: None is for ever, a negative one is zero, and `nan` is a ValueError. A wait never
ends early. In the main thread each wait ends at once when a signal handler raises, as that of Ctrl-C does; what it had
been handed goes to the next waiter. Any thread may make each call. Signal handlers and destructors may call `set()` and
`release()`, too.
"""

import mmap
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from multiprocessing.process import BaseProcess
from threading import BrokenBarrierError as BrokenBarrierError
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, TypedDict, TypeVar, Union, final

from typing_extensions import Self, disjoint_base

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

_T = TypeVar("_T")

class _HasFileno(Protocol):
    def fileno(self) -> int: ...

_Descriptor = Union[int, _HasFileno]

class _HasBuf(Protocol):
    @property
    def buf(self) -> Any: ...

_SharedBuffer = Union[SharedMemory, mmap.mmap, memoryview, _HasBuf]
_Source = Union[
    Event,
    AutoResetEvent,
    InterpreterEvent,
    Semaphore,
    SharedEvent,
    SharedAutoResetEvent,
    SharedSemaphore,
    Queue[Any],
    Deadline,
    Ready,
    threading.Thread,
    BaseProcess,
    subprocess.Popen[Any],
    _Descriptor,
]

__version__: str

@disjoint_base
class Event:
    """A gate: set() releases every thread that waits, also if clear() follows at once, and lets later ones pass."""

    def set(self) -> None:
        """Release every thread that waits at this moment, and let later ones pass until clear()."""
    def clear(self) -> None:
        """Make the event unset. Threads that were released stay released."""
    def is_set(self) -> bool:
        """Return whether the event is set now. Takes nothing."""
    def isSet(self) -> bool:
        """Deprecated: use is_set()."""
    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, at most `timeout` seconds. Return whether it was set."""
    def __await__(self) -> Generator[Any, None, bool]: ...

@disjoint_base
class AutoResetEvent:
    """A token: each set() releases exactly one thread, one that waits or the next that arrives."""

    def set(self) -> None:
        """Release the thread that has waited longest; if none waits, the next one that arrives. If the event is set
        already, nothing changes."""
    def clear(self) -> None:
        """Make the event unset. Threads that were released stay released."""
    def is_set(self) -> bool:
        """Return whether the event is set now. Takes nothing."""
    def isSet(self) -> bool:
        """Deprecated: use is_set()."""
    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, at most `timeout` seconds, and make it unset. Return whether it was set."""
    def __await__(self) -> Generator[Any, None, bool]: ...

@disjoint_base
class InterpreterEvent:
    """An event that interpreters of one process share: each has an object of its own, made by attach() or by unpickling.
    All objects of an event compare as different ones."""

    @classmethod
    def attach(cls, handle: int, /) -> Self:
        """Return an object for the event that has this handle, in whichever interpreter of this process it was made.
        ValueError if it has gone."""
    @property
    def handle(self) -> int:
        """The number by which another interpreter of this process attaches to the event. It holds while any object for
        the event lives."""
    def set(self) -> None:
        """Release every thread that waits at this moment, in whichever interpreter, and let later ones pass until
        clear()."""
    def clear(self) -> None:
        """Make the event unset. Threads that were released stay released."""
    def is_set(self) -> bool:
        """Return whether the event is set now. Takes nothing."""
    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, at most `timeout` seconds. Return whether it was set."""
    def __await__(self) -> Generator[Any, None, bool]: ...

@disjoint_base
class Semaphore:
    """A count of permits. Each permit is handed to the thread that has waited longest."""

    def __init__(self, value: int = 1) -> None: ...
    @property
    def value(self) -> int:
        """How many permits are free now."""
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a permit; wait until there is one, at most `timeout` seconds. Return whether it took one. Waiting
        threads are served first in, first out."""
    def release(self, n: int = 1) -> None:
        """Give `n` permits: to threads that wait, oldest first, and the rest to the count."""
    def __enter__(self) -> bool: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def __await__(self) -> Generator[Any, None, bool]: ...

class BoundedSemaphore(Semaphore):
    """A count of permits that never exceeds its first value: release() raises ValueError instead."""

@disjoint_base
class Lock:
    """A lock that one thread has at a time, and that any thread may free."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; wait until it is free, at most `timeout` seconds. Return whether it was taken."""
    def release(self) -> None:
        """Free the lock. Any thread may do so."""
    def locked(self) -> bool:
        """Return whether the lock is taken now."""
    def __enter__(self) -> bool: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@disjoint_base
class RLock:
    """A lock that its owner may take several times, and frees as often."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; wait until it is free, at most `timeout` seconds. Return whether it was taken."""
    def release(self) -> None:
        """Undo one acquire() of this thread; the last one frees the lock."""
    def locked(self) -> bool:
        """Return whether any thread has the lock."""
    def __enter__(self) -> bool: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class SharedMemory:
    """Memory that processes share, made by anonymous(), create(), open(), open_or_create() or map(). It is a buffer."""

    @classmethod
    def anonymous(cls, size: int, /) -> SharedMemory:
        """Make memory without a name, full of zeros. It can be pickled while a child process is being started. Nobody
        can truncate it."""
    @classmethod
    def create(cls, name: str, size: int, permissions: int = 0o600) -> SharedMemory:
        """Make memory with a name, full of zeros. FileExistsError if there is such memory. A name is a slash and up to
        254 other characters."""
    @classmethod
    def open(cls, name: str, /) -> SharedMemory:
        """Open the memory with this name. FileNotFoundError if there is none."""
    @classmethod
    def open_or_create(cls, name: str, size: int, permissions: int = 0o600) -> SharedMemory:
        """Open the memory with this name, or make it. ValueError if it has another size. Several processes may call
        this at once."""
    @classmethod
    def map(cls, descriptor: _Descriptor, /) -> SharedMemory:
        """Map the whole of a file or a memfd. The descriptor stays the caller's."""
    @staticmethod
    def unlink(name: str, /) -> bool:
        """Remove the name, and return whether there was one. Who has the memory keeps it. Nothing else removes a name:
        neither close() nor the end of a process."""
    @property
    def name(self) -> str | None:
        """The name, or None."""
    @property
    def size(self) -> int:
        """The number of bytes."""
    @property
    def buf(self) -> memoryview:
        """The bytes, as a new memoryview."""
    @property
    def descriptor(self) -> int:
        """The number of the file descriptor, for socket.send_fds() and map(). close() closes it."""
    def close(self) -> None:
        """Unmap the memory. BufferError while an object or a memoryview uses it."""
    def __enter__(self) -> SharedMemory: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@disjoint_base
class SharedEvent:
    """An Event of several processes. It lives in a buffer, or in memory of its own. Zeroed memory is an unset event. A
    process that is killed blocks nobody."""

    SIZE: ClassVar[int]
    @property
    def buffer(self) -> Any:
        """The memory that the object is in."""
    @property
    def offset(self) -> int:
        """Its place there, in bytes."""
    def __init__(self, *, buffer: _SharedBuffer | None = None, offset: int = 0) -> None: ...
    def set(self) -> None:
        """Release every thread that waits at this moment, in all processes, and let later ones pass until clear()."""
    def clear(self) -> None:
        """Make the event unset. Threads that were released stay released."""
    def is_set(self) -> bool:
        """Return whether the event is set now. Takes nothing."""
    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, at most `timeout` seconds. Return whether it was set."""
    def __await__(self) -> Generator[Any, None, bool]: ...

@disjoint_base
class SharedAutoResetEvent:
    """An AutoResetEvent of several processes: each set() releases exactly one thread. What was handed to a process that
    dies goes to the next thread."""

    SIZE: ClassVar[int]
    @property
    def buffer(self) -> Any:
        """The memory that the object is in."""
    @property
    def offset(self) -> int:
        """Its place there, in bytes."""
    def __init__(self, *, buffer: _SharedBuffer | None = None, offset: int = 0) -> None: ...
    def set(self) -> None:
        """Release the thread that has waited longest, in whichever process; if none waits, the next one that arrives.
        If the event is set already, nothing changes."""
    def clear(self) -> None:
        """Make the event unset. Threads that were released stay released."""
    def is_set(self) -> bool:
        """Return whether the event is set now. Takes nothing."""
    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, at most `timeout` seconds, and make it unset. Return whether it was set."""
    def __await__(self) -> Generator[Any, None, bool]: ...

@disjoint_base
class SharedSemaphore:
    """A Semaphore of several processes, in memory of its own, or in a buffer: then it has the permits that the memory
    says, in zeroed memory none, and no value may be given."""

    SIZE: ClassVar[int]
    @property
    def buffer(self) -> Any:
        """The memory that the object is in."""
    @property
    def offset(self) -> int:
        """Its place there, in bytes."""
    def __init__(
        self, value: int | None = 1, *, buffer: _SharedBuffer | None = None, offset: int = 0
    ) -> None: ...
    @property
    def value(self) -> int:
        """How many permits are free now."""
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a permit; wait until there is one, at most `timeout` seconds. Return whether it took one. Waiting
        threads are served first in, first out, whichever processes they are in."""
    def release(self, n: int = 1) -> None:
        """Give `n` permits: to threads that wait, oldest first, and the rest to the count."""
    def __enter__(self) -> bool: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def __await__(self) -> Generator[Any, None, bool]: ...

@disjoint_base
class SharedLock:
    """A lock of several processes that outlives its owner: if the thread or process that has it dies, the next owner
    gets it, and `owner_died` is true. Zeroed memory is a free lock."""

    SIZE: ClassVar[int]
    @property
    def buffer(self) -> Any:
        """The memory that the object is in."""
    @property
    def offset(self) -> int:
        """Its place there, in bytes."""
    def __init__(self, *, buffer: _SharedBuffer | None = None, offset: int = 0) -> None: ...
    @property
    def owner_died(self) -> bool:
        """Whether an earlier owner has died with the lock, and nobody has called mark_repaired() since. True only for
        the thread that has the lock."""
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take the lock; wait until it is free, at most `timeout` seconds. Return whether it was taken; then look at
        `owner_died`. LockLost if nobody can have it any more. First come, first served."""
    def release(self) -> None:
        """Free the lock. Only the thread that has acquired it may do so, with the same object. While `owner_died` is
        true, this makes the lock lost for all."""
    def mark_repaired(self) -> None:
        """Say that what the lock protects is in order again, after an owner has died. Then `owner_died` is false."""
    def __enter__(self) -> bool: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

class LockLost(RuntimeError):
    """Nobody can have the SharedLock any more: an owner died, and the next one did not repair what the lock protects."""

class _AnyLock(Protocol):
    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool: ...
    def release(self) -> None: ...

class Condition(threading.Condition):
    """A condition over a lock: an RLock of its own, or any object with acquire() and release()."""

    def __init__(self, lock: _AnyLock | None = None) -> None: ...
    def wait(self, timeout: float | None = None) -> bool:
        """Free the lock, wait until notified, at most `timeout` seconds, and take the lock back.

        Return whether the thread was notified.
        """
    def notify(self, n: int = 1) -> None:
        """Release `n` threads that wait, oldest first, or all if there are fewer. The lock must be held."""

class Barrier(threading.Barrier):
    """A barrier as threading.Barrier, whose threads wait for a condition of ours."""

    def __init__(
        self, parties: int, action: Callable[[], None] | None = None, timeout: float | None = None
    ) -> None: ...

class QueueClosed(Exception):
    """The queue is closed: a put() came too late, or a get() found nothing left."""

@disjoint_base
class Queue(Generic[_T]):
    """A first-in, first-out queue of threads, as queue.Queue, that can be closed and waited for alongside other things."""

    def __init__(self, maxsize: int = 0) -> None: ...
    @property
    def maxsize(self) -> int:
        """How many items the queue holds at most; 0: any number."""
    @property
    def closed(self) -> bool:
        """Whether close() was called."""
    def put(self, item: _T, block: bool = True, timeout: float | None = None) -> None:
        """Put an item; wait while the queue is full. Raises queue.Full, or QueueClosed."""
    def put_nowait(self, item: _T, /) -> None:
        """put(item, block=False)"""
    def get(self, block: bool = True, timeout: float | None = None) -> _T:
        """Remove and return an item; wait while there is none. Raises queue.Empty, or QueueClosed once the queue is
        closed and empty."""
    def get_nowait(self) -> _T:
        """get(block=False)"""
    def qsize(self) -> int:
        """Return how many items there are."""
    def empty(self) -> bool:
        """Return whether there are no items."""
    def full(self) -> bool:
        """Return whether there are `maxsize` items."""
    def task_done(self) -> None:
        """Say that one item is done, for join()."""
    def join(self) -> None:
        """Wait until all items that were put are done."""
    def close(self) -> None:
        """Let no more items in. Those that are there can still be got; then get() raises QueueClosed, and iteration
        ends."""
    def shutdown(self, immediate: bool = False) -> None:
        """close(); if `immediate`, also drop the items."""
    def __iter__(self) -> Iterator[_T]: ...
    def __next__(self) -> _T: ...

@final
class WaitSet:
    """Members that are added once and waited for often. The cost of a wait grows with the members that are ready, not
    with those that are idle."""

    def add(self, source: _Source, data: object = None) -> None:
        """Add an event, semaphore, queue, descriptor, thread or process. When it is ready, waits report `data`, or the
        source itself if none is given."""
    def remove(self, source: _Source, /) -> None:
        """Remove a member; KeyError if it is none."""
    def wait(self, timeout: float | None = None, deadline: Deadline | None = None) -> list[Any]:
        """Wait until a member is ready, and return the data of those that are, at most 64; an empty list if the time
        has passed. One thread at a time may wait."""
    def __len__(self) -> int: ...
    def __contains__(self, source: object, /) -> bool: ...

@final
class Deadline:
    """A moment on the monotonic clock, made by monotonic_deadline(). It is a source, and the `deadline` of a wait."""

    def remaining(self) -> float:
        """Return the seconds that are left, at least 0."""
    def passed(self) -> bool:
        """Return whether the deadline has passed."""

@final
class Ready:
    """A descriptor to wait for, made by readable() or writable()."""

@final
class Signal:
    """The arrivals of a signal as a source of any thread. While it exists, the signal's default action does not
    happen."""

    def __new__(cls, signalnum: int) -> Signal: ...
    def fileno(self) -> int:
        """Return the descriptor, which is readable when the signal has arrived. Only poll it."""
    def take(self) -> bool:
        """Return whether the signal has arrived since the last call that returned True."""
    def close(self) -> None:
        """Restore what the signal did before."""
    def __enter__(self) -> Signal: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

class _Wait(TypedDict, total=False):
    type: str
    address: int
    name: str
    thread: int
    seconds: float
    python: str
    stack: list[str]

def wait_any(*sources: _Source, timeout: float | None = None, deadline: Deadline | None = None) -> int | None:
    """Wait until one of the sources is ready, take it and no other, and return its index; None if the time has passed
    first. If several are ready at the start, the lowest index wins."""
def wait_all(*sources: _Source, timeout: float | None = None, deadline: Deadline | None = None) -> bool:
    """Wait until all sources are ready at the same instant, and take them in one step. Return False if the time has
    passed first; then nothing was taken."""
async def wait_async(
    *sources: _Source, timeout: float | None = None, deadline: Deadline | None = None
) -> int | None:
    """Wait in a coroutine of asyncio or trio until one of the sources is ready, take it and no other, and return its
    index.

    None if the time has passed first. As wait_any(), but the loop runs on.
    """
async def wait_all_async(
    *sources: _Source, timeout: float | None = None, deadline: Deadline | None = None
) -> bool:
    """Wait in a coroutine of asyncio or trio until all sources are ready at the same instant, and take them in one
    step.

    False if the time has passed first. As wait_all(), but the loop runs on.
    """
def readable(descriptor: _Descriptor, /) -> Ready:
    """A source that is ready when there is something to read."""
def writable(descriptor: _Descriptor, /) -> Ready:
    """A source that is ready when there is room to write."""
def monotonic_deadline(seconds: float, /) -> Deadline:
    """The moment that is so many seconds from now."""
def waiting_on(source: _Source | Lock | RLock | SharedLock, /) -> int:
    """Return how many waits are queued for this object; of one that processes share, how many of this process."""
def name(source: _Source | Lock | RLock | SharedLock, text: str) -> None:
    """Name an event, semaphore, lock or queue in the lists of waits. An empty text removes the name.

    The name stays with the address, so remove it before the object goes.
    """
def parked_waits() -> list[_Wait]:
    """All waits of the process that are queued now, the longest first, as a list of dictionaries.

    Each has "type", "address" (of a descriptor: its number), "name", "thread" (the system's number), "seconds", and,
    for a thread of Python, "python" (the name of the thread) and "stack" (its lines, the innermost last). Not for a
    hot path.
    """
def describe_parked_waits() -> str:
    """The same as text: a line for each wait, and below it the stack of its thread."""
def parked_waits_as_json() -> str:
    """The same as one line of JSON: {"parked_waits": [...]}."""
def patch_threading(*names: str) -> None:
    """Put these types of tocsin into threading, under the same names: all that there are, if none is named.

    Call it before anything is imported that takes a type out of threading: what was imported or made before keeps
    what it has. Returns nothing. Calling it again changes nothing.
    """

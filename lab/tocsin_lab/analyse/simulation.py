# SPDX-License-Identifier: Apache-2.0
"""Simulates a wake-up of many threads, and a busy bucket of the lot, on a machine with a given number of cores. Times
are in nanoseconds; nothing is random but the hash. docs/scaling.md lists the assumptions."""

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

# Constants of the lot and its relay. lab/tests/test_constants.py asserts that the C++ source has the same.
BUCKETS = 4096  # of the lot
RELAY_ABOVE = 4  # the waker itself releases up to this many
RELAY_WAKES = 16  # each woken thread of a relay wakes this many
BATCH = 64  # a delegate, and the waiters of a gate that it wakes by one call


@dataclass(frozen=True)
class Costs:
    """How long the machine takes for each step, in nanoseconds."""

    wake: float  # a call that wakes a sleeper whose core is awake
    wake_idle: float  # the same call where the core is idle
    start_idle: float  # from the beginning of that call until the sleeper runs
    switch: float  # to put one thread to sleep and continue with the next
    migration: float  # in addition, for a thread that last ran on another core
    line: float  # a cache line from another core
    hold: float  # how long a bucket's lock is held


def waker_wakes(cores: int) -> int:
    """How many threads the waker of many wakes before it continues."""
    return 1 if cores <= 2 else 8 if cores >= 16 else cores // 2


class Way(Enum):
    """How the waiting threads are woken."""

    AT_ONCE = "one call for all"
    ONE_BY_ONE = "one call each"
    CHAIN = "relay of 1"
    RELAY = "relay of 16"
    BATCHES = "batches of 64"
    TREE = "tree of 16"


@dataclass(frozen=True)
class Duty:
    """To wake a thread, and to give it others that it wakes in turn."""

    index: int
    given: range = range(0)
    with_next: bool = False  # the same call wakes the thread of the next duty
    marked: int = 0  # threads whose nodes and words are written before the call


@dataclass(frozen=True)
class Awakening:
    held: float  # until the waker continues
    half: float
    last: float


class Clock:
    """Runs what is planned in order of time; of steps at the same time, the one that was planned first."""

    def __init__(self) -> None:
        self.now = 0.0
        self._plan: list[tuple[float, int, Callable[[], None]]] = []
        self._planned = 0

    def at(self, time: float, what: Callable[[], None]) -> None:
        self._planned += 1
        heapq.heappush(self._plan, (time, self._planned, what))

    def run(self) -> None:
        while self._plan:
            self.now, _, what = heapq.heappop(self._plan)
            what()


class Broadcast:
    """`waiters` threads sleep, spread over the cores; one more thread, on core 0, wakes them all and sleeps.

    A woken thread runs on the core it slept on if that core is idle, else on another idle core, else it queues for its
    own. A core that runs out of threads takes one from the longest queue. A thread that wakes another one of its own
    core queues behind it when the call returns, because it has run and the other has slept. The waker, which has run
    longest, queues behind all.
    """

    def __init__(self, way: Way, cores: int, waiters: int, costs: Costs) -> None:
        self.way, self.cores, self.costs = way, cores, costs
        self.clock = Clock()
        self.ready: list[deque[Callable[[], None]]] = [deque() for _ in range(cores)]
        self.idle = dict.fromkeys(range(1, cores))  # a set in insertion order
        self.queued = 0
        self.homes = [index % cores for index in range(waiters)]
        self.awake: list[float] = []
        self.held: float | None = None
        self.waker_waits: Callable[[int], None] | None = None  # for a core that no other thread wants
        self.counter_free = 0.0

    def run(self) -> Awakening:
        # Detaching the queue is one step under the lock; of the waiters' lines, it needs only the first one's.
        duties = deque(self.duties_of_the_waker())
        self.clock.at(self.costs.hold, lambda: self.wake_from(0, duties, self.waker_continues))
        self.clock.run()
        assert self.held is not None and len(self.awake) == len(self.homes)
        self.awake.sort()
        return Awakening(self.held, self.awake[(len(self.awake) - 1) // 2], self.awake[-1])

    def duties_of_the_waker(self) -> list[Duty]:
        everybody = range(len(self.homes))
        if self.way is Way.AT_ONCE:
            return self.one_call(everybody, marked=0)
        if self.way is Way.ONE_BY_ONE:
            return self.share(everybody, len(everybody))
        if self.way is Way.CHAIN:
            return self.share(everybody, 1)
        if len(everybody) <= RELAY_ABOVE:
            return self.few(everybody)
        return self.share(everybody, 1 if self.way is Way.BATCHES else waker_wakes(self.cores))

    def duties_of(self, remaining: range) -> list[Duty]:
        if self.way is Way.BATCHES:
            own, later = remaining[: BATCH - 1], remaining[BATCH - 1 :]
            if not later:
                return self.one_call(own, marked=len(own))
            return [Duty(later[0], later[1:], marked=len(own) + 1), *self.one_call(own, marked=0)]
        if self.way is Way.CHAIN:
            return self.share(remaining, 1)
        if len(remaining) <= RELAY_ABOVE:
            return self.few(remaining)
        return self.share(remaining, RELAY_WAKES)

    def few(self, threads: range) -> list[Duty]:
        if self.way is Way.BATCHES:  # the first has a word of its own
            return [*self.share(threads[:1], 1), *self.one_call(threads[1:], marked=len(threads) - 1)]
        return self.share(threads, len(threads))

    def one_call(self, threads: range, marked: int) -> list[Duty]:
        last = len(threads) - 1
        return [Duty(index, with_next=at != last, marked=0 if at else marked) for at, index in enumerate(threads)]

    def share(self, remaining: range, count: int) -> list[Duty]:
        """Wakes the first `count`. A relay gives all remaining threads to the last of them, a tree an equal part to
        each."""
        woken, left = remaining[:count], remaining[count:]
        if self.way is not Way.TREE or not woken:
            return [Duty(index, left if index == woken[-1] else range(0), marked=1) for index in woken]
        bounds = [len(left) * part // len(woken) for part in range(len(woken) + 1)]
        return [Duty(index, left[bounds[part] : bounds[part + 1]], marked=1) for part, index in enumerate(woken)]

    # What a thread does on a core

    def wake_from(self, core: int, duties: deque[Duty], then: Callable[[int], None]) -> None:
        """Does one wake after the other; then calls `then`, on whatever core the thread has reached."""
        if not duties:
            then(core)
            return
        duty = duties.popleft()
        given = duty.given
        target = self.core_for(self.homes[duty.index])
        asleep = target in self.idle
        cost = self.costs.wake_idle if asleep else self.costs.wake
        start = self.clock.now
        if self.cores > 1:
            start += 2 * duty.marked * self.costs.line  # the waiter's node and its word
        if self.way is Way.TREE and self.cores > 1:
            start += len(given) * self.costs.line  # dividing a list walks it
        moved = self.costs.migration if target != self.homes[duty.index] else 0.0

        def life(where: int) -> None:
            self.wake_from(where, deque(self.duties_of(given)), self.waiter_goes_on)

        if asleep:
            del self.idle[target]
            self.clock.at(start + self.costs.start_idle + moved, lambda: life(target))
        else:
            self.clock.at(start + cost, lambda: self.make_ready(target, life, moved))

        def returned() -> None:
            if duty.with_next or not self.ready[core]:
                self.wake_from(core, duties, then)
                return
            if then == self.waker_continues:
                self.waker_waits = lambda where: self.wake_from(where, duties, then)
            else:
                self.enqueue(core, lambda where: self.wake_from(where, duties, then), 0.0)
            self.next_on(core)

        self.clock.at(start + cost, returned)

    def core_for(self, last_core: int) -> int:
        return last_core if last_core in self.idle else next(iter(self.idle), last_core)

    def make_ready(self, core: int, life: Callable[[int], None], moved: float) -> None:
        self.enqueue(core, life, moved)
        if core in self.idle:  # it has fallen idle since
            del self.idle[core]
            self.next_on(core, self.costs.switch)

    def enqueue(self, core: int, life: Callable[[int], None], moved: float) -> None:
        self.ready[core].append((life, moved))
        self.queued += 1

    def next_on(self, core: int, after: float | None = None) -> None:
        """Gives a free core the next thread of its own queue, else one of the longest queue, else leaves it idle."""
        source, moved = core, 0.0
        if not self.ready[core]:
            if self.queued == 0:
                self.next_is_the_waker(core)
                return
            source = max(range(self.cores), key=lambda one: len(self.ready[one]))
            moved = self.costs.migration
        life, own = self.ready[source].popleft()
        self.queued -= 1
        took = self.costs.switch if after is None else after
        self.clock.at(self.clock.now + took + own + moved, lambda: life(core))

    def next_is_the_waker(self, core: int) -> None:
        if self.waker_waits is None:
            self.idle[core] = None
            return
        waker, self.waker_waits = self.waker_waits, None
        self.clock.at(self.clock.now + self.costs.switch, lambda: waker(core))

    def waiter_goes_on(self, core: int) -> None:
        self.awake.append(self.clock.now)
        if self.cores > 1:  # the threads count themselves in one counter, one after the other
            self.counter_free = max(self.counter_free, self.clock.now) + self.costs.line
            self.clock.at(self.counter_free, lambda: self.next_on(core))
        else:
            self.next_on(core)

    def waker_continues(self, core: int) -> None:
        self.held = self.clock.now
        self.next_on(core)


def broadcast(way: Way, cores: int, waiters: int, costs: Costs) -> Awakening:
    return Broadcast(way, cores, waiters, costs).run()


# The lot

LOOKS_NS = 1_000.0  # how long a thread looks at a bucket's lock before it sleeps: 20 pauses
LINES_A_USE = 3  # fetched from the core that held the lock before: the bucket, the event, the node


class BucketLock:
    """The lock of a bucket: a thread looks at it for a moment and then sleeps. The first to come takes it. That is
    often the thread that has just freed it, since the others see that only when its cache line has reached them."""

    def __init__(self) -> None:
        self.held = False
        self.wanted = False
        self.last: int | None = None
        self.spinners: deque[tuple[int, float]] = deque()  # (thread, how long it looks)
        self.sleepers: deque[int] = deque()


class Lot:
    """One thread on each core releases and parks without a pause: two uses of a bucket's lock.

    `waiters` is the number of events that the threads choose from at random; 0: all use one event.
    """

    def __init__(self, cores: int, waiters: int, costs: Costs, uses: int, seed: int = 1) -> None:
        self.costs, self.cores, self.left = costs, cores, uses
        self.clock = Clock()
        self.dice = random.Random(seed)
        self.events = [self.dice.randrange(BUCKETS) for _ in range(waiters)]
        self.locks: dict[int, BucketLock] = {}
        self.ended = 0.0
        self.done = 0

    def run(self) -> float:
        """Nanoseconds that a thread takes for a release and a park, which are two uses."""
        for thread in range(self.cores):
            self.begin(thread)
        self.clock.run()
        return self.ended * self.cores / self.done * 2

    def bucket(self) -> BucketLock:
        number = self.dice.choice(self.events) if self.events else 0
        return self.locks.setdefault(number, BucketLock())

    def begin(self, thread: int) -> None:
        if self.left == 0:
            return
        self.left -= 1
        self.take(thread, self.bucket())

    def take(self, thread: int, lock: BucketLock, *, slept: bool = False) -> None:
        if lock.held:
            if slept:
                lock.wanted = True
                lock.sleepers.append(thread)
            else:
                lock.spinners.append((thread, self.clock.now + LOOKS_NS))
            return
        if slept:
            lock.wanted = True  # other threads may still sleep
        self.hold(thread, lock)

    def hold(self, thread: int, lock: BucketLock) -> None:
        lock.held = True
        foreign = lock.last is not None and lock.last != thread
        lock.last = thread
        took = self.costs.hold + (LINES_A_USE * self.costs.line if foreign else 0.0)
        self.clock.at(self.clock.now + took, lambda: self.free(thread, lock))

    def free(self, thread: int, lock: BucketLock) -> None:
        now = self.clock.now
        self.done += 1
        self.ended = now
        lock.held = False
        # Threads that have looked for long enough have gone to sleep since.
        while lock.spinners and lock.spinners[0][1] < now:
            lock.sleepers.append(lock.spinners.popleft()[0])
            lock.wanted = True
        wake, lock.wanted = lock.wanted, False
        if lock.spinners:
            self.clock.at(now + self.costs.line, lambda: self.look(lock))
        if not wake:
            self.begin(thread)
            return
        if lock.sleepers:
            woken = lock.sleepers.popleft()
            self.clock.at(now + self.costs.start_idle, lambda: self.take(woken, lock, slept=True))
        self.clock.at(now + self.costs.wake_idle, lambda: self.begin(thread))

    def look(self, lock: BucketLock) -> None:
        if lock.spinners and not lock.held:
            self.hold(lock.spinners.popleft()[0], lock)


def lot(cores: int, waiters: int, costs: Costs, uses: int | None = None) -> float:
    """Nanoseconds for a release and a park, in each of `cores` threads; `waiters` events, or (0) one that all share."""
    return Lot(cores, waiters, costs, uses or 100 * cores + 1000).run()

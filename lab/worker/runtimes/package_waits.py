# SPDX-License-Identifier: Apache-2.0
"""The Python package alongside what else Python has, in the scenarios that package.py describes; worker.py says how it
is called, with the contestant after the scenario. It runs in CPython 3.9 and later."""

import asyncio
import ctypes
import gc
import importlib
import os
import queue
import select
import statistics
import sys
import threading
import time
from itertools import repeat

now = time.perf_counter_ns
TRIPS = 16  # of one batch
STACK = 256 * 1024


class Eventfd:
    """An event made of a descriptor, for one waiter: wait() takes the token, so clear() has no work."""

    def __init__(self):
        self.number = os.eventfd(0)

    def set(self):
        os.eventfd_write(self.number, 1)

    def wait(self):
        os.eventfd_read(self.number)

    def clear(self):
        pass

    def fileno(self):
        return self.number

    def __del__(self):
        os.close(self.number)


def event_type(contestant):
    if contestant == "eventfd":
        return Eventfd
    module, name = {"aiologic": ("aiologic", "REvent"), "gevent": ("gevent.event", "Event"),
                    "asyncio": ("asyncio", "Event")}.get(contestant, (contestant, "Event"))
    return getattr(importlib.import_module(module), name)


def sync(word):
    print(word, flush=True)
    sys.stdin.readline()


def batches(budget_ns, batch):
    """The times that `batch` returns, until the budget is spent."""
    times = []
    sync("ready")
    end = now() + budget_ns
    while not times or now() < end:
        times.append(batch())
    sync("done")
    return times


# One thread. Each loop does nothing but the calls.


def times_of(number, function):
    began = now()
    for _ in repeat(None, number):
        function()
    return now() - began


def times_of_argument(number, function, argument):
    began = now()
    for each in repeat(argument, number):
        function(each)
    return now() - began


def times_of_pair(number, first, second):
    began = now()
    for _ in repeat(None, number):
        first()
        second()
    return now() - began


def times_of_passing(number, put, get):
    began = now()
    for each in repeat(1, number):
        put(each)
        get()
    return now() - began


def calls(contestant, budget_ns, operation):
    size = 10 if (contestant, operation) == ("multiprocessing", "create") else 1000
    if contestant == "call":
        function = "".isspace
        batch = {"wait_unset": lambda: times_of_argument(size, "".endswith, "x")}.get(
            operation, lambda: times_of(size, function))
    elif operation == "queue":
        made = queue.Queue() if contestant == "threading" else importlib.import_module(contestant).Queue()
        batch = lambda: times_of_passing(size, made.put, made.get)  # noqa: E731
    elif operation in ("lock", "rlock", "semaphore", "condition"):
        name = {"rlock": "RLock"}.get(operation, operation.capitalize())
        made = getattr(importlib.import_module(contestant), name)()
        batch = lambda: times_of_pair(size, made.acquire, made.release)  # noqa: E731
    else:
        make = event_type(contestant)
        event = make()
        if operation in ("set", "wait_set"):
            event.set()
        batch = {
            "create": lambda: times_of(size, make),
            "is_set": lambda: times_of(size, event.is_set),
            "set": lambda: times_of(size, event.set),
            "set_clear": lambda: times_of_pair(size, event.set, event.wait if make is Eventfd else event.clear),
            "wait_set": lambda: times_of(size, event.wait),
            "wait_unset": lambda: times_of_argument(size, event.wait, 0),
        }[operation]
    times = batches(budget_ns, batch)
    return {"time": (size, times)}, size * len(times), []


# Several threads


def started(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def in_thread(function, main):
    """Calls the function here, or in a further thread."""
    if main:
        return function()
    found = []
    started(lambda: found.append(function())).join()
    return found[0]


def trips(budget_ns, trip, answer, main=False, start=started):
    """Batches of trips; a partner answers each of them."""
    total = []

    def far():
        answered = 0
        while total != [answered]:
            answer()
            answered += 1

    def near():
        times = batches(budget_ns, batch)
        total.append(TRIPS * len(times) + 1)
        trip()
        return times

    def batch():
        began = now()
        for _ in range(TRIPS):
            trip()
        return now() - began

    partner = start(far)
    times = in_thread(near, main)
    partner.join()
    return {"trip": (TRIPS, times)}, TRIPS * len(times)


def ping_pong(contestant, budget_ns, cores, threads):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(cores)])
    make = event_type(contestant)
    there, back, asked, answered, wrong = make(), make(), [0], [0], []

    def answer():
        there.wait()
        there.clear()
        answered[0] += 1
        back.set()

    def trip():
        asked[0] += 1
        there.set()
        back.wait()
        back.clear()
        if answered[0] != asked[0]:
            wrong.append("a wait has ended before its set")

    start = importlib.import_module("gevent").spawn if contestant == "gevent" else started
    return (*trips(budget_ns, trip, answer, threads == "main", start), wrong)


def queue_dialogue(library):
    kind = queue.Queue if library is threading else library.Queue
    there, back = kind(), kind()

    def trip():
        there.put(1)
        back.get()

    return trip, lambda: back.put(there.get())


def semaphore_dialogue(library):
    there, back = library.Semaphore(0), library.Semaphore(0)

    def trip():
        there.release()
        back.acquire()

    def answer():
        there.acquire()
        back.release()

    return trip, answer


def condition_dialogue(library):
    condition, asked, answered = library.Condition(), [0], [0]

    def trip():
        with condition:
            asked[0] += 1
            condition.notify()
            condition.wait_for(lambda: answered[0] == asked[0])

    def answer():
        with condition:
            condition.wait_for(lambda: answered[0] < asked[0])
            answered[0] += 1
            condition.notify()

    return trip, answer


def barrier_dialogue(library):
    barrier = library.Barrier(2)
    return barrier.wait, barrier.wait


DIALOGUES = {"queue": queue_dialogue, "semaphore": semaphore_dialogue, "condition": condition_dialogue,
             "barrier": barrier_dialogue}


def dialogue(contestant, budget_ns, what):
    """The numbers of trips and of answers come out the same, or trips() would not end."""
    return (*trips(budget_ns, *DIALOGUES[what](importlib.import_module(contestant))), [])


def asleep():
    """How many threads of this process sleep."""
    number = 0
    for name in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{name}/stat") as file:
            number += file.read().rsplit(")", 1)[1].split()[0] == "S"
    return number


def broadcast(contestant, budget_ns, threads):
    count, make = int(threads), event_type(contestant)
    threading.stack_size(STACK)
    held, last, wrong = [], [], []

    def once():
        event, rest, awake = make(), threading.Lock(), []

        def sleep():
            event.wait()
            awake.append(now())
            with rest:  # the end of a thread takes longer than its waking
                pass

        sleepers = [threading.Thread(target=sleep) for _ in range(count)]
        for each in sleepers:
            each.start()
        while asleep() < count:
            time.sleep(0.01)
        if awake:
            wrong.append("a thread has woken before the set")
        with rest:
            began = now()
            event.set()
            held.append(now() - began)
            while len(awake) < count:
                time.sleep(0.001)
        for each in sleepers:
            each.join()
        last.append(max(awake) - began)

    batches(budget_ns, once)
    return {"held": (1, held), "last": (1, last)}, count * len(held), wrong


def contended(contestant, budget_ns, kind):
    number, threads, wrong = 2_000, 4, []
    make = getattr(importlib.import_module(contestant), kind)

    def once():
        lock, count = make(), [0]

        def work():
            for _ in range(number):
                with lock:
                    count[0] += 1

        began = now()
        for each in [started(work) for _ in range(threads)]:
            each.join()
        took = now() - began
        if count[0] != number * threads:
            wrong.append("two threads had the lock")
        return took

    times = batches(budget_ns, once)
    return {"time": (number * threads, times)}, number * threads * len(times), wrong


def busy_lock(contestant, budget_ns, kind, held):
    """How long a thread waits for a lock that another one takes again and again, for `held` rounds of a loop."""
    lock, rounds, over, taken = getattr(importlib.import_module(contestant), kind)(), int(held), [], [0]

    def busy():
        while not over:
            with lock:
                taken[0] += 1
                for _ in range(rounds):
                    pass

    def once():
        before = taken[0]
        while taken[0] < before + 3:  # so the other one takes the lock again and again
            time.sleep(0.0001)
        began = now()
        with lock:
            return now() - began

    other = started(busy)
    times = batches(budget_ns, once)
    over.append(True)
    other.join()
    return {"wait": (1, times)}, len(times), []


def many(contestant, budget_ns, events):
    """Trips to a thread that waits for one event, and to one that waits for many, in turn."""
    wrong, found = [], {1: [], int(events): []}

    def waiter(count):
        """The last of so many events, and a wait that returns whether it got that one."""
        if contestant == "eventfd":
            made, poll = [Eventfd() for _ in range(count)], select.epoll()
            for each in made:
                poll.register(each, select.EPOLLIN)
            return made[-1], lambda: poll.poll() == [(made[-1].fileno(), select.EPOLLIN)] and not made[-1].wait()
        tocsin = importlib.import_module("tocsin")
        made = [tocsin.AutoResetEvent() for _ in range(count)]
        if contestant == "tocsin":
            return made[-1], lambda: tocsin.wait_any(*made) == count - 1
        kept = tocsin.WaitSet()
        for each in made:
            kept.add(each)
        return made[-1], lambda: kept.wait() == [made[-1]]

    waiters = {count: waiter(count) for count in found}

    def once():
        for count, times in found.items():
            event, wait = waiters[count]
            back = queue.SimpleQueue()

            def far(wait=wait, back=back):
                for _ in range(2 * TRIPS):
                    if not wait():
                        wrong.append("another event")
                    back.put(None)

            thread = started(far)
            for i in range(2 * TRIPS):
                if i == TRIPS:
                    began = now()
                event.set()
                back.get()
            times.append(now() - began)
            thread.join()

    batches(budget_ns, once)
    print("value to_one", statistics.median(found[int(events)]) / statistics.median(found[1]))
    return {"trip": (TRIPS, found[int(events)])}, TRIPS * len(found[1]) * 2, wrong


# Coroutines


def coroutine(contestant, budget_ns):
    async def run():
        loop = asyncio.get_running_loop()
        ping, over, wrong, answered = queue.SimpleQueue(), [], [], [0]
        if contestant == "threading":
            event = threading.Event()
            answer = event.set

            async def wait():
                await loop.run_in_executor(None, event.wait)
                event.clear()
        elif contestant == "asyncio":
            event = asyncio.Event()

            def answer():
                loop.call_soon_threadsafe(event.set)

            async def wait():
                await event.wait()
                event.clear()
        elif contestant == "eventfd":
            event, arrived = Eventfd(), asyncio.Event()
            answer = event.set
            loop.add_reader(event.fileno(), lambda: (event.wait(), arrived.set()))

            async def wait():
                await arrived.wait()
                arrived.clear()
        elif contestant == "aiologic":
            event = event_type(contestant)()
            answer = event.set

            async def wait():
                await event
                event.clear()
        else:
            event = importlib.import_module("tocsin").AutoResetEvent()
            answer = event.set

            async def wait():
                await event

        def far():
            while ping.get():
                answered[0] += 1
                answer()

        thread, times, trips_done = started(far), [], 0
        sync("ready")
        end = now() + budget_ns
        while not times or now() < end:
            began = now()
            for _ in range(TRIPS):
                ping.put(True)
                await wait()
                trips_done += 1
                if answered[0] != trips_done:
                    wrong.append("a wait has ended before its set")
            times.append(now() - began)
        sync("done")
        ping.put(False)
        thread.join()
        return {"trip": (TRIPS, times)}, TRIPS * len(times), wrong

    return asyncio.run(run())


# Memory


class Allocated(ctypes.Structure):
    """What glibc's mallinfo2() returns. PYTHONMALLOC=malloc lets it see all that Python allocates."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def allocated():
    if os.environ.get("PYTHONMALLOC") != "malloc":
        sys.exit("needs PYTHONMALLOC=malloc")
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = Allocated
    gc.collect()
    found = ask()
    return found.uordblks + found.hblkhd


def memory(contestant, _budget_ns, what):
    count, wrong = 10_000, []
    sync("ready")
    if what == "event":
        make, kept = event_type(contestant), [None] * count
        make()
        before = allocated()
        for i in range(count):
            kept[i] = make()
        each, descriptors = (allocated() - before) / count, 0
    else:
        each, descriptors = asyncio.run(waiting_tasks(contestant, count, wrong))
    sync("done")
    print("value bytes", each)
    print("value descriptors", descriptors)
    return {}, count, wrong


async def waiting_tasks(contestant, count, wrong):
    """What a wait of a task takes, beyond a task that awaits a future of the loop."""
    loop = asyncio.get_running_loop()
    descriptors_before = len(os.listdir("/proc/self/fd"))

    async def taken_by(wait, release):
        tasks = [None] * count
        before = allocated()
        for i in range(count):
            tasks[i] = loop.create_task(wait())
        while waiting[0] < count:
            await asyncio.sleep(0)
        found = allocated() - before, len(os.listdir("/proc/self/fd")) - descriptors_before
        waiting[0] = 0
        release()
        await asyncio.gather(*tasks)
        return found

    waiting, futures = [0], [None] * count

    async def wait_for_future():
        future = futures[waiting[0]] = loop.create_future()
        waiting[0] += 1
        await future

    event = event_type(contestant)()

    async def wait_for_event():
        waiting[0] += 1
        if contestant == "asyncio":
            await event.wait()
        else:
            await event
        if not event.is_set():
            wrong.append("a wait has ended before the set")

    for _ in range(2):  # at first, the loop's own lists grow
        bare, _ = await taken_by(wait_for_future, lambda: [each.set_result(None) for each in futures])
        futures[:] = [None] * count
    all_waits, descriptors = await taken_by(wait_for_event, event.set)
    return (all_waits - bare) / count, descriptors


def importing(contestant, _budget_ns):
    sync("ready")
    began = now()
    importlib.import_module(contestant)
    took = now() - began
    sync("done")
    return {"time": (1, [took])}, 1, []


SCENARIOS = {"python_calls": calls, "python_ping_pong": ping_pong, "python_dialogue": dialogue,
             "python_broadcast": broadcast, "python_contended": contended, "python_busy_lock": busy_lock,
             "python_many": many, "python_coroutine": coroutine, "python_memory": memory, "python_import": importing}


def main(scenario, contestant, budget_ms, *words):
    given = dict(word.split("=", 1) for word in words)
    given.pop("python")
    found, operations, wrong = SCENARIOS[scenario](contestant, int(float(budget_ms) * 1e6), **given)
    for metric, (size, times) in found.items():
        print("batch", metric, size, *times)
    print("operations", operations)
    for text in sorted(set(wrong)):
        print("wrong", text)


main(*sys.argv[1:])

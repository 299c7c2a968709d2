#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the Python package is, compared with threading, multiprocessing, os.eventfd, aiologic and gevent.

    PYTHONPATH=build/python/3.11/site python3 lab/python/speed.py [--quick] [PART ...]

Parts: one (operations of one thread), pingpong, broadcast, contended, dialogues, busy, import, many, asyncio. Each
contestant's answers are checked in the same run: a wait must have been released by the set that it waited for. Compare
ratios on one machine."""

import argparse
import asyncio
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
import tracemalloc

import tocsin

try:
    import aiologic
except ImportError:
    aiologic = None

try:
    import gevent
    import gevent.event
except ImportError:
    gevent = None

ROUNDS = 5


def check(fact, what):
    if not fact:
        sys.exit(f"wrong answer: {what}")


def nanoseconds(function, number):
    """The best of several rounds, without the cost of the loop."""
    def time_of(called):
        best = float("inf")
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for _ in range(number):
                called()
            best = min(best, (time.perf_counter() - began) / number)
        return best * 1e9
    return max(0.0, time_of(function) - time_of(lambda: None))


class EventfdEvent:
    """An event made of a descriptor, as far as a ping-pong needs it: wait() takes the token, so clear() has no work."""

    def __init__(self):
        self._number = os.eventfd(0)

    def set(self):
        os.eventfd_write(self._number, 1)

    def wait(self):
        return os.eventfd_read(self._number) > 0

    def clear(self):
        pass

    def __del__(self):
        os.close(self._number)


def event_types():
    import multiprocessing
    types = {"threading": threading.Event, "tocsin": tocsin.Event}
    if aiologic is not None and hasattr(aiologic, "REvent"):
        types["aiologic"] = aiologic.REvent
    if gevent is not None:
        types["gevent"] = gevent.event.Event
    types["multiprocessing"] = multiprocessing.Event
    return types


def pingpong_types():
    types = event_types()
    del types["multiprocessing"]
    types.pop("gevent", None)  # a thread that waits for another thread's set() gets LoopExit
    if hasattr(os, "eventfd"):
        types["os.eventfd"] = EventfdEvent
    return types


def is_set_event(make):
    event = make()
    event.set()
    return event


def one(number):
    print(f"\none thread, ns{'':21}" + "".join(f"{name:>16}" for name in event_types()))
    rows = {
        "create": lambda make: make,
        "is_set": lambda make: make().is_set,
        "set when set": lambda make: is_set_event(make).set,
        "set and clear": lambda make: (lambda event: lambda: (event.set(), event.clear()))(make()),
        "wait when set": lambda make: is_set_event(make).wait,
        "wait(0) when unset": lambda make: (lambda event: lambda: event.wait(0))(make()),
    }
    for name, prepare in rows.items():
        print(f"{name:34}", end="")
        for kind, make in event_types().items():
            fewer = 200 if kind == "multiprocessing" and name == "create" else number
            print(f"{nanoseconds(prepare(make), fewer):16.0f}", end="", flush=True)
        print()
    print(f"\n{'':34}{'threading':>16}{'tocsin':>16}")
    for name in ("Lock", "RLock", "Semaphore", "Condition", "Queue"):
        print(f"{name:34}", end="")
        for library in (threading, tocsin):
            if name == "Queue":
                each = queue.Queue() if library is threading else tocsin.Queue()
                cycle = lambda each=each: (each.put(1), each.get())  # noqa: E731
            else:
                each = getattr(library, name)()
                cycle = lambda each=each: (each.acquire(), each.release())  # noqa: E731
            print(f"{nanoseconds(cycle, number):16.0f}", end="")
        print()


def started_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def pingpong(make, number, near_is_main, start=started_thread):
    ping, pong = make(), make()
    answers, result = [0], []

    def far():
        for _ in range(number):
            ping.wait()
            ping.clear()
            answers[0] += 1
            pong.set()

    def near():
        began = time.perf_counter()
        for round_number in range(1, number + 1):
            ping.set()
            pong.wait()
            pong.clear()
            check(answers[0] == round_number, "a wait has ended before its set")
        result.append((time.perf_counter() - began) / number * 1e6)

    threads = [start(function) for function in ([far] if near_is_main else [far, near])]
    if near_is_main:
        near()
    for thread in threads:
        thread.join()
    return result[0]


def pingpongs(number):
    usable = sorted(os.sched_getaffinity(0))
    for cores in sorted({min(2, len(usable)), 1}, reverse=True):
        os.sched_setaffinity(0, usable[:cores])
        types = pingpong_types()
        rows = {(name, main): [] for name in types for main in (True, False)}
        for _ in range(ROUNDS):
            for name, main in rows:
                rows[name, main].append(pingpong(types[name], number, main))
        if gevent is not None:
            rows["gevent", None] = [pingpong(gevent.event.Event, number, True, gevent.spawn) for _ in range(ROUNDS)]
        print(f"\nping-pong on {cores} core(s), us a round trip (median, range)")
        for (name, main), times in rows.items():
            kind = {True: "with the main thread", False: "of two other threads", None: "of two greenlets"}[main]
            print(f"{name:16}{kind:24}"
                  f"{statistics.median(times):8.1f}  {min(times):.1f} to {max(times):.1f}")
    os.sched_setaffinity(0, usable)


def broadcast(make, number):
    threading.stack_size(256 * 1024)
    event, awake = make(), []
    threads = [threading.Thread(target=lambda: (event.wait(), awake.append(time.perf_counter()))) for _ in range(number)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)  # until the last one sleeps
    began = time.perf_counter()
    event.set()
    took = time.perf_counter() - began
    for thread in threads:
        thread.join()
    check(len(awake) == number, "somebody was not released")
    return took * 1e3, (max(awake) - began) * 1e3


def broadcasts(number):
    print("\nset() to 1,000 threads, ms: set() takes, the last thread runs (medians)")
    rows = {"threading": [], "tocsin": []}
    for _ in range(3):
        for name, times in rows.items():
            times.append(broadcast(event_types()[name], number))
    for name, times in rows.items():
        print(f"{name:16}{statistics.median(t[0] for t in times):8.2f}{statistics.median(t[1] for t in times):8.1f}")


def contended(number):
    print("\none lock, four threads, ns for acquire and release")
    for name in ("Lock", "RLock", "Semaphore"):
        print(f"{name:16}", end="")
        for library in (threading, tocsin):
            times = []
            for _ in range(3):
                lock, count = getattr(library, name)(), [0]

                def work(lock=lock, count=count):
                    for _ in range(number):
                        with lock:
                            count[0] += 1

                threads = [threading.Thread(target=work) for _ in range(4)]
                began = time.perf_counter()
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                times.append((time.perf_counter() - began) / number / 4 * 1e9)
                check(count[0] == 4 * number, "two threads had the lock")
            print(f"{library.__name__:>12}{statistics.median(times):8.0f}", end="")
        print()


def dialogue_by_queue(library, number):
    kind = queue.Queue if library is threading else tocsin.Queue
    there, back = kind(), kind()

    def far():
        for _ in range(number):
            back.put(there.get())

    def near():
        for i in range(number):
            there.put(i)
            check(back.get() == i, "another item")
    return far, near


def dialogue_by_semaphore(library, number):
    there, back = library.Semaphore(0), library.Semaphore(0)

    def far():
        for _ in range(number):
            there.acquire()
            back.release()

    def near():
        for _ in range(number):
            there.release()
            back.acquire()
    return far, near


def dialogue_by_condition(library, number):
    condition, turn = library.Condition(), [0]

    def side(mine):
        for _ in range(number):
            with condition:
                condition.wait_for(lambda: turn[0] == mine)
                turn[0] = 1 - mine
                condition.notify()
    return lambda: side(1), lambda: side(0)


def dialogue_by_barrier(library, number):
    barrier, met = library.Barrier(2), [0, 0]

    def side(mine):
        for i in range(number):
            met[mine] += 1
            barrier.wait()
            check(met[1 - mine] > i, "a thread has passed the barrier alone")
    return lambda: side(1), lambda: side(0)


def dialogues(number):
    print("\ntwo threads answer each other, us a round trip (medians)")
    for name, make in (("two queues", dialogue_by_queue), ("two semaphores", dialogue_by_semaphore),
                       ("a condition", dialogue_by_condition), ("a barrier", dialogue_by_barrier)):
        times = {threading: [], tocsin: []}
        for _ in range(ROUNDS):
            for library, found in times.items():
                threads = [threading.Thread(target=each) for each in make(library, number)]
                began = time.perf_counter()
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                found.append((time.perf_counter() - began) / number * 1e6)
        print(f"{name:16}" + "".join(f"{library.__name__:>12}{statistics.median(found):8.1f}"
                                     for library, found in times.items()))


def wait_for_busy(lock, turn, number):
    """How long a thread waits for a lock that another one takes again and again, for `turn` rounds of a loop, in ms."""
    stop, times = [], []

    def busy():
        while not stop:
            with lock:
                for _ in range(turn):
                    pass

    def wants():
        for _ in range(number):
            began = time.perf_counter()
            with lock:
                times.append((time.perf_counter() - began) * 1e3)
            time.sleep(0.0005)  # the other one takes the lock meanwhile
        stop.append(True)

    threads = [threading.Thread(target=busy), threading.Thread(target=wants)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statistics.median(times)


def busy_locks(number):
    print("\nthe wait for a lock that another thread takes again and again, ms (median, range)")
    for what, turn in (("500 rounds a turn", 500), ("5,000 rounds a turn", 5_000)):
        times = {(name, library): [] for name in ("Lock", "RLock") for library in (threading, tocsin)}
        for _ in range(ROUNDS):
            for (name, library), found in times.items():
                found.append(wait_for_busy(getattr(library, name)(), turn, number))
        for (name, library), found in times.items():
            print(f"{what:20}{library.__name__ + '.' + name:20}{statistics.median(found):8.2f}"
                  f"  {min(found):.2f} to {max(found):.2f}")


def imports(number):
    def once(code):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return (time.perf_counter() - began) * 1e3
    before = "import threading, queue"
    times = [(once(before), once(f"{before}, tocsin")) for _ in range(number)]
    print(f"\nimport, after threading and queue: {statistics.median(b - a for a, b in times):.1f} ms (median)")


def trips(number, wait, event):
    """The median of round trips in which a thread waits for the event by `wait`, which returns whether it got it."""
    back, times = tocsin.AutoResetEvent(), []

    def far():
        for _ in range(number):
            check(wait(), "another event")
            back.set()

    for _ in range(ROUNDS):
        thread = threading.Thread(target=far)
        thread.start()
        began = time.perf_counter()
        for _ in range(number):
            event.set()
            back.wait()
        times.append((time.perf_counter() - began) / number * 1e6)
        thread.join()
    return statistics.median(times)


def many(number):
    print("\nping-pong with a wait over so many events, us a round trip: wait_any(), WaitSet")
    for count in (1, 8, 64):
        events, waits = [tocsin.AutoResetEvent() for _ in range(count)], tocsin.WaitSet()
        one_by_one = trips(number, lambda events=events: tocsin.wait_any(*events) == len(events) - 1, events[-1])
        for each in events:
            waits.add(each)
        kept = trips(number, lambda waits=waits, events=events: waits.wait() == [events[-1]], events[-1])
        print(f"{count:4}{one_by_one:8.1f}{kept:8.1f}")


def coroutines(number):
    async def trip():
        ping, pong = tocsin.AutoResetEvent(), tocsin.AutoResetEvent()

        def far():
            for _ in range(number):
                ping.wait()
                pong.set()

        thread = threading.Thread(target=far)
        thread.start()
        began = time.perf_counter()
        for _ in range(number):
            ping.set()
            await pong
        took = (time.perf_counter() - began) / number * 1e6
        thread.join()
        return took

    async def trip_in_pool():
        loop = asyncio.get_running_loop()
        ping, pong = threading.Event(), threading.Event()

        def far():
            for _ in range(number):
                ping.wait()
                ping.clear()
                pong.set()

        thread = threading.Thread(target=far)
        thread.start()
        began = time.perf_counter()
        for _ in range(number):
            ping.set()
            await loop.run_in_executor(None, pong.wait)
            pong.clear()
        took = (time.perf_counter() - began) / number * 1e6
        thread.join()
        return took

    print("\na coroutine and a thread, us a round trip")
    for name, each in (("await event", trip), ("run_in_executor(Event.wait)", trip_in_pool)):
        print(f"{name:30}{statistics.median(asyncio.run(each()) for _ in range(ROUNDS)):8.1f}")

    async def sizes():
        event = tocsin.Event()
        await tocsin.wait_async(event, timeout=0.0001)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        tasks = [asyncio.ensure_future(tocsin.wait_async(event)) for _ in range(10_000)]
        await asyncio.sleep(0)
        each = (tracemalloc.get_traced_memory()[0] - before) / 10_000
        tracemalloc.stop()
        event.set()
        await asyncio.gather(*tasks)
        return each

    print(f"10,000 tasks that wait: {asyncio.run(sizes()):.0f} bytes each, with task and coroutine")


PARTS = {"one": (one, 100_000), "pingpong": (pingpongs, 5_000), "broadcast": (broadcasts, 1_000),
         "contended": (contended, 30_000), "dialogues": (dialogues, 2_000), "busy": (busy_locks, 20),
         "import": (imports, 20), "many": (many, 3_000), "asyncio": (coroutines, 2_000)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds: only whether everything runs")
    given = parser.parse_args()
    for name in given.parts:
        if name not in PARTS:
            parser.error(f"unknown part {name!r}; valid: {', '.join(PARTS)}")
    print(f"CPython {sys.version.split()[0]}, tocsin {tocsin.__version__}, {os.cpu_count()} processors")
    for name in given.parts or PARTS:
        run, number = PARTS[name]
        run(max(50, number // 10) if given.quick else number)


if __name__ == "__main__":
    main()

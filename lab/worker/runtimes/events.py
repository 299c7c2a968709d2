# SPDX-License-Identifier: Apache-2.0
"""Python's threading.Event in the scenarios of the lab, and between processes that of multiprocessing; worker.py says
how it is called."""

import ctypes
import mmap
import multiprocessing
import os
import signal
import sys
import threading
import time

now = time.perf_counter_ns


def sync(word):
    print(word, flush=True)
    sys.stdin.readline()


def pairs(budget_ns):
    event, size, times = threading.Event(), 1000, []
    sync("ready")
    end = now() + budget_ns
    while not times or now() < end:
        start = now()
        for _ in range(size):
            event.set()
            event.clear()
        times.append(now() - start)
    sync("done")
    return "time", size, times, size * len(times), [] if not event.is_set() else ["set and clear leave it unset"]


def ping_pong(budget_ns):
    there, back, size, times, answers = threading.Event(), threading.Event(), 8, [], [0]

    def partner():
        while True:
            there.wait()
            there.clear()
            if answers[0] is None:
                return
            answers[0] += 1
            back.set()

    thread = threading.Thread(target=partner)
    thread.start()
    sync("ready")
    end = now() + budget_ns
    while not times or now() < end:
        start = now()
        for _ in range(size):
            there.set()
            back.wait()
            back.clear()
        times.append(now() - start)
    sync("done")
    wrong = [] if answers[0] == size * len(times) else ["each trip is answered once"]
    answers[0] = None
    there.set()
    thread.join()
    return "trip", size, times, size * len(times), wrong


def broadcast(budget_ns, count):
    threading.stack_size(256 * 1024)
    held, last, lock = [], [], threading.Lock()
    state = {"event": threading.Event(), "arrived": 0, "awake": 0, "latest": 0, "over": False}
    gate, all_awake = threading.Barrier(count + 1), threading.Event()

    def sleeper():
        while True:
            gate.wait()
            if state["over"]:
                return
            event = state["event"]
            with lock:
                state["arrived"] += 1
            event.wait()
            woke = now()
            with lock:
                state["awake"] += 1
                state["latest"] = max(state["latest"], woke)
                if state["awake"] == count:
                    all_awake.set()

    threads = [threading.Thread(target=sleeper) for _ in range(count)]
    for thread in threads:
        thread.start()
    wrong, repetitions = [], 0
    sync("ready")
    end = now() + budget_ns
    while repetitions < 3 or now() < end:
        state.update(event=threading.Event(), arrived=0, awake=0)
        all_awake.clear()
        gate.wait()
        while state["arrived"] < count:
            time.sleep(0.001)
        time.sleep(0.01)
        if state["awake"]:
            wrong.append("nobody wakes before the set")
        start = now()
        state["event"].set()
        held.append(now() - start)
        all_awake.wait()
        last.append(state["latest"] - start)
        repetitions += 1
    sync("done")
    state["over"] = True
    gate.wait()
    for thread in threads:
        thread.join()
    print("batch held 1", *held)
    return "last", 1, last, count * repetitions, wrong


def pin_to_nth(index):
    cores = sorted(os.sched_getaffinity(0))
    try:
        os.sched_setaffinity(0, {cores[index % len(cores)]})
    except OSError:
        return False
    return True


def end_with(parent):
    """The kernel kills this process when its parent ends."""
    set_signal_of_parents_death = 1
    ctypes.CDLL(None).prctl(set_signal_of_parents_death, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def between_processes(budget_ns, work):
    context = multiprocessing.get_context("fork")
    there, back, shared = context.Event(), context.Event(), mmap.mmap(-1, 2)
    over, unpinned = 0, 1  # where they are in the shared memory
    parent, trips, times = os.getpid(), work.startswith("ping_pong"), []

    def partner():
        end_with(parent)
        shared[unpinned] = not pin_to_nth(0 if work == "ping_pong_1_core" else 1)
        while True:
            there.wait()
            there.clear()
            if shared[over]:
                return
            back.set()

    def once():
        there.set()
        if trips:
            back.wait()
            back.clear()
        else:
            there.wait()
            there.clear()

    size, step = 8 if trips else 200, there.is_set if work == "look" else once
    process = context.Process(target=partner)
    if trips:
        process.start()
    pinned = pin_to_nth(0)
    sync("ready")
    end = now() + budget_ns
    while not times or now() < end:
        start = now()
        for _ in range(size):
            step()
        times.append(now() - start)
    sync("done")
    if trips:
        shared[over] = True
        there.set()
        process.join()
    if not pinned or shared[unpinned]:
        print("note not permitted to pin threads to cores")
    wrong = ["each trip is answered once"] if back.is_set() or there.is_set() else []
    return "time", size, times, size * len(times), wrong


def main(scenario, budget_ms, *words):
    given = dict(word.split("=") for word in words)
    budget_ns = int(float(budget_ms) * 1e6)
    if scenario == "broadcast":
        found = broadcast(budget_ns, int(given["threads"]))
    elif scenario == "between_processes":
        found = between_processes(budget_ns, given["work"])
    else:
        found = {"pairs": pairs, "ping_pong": ping_pong}[scenario](budget_ns)
    metric, size, times, operations, wrong = found
    print("batch", metric, size, *times)
    print("operations", operations)
    for text in wrong:
        print("wrong", text)


main(*sys.argv[1:])

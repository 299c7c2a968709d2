# SPDX-License-Identifier: Apache-2.0
"""What set() of an event takes after a process that waited for it was killed: multiprocessing.Event and
tocsin.SharedEvent, in the same scenario. Needs the package on the path.

    python3 lab/python/killed_waiter.py [rounds]

multiprocessing's condition waits in set() until each process that it has counted has woken, and one that was killed
never does (cpython#75158). So each call runs in a process of its own, and counts as blocked after two seconds."""

import multiprocessing
import statistics
import sys
import time

import tocsin

BLOCKED = 2.0


def wait(event, begun):
    begun.send(None)
    event.wait()


def set_it(event, took):
    began = time.perf_counter()
    event.set()
    took.send(time.perf_counter() - began)


def one_round(context, make):
    """Seconds that set() took, or None if it blocked."""
    event = make()
    begun, told = context.Pipe(False)
    waiter = context.Process(target=wait, args=(event, told), daemon=True)
    waiter.start()
    begun.recv()
    time.sleep(0.2)  # it says so before it waits, and no fact says that it sleeps
    waiter.kill()
    waiter.join()
    took, told = context.Pipe(False)
    setter = context.Process(target=set_it, args=(event, told), daemon=True)
    setter.start()
    result = took.recv() if took.poll(BLOCKED) else None
    setter.kill()
    setter.join()
    return result


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    context = multiprocessing.get_context("fork")
    for name, make in (("multiprocessing.Event", context.Event), ("tocsin.SharedEvent", tocsin.SharedEvent)):
        results = [one_round(context, make) for _ in range(rounds)]
        took = [each for each in results if each is not None]
        blocked = f"blocked in {len(results) - len(took)} of {rounds}"
        print(f"{name}: {blocked}" + (f", median {statistics.median(took) * 1e6:.0f} us" if took else ""))


if __name__ == "__main__":
    main()

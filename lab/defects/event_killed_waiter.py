# SPDX-License-Identifier: Apache-2.0
"""A child process waits for a multiprocessing.Event or Condition and is killed. Then a thread sets or notifies, which
should return. tocsin has no event between processes, so this program has no second side."""

import multiprocessing
import sys
import threading
import time

import reproduction


def start_notifying(kind: str) -> tuple[object, threading.Thread]:
    """A thread that notifies after the waiter has been killed."""
    if kind == "Event":
        event = multiprocessing.Event()
        wait, notify = event.wait, event.set
    else:
        condition = multiprocessing.Condition()

        def wait() -> None:
            with condition:
                condition.wait()

        def notify() -> None:
            with condition:
                condition.notify_all()

    child = multiprocessing.get_context("fork").Process(target=wait, daemon=True)
    child.start()
    time.sleep(0.5)
    child.kill()
    child.join()
    thread = threading.Thread(target=notify, daemon=True)
    thread.start()
    return thread


def play(seconds: float) -> reproduction.Outcome:
    found = reproduction.Outcome(version=f"{sys.implementation.name} {sys.version.split()[0]}")
    end = time.monotonic() + seconds
    blocked = {"Event": 0, "Condition": 0}
    while True:
        kind = "Condition" if found.tries % 2 else "Event"
        thread = start_notifying(kind)
        thread.join(2)
        stat = f"/proc/self/task/{thread.native_id}/stat"
        # What the thread waits for is the answer of a dead process: nobody is left to give it.
        if thread.is_alive() and reproduction.proven_to_hang(stat, thread.is_alive):
            blocked[kind] += 1
        found.tries += 1
        if time.monotonic() >= end:
            break
    found.seen = sum(blocked.values())
    found.note = f"blocked for good: Event.set() ({blocked['Event']}), Condition.notify_all() ({blocked['Condition']})"
    return found


if __name__ == "__main__":
    reproduction.run(sys.argv, play)

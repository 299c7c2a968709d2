# SPDX-License-Identifier: Apache-2.0
# pyright: strict
"""A pool whose threads stop at once, idle or waiting inside a job, without a sentinel for each and without looking
now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import tocsin

Job = Callable[[tocsin.Event], None]


class Pool:
    def __init__(self, size: int) -> None:
        self.stop = tocsin.Event()
        self._jobs: tocsin.Queue[Job] = tocsin.Queue()
        self._threads = [threading.Thread(target=self._run) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> None:
        self._jobs.put(job)

    def _run(self) -> None:
        for job in self._jobs:
            if self.stop.is_set():
                return
            job(self.stop)

    def close(self, *, at_once: bool) -> bool:
        """Whether all threads have ended within a minute."""
        if at_once:
            self.stop.set()
        self._jobs.close()
        deadline = tocsin.monotonic_deadline(60)
        return all(tocsin.wait_any(thread, deadline=deadline) == 0 for thread in self._threads)


def main() -> float:
    """How long the pool took to stop, in seconds, although its jobs would wait an hour."""
    waits = tocsin.Semaphore(0)
    never = tocsin.Event()

    def wait_an_hour(stop: tocsin.Event) -> None:
        waits.release()
        tocsin.wait_any(stop, never, timeout=3600)

    pool = Pool(4)
    for _ in range(8):
        pool.submit(wait_an_hour)
    for _ in range(4):
        waits.acquire()
    began = time.monotonic()
    if not pool.close(at_once=True):
        raise RuntimeError("the pool has not stopped")
    return time.monotonic() - began


if __name__ == "__main__":
    print(f"stopped in {main() * 1000:.1f} ms")

# SPDX-License-Identifier: Apache-2.0
# pyright: strict
"""Worker processes that share a board of jobs. One of them is killed while it has the lock. The others continue, the
parent puts back what the dead worker had taken, and every job is done. (A multiprocessing.Lock would stay locked for
ever.)"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess

import tocsin

JOBS = 12
FREE, DONE = 0, 255  # of a job's byte; anything else: the number of the worker that has taken the job
FIRST = tocsin.SharedLock.SIZE + tocsin.SharedSemaphore.SIZE  # where the bytes are: behind the lock and the semaphore


class Board:
    """Pickled to the workers as it is. A permit of `left` is one reason to look for a free job."""

    def __init__(self) -> None:
        self.memory = tocsin.SharedMemory.anonymous(FIRST + JOBS)
        self.lock = tocsin.SharedLock(buffer=self.memory)
        self.left = tocsin.SharedSemaphore(buffer=self.memory, offset=tocsin.SharedLock.SIZE)
        self.all_done = tocsin.SharedEvent()
        self.left.release(JOBS)

    @contextmanager
    def jobs(self) -> Generator[memoryview, None, None]:
        with self.lock:
            if self.lock.owner_died:
                self.lock.mark_repaired()  # each change is one byte, so the board is in order at any time
            yield self.memory.buf[FIRST:]

    def take(self, worker: int) -> int | None:
        with self.jobs() as jobs:
            job = jobs.tobytes().find(FREE)
            if job < 0:
                return None
            jobs[job] = worker
            if worker == 1 and job == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return job

    def finish(self, job: int) -> None:
        with self.jobs() as jobs:
            jobs[job] = DONE
            if jobs.tobytes().count(DONE) == JOBS:
                self.all_done.set()

    def put_back(self, dead: int) -> list[int]:
        with self.jobs() as jobs:
            taken = [job for job in range(JOBS) if jobs[job] == dead]
            for job in taken:
                jobs[job] = FREE
        # The worker may have died with a permit, but without a job. A permit too many does no harm.
        self.left.release(len(taken) + 1)
        return taken


def work(board: Board, worker: int) -> None:
    while True:
        board.left.acquire()
        job = board.take(worker)
        if job is not None:
            board.finish(job)


def main() -> tuple[list[int], int]:
    board = Board()
    started = 0
    workers: dict[int, SpawnProcess] = {}
    put_back: list[int] = []

    def start() -> None:
        nonlocal started
        started += 1
        workers[started] = multiprocessing.get_context("spawn").Process(target=work, args=(board, started), daemon=True)
        workers[started].start()

    start()
    while True:
        numbers = list(workers)
        ready = tocsin.wait_any(board.all_done, *(workers[number] for number in numbers))
        if not ready:
            break
        dead = numbers[ready - 1]
        workers.pop(dead).join()
        put_back += board.put_back(dead)
        start()
        start()
    for process in workers.values():
        process.kill()
        process.join()
    return put_back, board.memory.buf[FIRST:].tobytes().count(DONE)


if __name__ == "__main__":
    print("put back: {}; done: {}".format(*main()))

# SPDX-License-Identifier: Apache-2.0
"""A loop sets and clears a threading.Event, and a timer's signal runs a handler that sets it. Each try is a process."""

import mmap
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import reproduction

LAYOUT = struct.Struct("=QQQ")  # loops, signals whose handler has ended, whether a handler is running
EACH_SECONDS = 5.0


def loop(path: str) -> None:
    """The process that may hang. It writes its progress to a shared page."""
    with open(path, "r+b") as file:
        page = mmap.mmap(file.fileno(), LAYOUT.size)
    event = threading.Event()
    loops = signals = 0

    def handle(_number: int, _frame: object) -> None:
        nonlocal signals
        LAYOUT.pack_into(page, 0, loops, signals, 1)
        event.set()
        signals += 1
        LAYOUT.pack_into(page, 0, loops, signals, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.001)  # the next signal only now: a handler is not interrupted by another

    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    while True:
        event.set()
        event.clear()
        loops += 1


def watch(seconds: float) -> tuple[bool, int]:
    """Whether the process hung inside its handler, and how many handlers had ended before."""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(LAYOUT.size)
        page = mmap.mmap(file.fileno(), LAYOUT.size)
        child = subprocess.Popen([sys.executable, __file__, "--loop", file.name])
        stat = f"/proc/{child.pid}/stat"
        end = time.monotonic() + seconds
        hung = False
        before = None
        while not hung and time.monotonic() < end:
            time.sleep(0.1)
            if child.poll() is not None:
                sys.exit(f"the process ended on its own, with {child.returncode}")
            now = LAYOUT.unpack_from(page)
            # The lock that the handler wants is held by the code that it interrupted, in the only thread there is.
            if now == before and now[2]:
                hung = reproduction.proven_to_hang(stat, lambda: LAYOUT.unpack_from(page) == now)  # noqa: B023
            before = now
        child.kill()
        child.wait()
        return hung, LAYOUT.unpack_from(page)[1] + hung


def play(seconds: float) -> reproduction.Outcome:
    found = reproduction.Outcome(version=f"{sys.implementation.name} {sys.version.split()[0]}")
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        hung, signals = watch(min(left, EACH_SECONDS))
        found.seen += hung
        found.tries += signals
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--loop"]:
        loop(sys.argv[2])
    reproduction.run(sys.argv, play)

# SPDX-License-Identifier: Apache-2.0
# pyright: strict
"""A notifier with a bounded rate: however often it is told of changes, it reports at most once in an interval, and
the last change is never left out. A stop ends it at once, also within an interval."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import tocsin


class Notifier:
    def __init__(self, report: Callable[[], None], interval: float) -> None:
        self.changed = tocsin.AutoResetEvent()
        self.stop = tocsin.Event()
        self._report = report
        self._interval = interval
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while tocsin.wait_any(self.stop, self.changed) == 1:
            self._report()
            if self.stop.wait(self._interval):  # changes meanwhile leave the event set
                break
        if self.changed.wait(0):
            self._report()


def main() -> tuple[int, list[int]]:
    """How many changes there were, and what was reported."""
    state = 0
    seen: list[int] = []
    notifier = Notifier(lambda: seen.append(state), interval=0.02)
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        state += 1
        notifier.changed.set()
    notifier.stop.set()
    notifier.thread.join()
    return state, seen


if __name__ == "__main__":
    changes, reported = main()
    print(f"{changes} changes, {len(reported)} reports, the last of {reported[-1]}")

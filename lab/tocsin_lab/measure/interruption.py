# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, a kill and a closed terminal end a run without losing what it has measured.

The handler raises nothing, because an exception could come between any two steps: while a sample is being kept, or
while the result is being written. It kills the worker that runs, and `requested` tells the session to start no other
one.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Interrupted(Exception):
    """The session starts no further worker."""


class Interruption:
    """While it is entered, signals that end a program only request the end of the run. After such a request, the
    process ignores them: the program is about to end, and a second Ctrl-C must not change its exit code."""

    def __init__(self) -> None:
        self.requested = False
        self._end: Callable[[], None] | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Interruption:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self.requested else handler)

    def _request(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        if self._end is not None:
            self._end()

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """Calls `end` when the end is requested, also if that has happened already."""
        self._end = end
        try:
            if self.requested:
                end()
            yield
        finally:
            self._end = None

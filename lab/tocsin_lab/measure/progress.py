# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a session: a bar on a terminal, a line now and then elsewhere."""

import time
from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

LINE_EVERY_S = 15.0


def duration(seconds: float) -> str:
    whole = int(seconds + 0.5)
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"


class TerminalProgress:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("about {task.fields[left]} left"),
            TextColumn("[dim]{task.fields[what]}"),
            console=console,
            transient=True,
            refresh_per_second=4,  # drawing takes CPU from what is measured
        )
        self._task: TaskID | None = None
        self._progress.start()

    def phase(self, name: str, steps: int) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(name, total=steps, left="…", what="")

    def step(self, what: str, seconds_left: float) -> None:
        if self._task is not None:
            self._progress.update(self._task, advance=1, left=duration(seconds_left), what=what)

    def say(self, text: str) -> None:
        self._console.print(f"[yellow]{text}", highlight=False)

    def stop(self) -> None:
        self._progress.stop()


class LineProgress:
    """For logs: a line every quarter of a minute, and no cursor movement."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._name, self._steps, self._done, self._last = "", 0, 0, 0.0

    def phase(self, name: str, steps: int) -> None:
        self._name, self._steps, self._done, self._last = name, steps, 0, time.monotonic()
        self._console.print(f"{name}: {steps} steps", highlight=False, soft_wrap=True)

    def step(self, what: str, seconds_left: float) -> None:
        self._done += 1
        if time.monotonic() - self._last >= LINE_EVERY_S:
            self._last = time.monotonic()
            self._console.print(
                f"{self._name}: {self._done}/{self._steps}, about {duration(seconds_left)} left ({what})",
                highlight=False,
                soft_wrap=True,
            )

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        pass


class Tolerant:
    """Passes everything on, and ignores that it can't be shown: a closed terminal must not end the measuring."""

    def __init__(self, shown: TerminalProgress | LineProgress) -> None:
        self._shown = shown

    def phase(self, name: str, steps: int) -> None:
        with suppress(OSError):
            self._shown.phase(name, steps)

    def step(self, what: str, seconds_left: float) -> None:
        with suppress(OSError):
            self._shown.step(what, seconds_left)

    def say(self, text: str) -> None:
        with suppress(OSError):
            self._shown.say(text)

    def stop(self) -> None:
        with suppress(OSError):
            self._shown.stop()


def make_progress(console: Console) -> Tolerant:
    return Tolerant(TerminalProgress(console) if console.is_terminal else LineProgress(console))

# SPDX-License-Identifier: Apache-2.0
"""The executables that measure, and the protocol they speak (lab/README.md)."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tocsin_lab.errors import LabError
from tocsin_lab.measure.interruption import Interruption
from tocsin_lab.parsing import Malformed, parse
from tocsin_lab.records import Build, Contestant, Description, Parameters, Sample, Scenario

PROTOCOL = 1
PREFIX = "tocsin_lab_worker"
PROGRAM_OF_WINDOWS = ".exe"
ON_WINDOWS = os.name == "nt"
LAST_WORDS = 500  # characters shown of an output that is no result


class WorkerError(LabError):
    """A worker that can't be used, or a run that gave no sample."""


@dataclass(frozen=True)
class Pair:
    """A scenario in one of its cases with one contestant: what a worker is asked to run."""

    scenario: str
    parameters: Parameters
    contestant: str

    @property
    def case(self) -> tuple[str, Parameters]:
        return self.scenario, self.parameters

    def __str__(self) -> str:
        return " ".join(part for part in (self.scenario, str(self.parameters), self.contestant) if part)


@dataclass
class Catalogue:
    """What all workers together can run."""

    contestants: dict[str, Contestant] = field(default_factory=dict)
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    worker_of: dict[str, Path] = field(default_factory=dict)  # by contestant
    builds: dict[str, Build] = field(default_factory=dict)  # by worker

    def add(self, worker: Path, description: Description) -> None:
        self.builds[worker.name] = description.build
        for contestant in description.contestants:
            self.contestants[contestant.name] = contestant
            self.worker_of[contestant.name] = worker
        for scenario in description.scenarios:
            self._add_scenario(scenario, [one.name for one in description.contestants])

    def _add_scenario(self, scenario: Scenario, offered_by: list[str]) -> None:
        known = self.scenarios.setdefault(scenario.name, replace(scenario, cases=[]))
        cases = {case.parameters: case for case in known.cases}
        for case in scenario.cases:
            merged = cases.get(case.parameters)
            if merged is None:
                merged = replace(case, refusals={}, contestants=[])
                known.cases.append(merged)
            merged.refusals.update(case.refusals)
            merged.contestants += [name for name in offered_by if name not in case.refusals]


def find_workers(folder: Path) -> list[Path]:
    """Every executable whose name begins with PREFIX, the main one first."""
    found = [path for path in folder.glob(f"{PREFIX}*") if path.is_file() and is_program(path)]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def is_program(path: Path) -> bool:
    if ON_WINDOWS:
        return path.suffix.lower() == PROGRAM_OF_WINDOWS
    return os.access(path, os.X_OK)


def command_of(worker: Path) -> list[str]:
    """Wine runs a Windows program on any other system; a script is run by this Python."""
    if worker.suffix == ".py":
        return [sys.executable, str(worker)]
    is_native = ON_WINDOWS or worker.suffix.lower() != PROGRAM_OF_WINDOWS
    return [str(worker)] if is_native else ["wine", str(worker)]


# Each worker gets a session (on Windows: a group) of its own, so that Ctrl-C reaches only this process.
APART: dict[str, Any] = (
    {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if ON_WINDOWS else {"start_new_session": True}
)


def kill(process: subprocess.Popen[str]) -> None:
    """Kills the worker and every process that it has started, as Wine's loader does. It may have ended already."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        if ON_WINDOWS:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def open_catalogue(folder: Path) -> Catalogue:
    workers = find_workers(folder)
    if not workers:
        raise WorkerError(f"no workers in {folder}; ./dev lab builds them")
    return load_catalogue(workers)


def load_catalogue(workers: list[Path]) -> Catalogue:
    catalogue = Catalogue()
    for worker in workers:
        answer = ask(worker, ["--list"], timeout=30)
        if answer.get("protocol") != PROTOCOL:
            raise WorkerError(f"{worker.name} speaks protocol {answer.get('protocol')}, not {PROTOCOL}")
        catalogue.add(worker, read(worker, Description, answer))
    return catalogue


def read(worker: Path, kind: Any, answer: Any) -> Any:
    try:
        return parse(kind, answer)
    except Malformed as error:
        raise WorkerError(f"{worker.name} breaks the protocol: {error}") from None


def ask(
    worker: Path, arguments: list[str], timeout: float, interruption: Interruption | None = None
) -> dict[str, Any]:
    """The worker's line of JSON. An interruption kills the worker, which is a WorkerError like every other death."""
    try:
        process = subprocess.Popen(
            [*command_of(worker), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **APART,
        )
    except OSError as error:  # the worker is being rebuilt, or there is no memory for a process
        raise WorkerError(f"{worker} can't be run: {error.strerror or error}") from None
    try:
        with (interruption or Interruption()).ending(lambda: kill(process)):
            out, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        kill(process)
        process.communicate()
        raise WorkerError(f"no answer within {timeout:.0f} s") from None
    except BaseException:
        kill(process)
        process.communicate()
        raise
    try:
        return json.loads(out)
    except json.JSONDecodeError:
        how = f"signal {-process.returncode}" if process.returncode < 0 else f"exit {process.returncode}"
        instead = f", but: {out.strip()[-LAST_WORDS:]}" if out.strip() else ""
        raise WorkerError(errors.strip() or f"no result ({how}){instead}") from None


def run_pair(
    worker: Path,
    pair: Pair,
    mode: str,
    *,
    seed: int,
    budget_ms: float,
    count_syscalls: bool = False,
    interruption: Interruption | None = None,
) -> Sample:
    """`mode` is check or run. A wrong result comes back with `ok` false."""
    watchdog_s = 60 + int(budget_ms / 100)
    arguments = [f"--{mode}", pair.scenario, pair.contestant]
    arguments += [f"{name}={value}" for name, value in pair.parameters.items()]
    arguments += ["--seed", str(seed), "--budget-ms", f"{budget_ms:g}", "--watchdog-s", str(watchdog_s)]
    if count_syscalls:
        arguments.append("--count-syscalls")
    return read(worker, Sample, ask(worker, arguments, watchdog_s + 10, interruption))

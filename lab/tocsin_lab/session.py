"""One run of the laboratory: check every pair, count its system calls, measure it in rounds."""

from __future__ import annotations

import datetime
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tocsin_lab import machine
from tocsin_lab.plan import Estimator, Mode, seed_of, shuffled_round
from tocsin_lab.results import FORMAT
from tocsin_lab.workers import Catalogue, Pair, WorkerError, run_pair

COUNTING_BUDGET_MS = 20.0
CHECKING_BUDGET_MS = 5.0
GIVE_UP_AFTER = 2  # failures of a pair


class Observer(Protocol):
    """Who is told how it goes."""

    def phase(self, name: str, steps: int) -> None: ...

    def step(self, what: str, seconds_left: float) -> None: ...

    def say(self, text: str) -> None: ...


@dataclass
class Session:
    catalogue: Catalogue
    pairs: list[Pair]
    mode: Mode
    seed: int
    observer: Observer
    count_syscalls: bool = True
    result: dict[str, Any] = field(default_factory=dict)

    def run(self, root: Path) -> dict[str, Any]:
        """The result; if interrupted, what there is of it."""
        self.prepare_result(root)
        quietness = machine.observe_quietness()
        self.result["quietness"] = {"before": vars(quietness), "rounds": []}
        if complaint := quietness.complaint():
            self.observer.say(complaint)
        # Being told to end is no reason to lose what there is, whoever says so.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            self.check_all()
            if self.count_syscalls:
                self.count_all()
            self.measure_all()
        except KeyboardInterrupt:
            self.result["interrupted"] = True
        finally:
            signal.signal(signal.SIGTERM, before)
        self.result["finished"] = timestamp()
        return self.result

    def prepare_result(self, root: Path) -> None:
        cases = {pair.case for pair in self.pairs}
        scenarios = [
            {**one, "cases": [case for case in one["cases"] if (name, tuple(case["parameters"].items())) in cases]}
            for name, one in self.catalogue.scenarios.items()
        ]
        self.result.update(
            format=FORMAT,
            started=timestamp(),
            finished=None,
            interrupted=False,
            project=machine.describe_project(root),
            machine=machine.describe_machine(),
            workers=self.catalogue.builds,
            plan={
                "mode": self.mode.name,
                "rounds": self.mode.rounds,
                "budget_ms": self.mode.budget_ms,
                "seed": self.seed,
            },
            contestants=list(self.catalogue.contestants.values()),
            scenarios=[one for one in scenarios if one["cases"]],
            rounds_finished=0,
            failures=[],
            counts=[],
            samples=[],
        )

    def check_all(self) -> None:
        """Nobody is timed whose result is wrong."""
        self.observer.phase("checking", len(self.pairs))
        estimator = Estimator(0.03)
        for done, pair in enumerate(list(self.pairs)):
            started = time.monotonic()
            self.ask(pair, "check", budget_ms=CHECKING_BUDGET_MS, round_=0, give_up_after=1)
            estimator.record("check", time.monotonic() - started)
            self.observer.step(str(pair), estimator.of("check") * (len(self.pairs) - done))

    def count_all(self) -> None:
        """System calls, in runs of their own: counting costs time."""
        counted = [pair for pair in self.pairs if self.has_syscall_column(pair)]
        self.observer.phase("counting system calls", len(counted))
        estimator = Estimator(0.1)
        unable = set()  # workers
        for done, pair in enumerate(counted):
            if self.catalogue.worker_of[pair.contestant] in unable:
                continue
            started = time.monotonic()
            sample = self.ask(pair, "run", budget_ms=COUNTING_BUDGET_MS, round_=0, count_syscalls=True)
            if sample is not None:
                self.result["counts"].append({**sample, "distributions": {}})
                if "syscalls" not in sample["values"]:
                    unable.add(self.catalogue.worker_of[pair.contestant])
                    self.observer.say("; ".join(sample["notes"]) or f"{pair.contestant}: system calls not counted")
            estimator.record("count", time.monotonic() - started)
            self.observer.step(str(pair), estimator.of("count") * (len(counted) - done))

    def has_syscall_column(self, pair: Pair) -> bool:
        return any(column["metric"] == "syscalls" for column in self.catalogue.scenarios[pair.scenario]["columns"])

    def measure_all(self) -> None:
        estimator = Estimator(self.mode.budget_ms * 1e-3 * 1.2 + 0.02)
        self.observer.phase("measuring", self.mode.rounds * len(self.pairs))
        for round_ in range(1, self.mode.rounds + 1):
            before = machine.CpuTimes.now()
            order = list(shuffled_round(self.pairs, self.seed, round_))
            for done, pair in enumerate(order):
                if pair not in self.pairs:  # it failed too often meanwhile
                    continue
                started = time.monotonic()
                sample = self.ask(pair, "run", budget_ms=self.mode.budget_ms, round_=round_)
                if sample is not None:
                    self.result["samples"].append({"round": round_, "order": done, **sample})
                estimator.record(pair.case, time.monotonic() - started)
                left = estimator.left(one.case for one in order[done + 1 :])
                later = estimator.left(one.case for one in self.pairs) * (self.mode.rounds - round_)
                self.observer.step(f"round {round_}/{self.mode.rounds}  {pair}", left + later)
            disturbance = machine.Disturbance.between(before, machine.CpuTimes.now())
            self.result["quietness"]["rounds"].append(vars(disturbance))
            self.result["rounds_finished"] = round_

    def ask(
        self,
        pair: Pair,
        mode: str,
        *,
        budget_ms: float,
        round_: int,
        count_syscalls: bool = False,
        give_up_after: int = GIVE_UP_AFTER,
    ) -> dict[str, Any] | None:
        """A right result, or None: then the failure is noted, and a pair that fails again is left out."""
        worker = self.catalogue.worker_of[pair.contestant]
        seed = seed_of(pair, self.seed, round_)
        try:
            answer = run_pair(worker, pair, mode, seed=seed, budget_ms=budget_ms, count_syscalls=count_syscalls)
            if answer["ok"]:
                return answer
            reason = "wrong: " + "; ".join(answer["failures"])
        except WorkerError as error:
            reason = str(error)
        self.result["failures"].append(
            {
                "scenario": pair.scenario,
                "parameters": dict(pair.parameters),
                "contestant": pair.contestant,
                "while": mode,
                "round": round_,
                "reason": reason,
            }
        )
        self.observer.say(f"{pair}: {reason}")
        if self.failures_of(pair) >= give_up_after:
            self.pairs = [one for one in self.pairs if one != pair]
        return None

    def failures_of(self, pair: Pair) -> int:
        return sum(
            (one["scenario"], tuple(one["parameters"].items()), one["contestant"]) == (*pair.case, pair.contestant)
            for one in self.result["failures"]
        )


def timestamp() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

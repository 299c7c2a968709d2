# SPDX-License-Identifier: Apache-2.0
"""One run of the laboratory: check every pair, count its system calls, measure it in rounds."""

import datetime
import time
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from tocsin_lab.measure import machine
from tocsin_lab.measure.interruption import Interrupted, Interruption
from tocsin_lab.measure.plan import Estimator, Mode, seed_of, shuffled_round
from tocsin_lab.measure.workers import Catalogue, Pair, WorkerError, run_pair
from tocsin_lab.records import FORMAT, Failure, Parameters, Plan, Quietness, Result, Sample, Scenario

COUNTING_BUDGET_MS = 20.0
CHECKING_BUDGET_MS = 5.0
GIVE_UP_AFTER = 2  # failures of a pair

# Scenario, case and contestant of whatever a result leaves undecided.
Undecided = Callable[[Result], Set[tuple[str, Parameters, str]]]


class Observer(Protocol):
    """Is told of the progress."""

    def phase(self, name: str, steps: int) -> None: ...

    def step(self, what: str, seconds_left: float) -> None: ...

    def say(self, text: str) -> None: ...

    def stop(self) -> None: ...


@dataclass
class Session:
    catalogue: Catalogue
    pairs: list[Pair]
    mode: Mode
    seed: int
    observer: Observer
    root: Path  # of the project
    interruption: Interruption
    count_syscalls: bool = True
    undecided: Undecided = lambda result: frozenset()
    result: Result = field(init=False)

    def run(self) -> Result:
        """The result; after an interruption, what there is of it."""
        self.result = self.empty_result()
        if complaint := self.result.quietness.before.complaint():
            self.observer.say(complaint)
        try:
            self.check_all()
            if self.count_syscalls:
                self.count_all()
            self.measure_all()
            self.measure_undecided()
        except Interrupted:
            self.result.interrupted = True
        self.result.finished = timestamp()
        return self.result

    def empty_result(self) -> Result:
        return Result(
            format=FORMAT,
            started=timestamp(),
            interrupted=False,
            project=machine.describe_project(self.root),
            machine=machine.describe_machine(),
            workers=self.catalogue.builds,
            plan=Plan(self.mode.name, self.mode.rounds, self.mode.budget_ms, self.seed),
            contestants=list(self.catalogue.contestants.values()),
            scenarios=self.scenarios(),
            rounds_finished=0,
            failures=[],
            counts=[],
            samples=[],
            quietness=Quietness(machine.observe_quietness()),
        )

    def scenarios(self) -> list[Scenario]:
        """The scenarios with the cases that are run."""
        cases = {pair.case for pair in self.pairs}
        wanted = [
            replace(one, cases=[case for case in one.cases if (one.name, case.parameters) in cases])
            for one in self.catalogue.scenarios.values()
        ]
        return [one for one in wanted if one.cases]

    def check_all(self) -> None:
        """A contestant whose result is wrong is never timed."""
        self.observer.phase("checking", len(self.pairs))
        estimator = Estimator(0.03)
        for done, pair in enumerate(list(self.pairs)):
            started = time.monotonic()
            self.ask(pair, "check", budget_ms=CHECKING_BUDGET_MS, round_=0, give_up_after=1)
            estimator.record("check", time.monotonic() - started)
            self.observer.step(str(pair), estimator.of("check") * (len(self.pairs) - done))

    def count_all(self) -> None:
        """Counts system calls in separate runs, because counting costs time."""
        counted = [pair for pair in self.pairs if self.has_syscall_column(pair)]
        self.observer.phase("counting system calls", len(counted))
        estimator = Estimator(0.1)
        unable: set[Path] = set()  # workers
        for done, pair in enumerate(counted):
            if self.catalogue.worker_of[pair.contestant] in unable:
                continue
            started = time.monotonic()
            sample = self.ask(pair, "run", budget_ms=COUNTING_BUDGET_MS, round_=0, count_syscalls=True)
            if sample is not None:
                self.result.counts.append(replace(sample, distributions={}))
                if "syscalls" not in sample.values:
                    unable.add(self.catalogue.worker_of[pair.contestant])
                    self.observer.say("; ".join(sample.notes) or f"{pair.contestant}: system calls not counted")
            estimator.record("count", time.monotonic() - started)
            self.observer.step(str(pair), estimator.of("count") * (len(counted) - done))

    def has_syscall_column(self, pair: Pair) -> bool:
        return any(column.metric == "syscalls" for column in self.catalogue.scenarios[pair.scenario].columns)

    def measure_all(self) -> None:
        estimator = Estimator(self.mode.budget_ms * 1e-3 * 1.2 + 0.02)
        self.observer.phase("measuring", self.mode.rounds * len(self.pairs))
        for round_ in range(1, self.mode.rounds + 1):
            self.measure_round(round_, self.pairs, self.mode.rounds, estimator)
            self.result.rounds_finished = round_

    def measure_undecided(self) -> None:
        """More rounds of just those cases whose verdicts are not decided, until they are or the rounds are used up."""
        estimator = Estimator(self.mode.budget_ms * 1e-3 * 1.2 + 0.02)
        for further in range(1, self.mode.further_rounds + 1):
            wanted = self.undecided(self.result)
            pairs = [one for one in self.pairs if (one.scenario, one.parameters, one.contestant) in wanted]
            if not pairs:
                return
            last = self.mode.rounds + self.mode.further_rounds
            self.observer.phase("measuring further what is not decided", len(pairs))
            self.measure_round(self.mode.rounds + further, pairs, last, estimator)
            self.result.further_rounds = further

    def measure_round(self, round_: int, pairs: list[Pair], last: int, estimator: Estimator) -> None:
        before = machine.CpuTimes.now()
        order = list(shuffled_round(pairs, self.seed, round_))
        for done, pair in enumerate(order):
            if pair not in self.pairs:  # it has failed too often since the round began
                continue
            started = time.monotonic()
            sample = self.ask(pair, "run", budget_ms=self.mode.budget_ms, round_=round_)
            if sample is not None:
                self.result.samples.append(replace(sample, round=round_, order=done))
            estimator.record(pair.case, time.monotonic() - started)
            left = estimator.left(one.case for one in order[done + 1 :])
            later = estimator.left(one.case for one in pairs) * (last - round_)
            self.observer.step(f"round {round_}/{last}  {pair}", left + later)
        self.result.quietness.rounds.append(machine.disturbance_between(before, machine.CpuTimes.now()))

    def ask(
        self,
        pair: Pair,
        mode: str,
        *,
        budget_ms: float,
        round_: int,
        count_syscalls: bool = False,
        give_up_after: int = GIVE_UP_AFTER,
    ) -> Sample | None:
        """A correct result or None. None: the failure is recorded, and a pair that has failed too often is left out."""
        if self.interruption.requested:
            raise Interrupted
        worker = self.catalogue.worker_of[pair.contestant]
        seed = seed_of(pair, self.seed, round_)
        try:
            answer = run_pair(
                worker, pair, mode, seed=seed, budget_ms=budget_ms, count_syscalls=count_syscalls,
                interruption=self.interruption,
            )  # fmt: skip
            if answer.ok:
                return answer
            reason = "wrong: " + "; ".join(answer.failures)
        except WorkerError as error:
            if self.interruption.requested:  # it didn't fail, it was killed
                raise Interrupted from None
            reason = str(error)
        self.result.failures.append(
            Failure(
                scenario=pair.scenario,
                parameters=pair.parameters,
                contestant=pair.contestant,
                mode=mode,
                round=round_,
                reason=reason,
            )
        )
        self.observer.say(f"{pair}: {reason}")
        if self.failures_of(pair) >= give_up_after:
            self.pairs = [one for one in self.pairs if one != pair]
        return None

    def failures_of(self, pair: Pair) -> int:
        return sum(Pair(one.scenario, one.parameters, one.contestant) == pair for one in self.result.failures)


def timestamp() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

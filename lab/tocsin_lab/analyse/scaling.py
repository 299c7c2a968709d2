# SPDX-License-Identifier: Apache-2.0
"""From a result to a prediction for machines with other numbers of cores, alongside what the result itself measured.

The costs come from the result: from its floors, from the latency of one wake-up, and from the uses of a single thread
at the lot. None of them is taken from what is predicted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from tocsin_lab.analyse.simulation import Awakening, Costs, Way, broadcast, lot
from tocsin_lab.analyse.statistics import Estimate
from tocsin_lab.analyse.summary import CaseSummary
from tocsin_lab.errors import LabError
from tocsin_lab.records import Key, Result

NEEDED = ("floors", "ping_pong", "lot", "broadcast")
CORES = (2, 8, 32, 96, 256)
WAITERS = (10, 100, 1_000, 10_000, 100_000)
MOST_CORES, MOST_WAITERS = 1_024, 1_000_000
CONTESTANTS = {
    "tocsin": Way.BATCHES,
    "raw_futex": Way.AT_ONCE,
    "futex_relay": Way.CHAIN,
    "rejected_one_by_one": Way.ONE_BY_ONE,
}
TIME: Key = ("time", "median")
USE: Key = ("use", "value")


class Lacking(LabError):
    """The result lacks a figure that a prediction needs."""


@dataclass(frozen=True)
class Cost:
    """One of the model's costs, and where it comes from."""

    name: str
    meaning: str
    source: str
    value: float


@dataclass(frozen=True)
class Check:
    """A prediction for this machine, and what was measured on it."""

    what: str
    who: str
    column: str
    predicted: float
    measured: Estimate

    @property
    def times(self) -> float:
        """Measured divided by predicted."""
        return self.measured.median / self.predicted if self.predicted else float("inf")


@dataclass(frozen=True)
class Checked:
    """All columns of one contestant in one case."""

    what: str
    who: str
    columns: Mapping[str, Check]


class Reader:
    def __init__(self, cases: list[CaseSummary]) -> None:
        self.cases = cases

    def figure(self, scenario: str, who: str, key: Key, **given: str) -> Estimate | None:
        for case in self.cases:
            if case.scenario.name == scenario and given.items() <= case.parameters.items():
                found = case.figures.get(who, {}).get(key)
                if found is not None:
                    return found.value
        return None

    def need(self, scenario: str, who: str, key: Key, **given: str) -> float:
        found = self.figure(scenario, who, key, **given)
        if found is None:
            where = " ".join(f"{name}={value}" for name, value in given.items())
            raise Lacking(
                f"the result has no {scenario} {where} of {who}; measure again with "
                f"./dev lab --scenario {','.join(NEEDED)}"
            )
        return found.median

    def floor(self, operation: str) -> float:
        return self.need("floors", "floor", TIME, operation=operation)


def costs_of(result: Result, cases: list[CaseSummary]) -> list[Cost]:
    """In the order of Costs. On one core, the costs of a second one are left out, which makes them 0."""
    read = Reader(cases)
    several = len(result.machine.usable_cores) > 1
    wake = read.floor("futex_wake_sleeper_one_core")
    here = read.floor("wake_to_running_one_core")
    found = [
        Cost("wake", "a wake call, the core awake", "floors futex_wake_sleeper_one_core", wake),
        Cost("switch", "to sleep, and continue with the next thread", "floors wake_to_running_one_core less wake",
             max(here - wake, read.floor("system_call"))),
        Cost("hold", "a use of a bucket's lock", "lot, own event, one thread: half of it",
             read.need("lot", "tocsin", TIME, event="own", threads="1") / 2),
    ]  # fmt: skip
    if several:
        start_idle = read.need("ping_pong", "raw_futex", ("trip", "median"), cores="2") / 2
        found += [
            Cost("wake_idle", "a wake call, the core just fallen idle", "floors futex_wake_sleeper, at most start_idle",
                 min(read.floor("futex_wake_sleeper"), start_idle)),
            Cost("start_idle", "from that call to running there", "ping_pong of the raw futex, two cores: half of it",
                 start_idle),
            Cost("migration", "in addition, for a thread from another core",
                 "floors wake_to_running_migrated less wake_to_running_one_core",
                 max(read.floor("wake_to_running_migrated") - here, 0.0)),
            Cost("line", "a cache line from another core", "floors cache_line_round_trip: half of it",
                 read.floor("cache_line_round_trip") / 2),
        ]  # fmt: skip
    return found


def as_costs(found: list[Cost]) -> Costs:
    known = {one.name: one.value for one in found}
    return Costs(**{name: known.get(name, 0.0) for name in Costs.__dataclass_fields__})


def is_of_one_core(found: list[Cost]) -> bool:
    return all(one.name != "line" for one in found)


def checks(result: Result, costs: Costs, cases: list[CaseSummary]) -> Iterator[Check]:
    """What the model predicts for this machine, where the result has measured the same."""
    cores = len(result.machine.usable_cores)
    for case in cases:
        given = case.parameters
        if case.scenario.name == "broadcast":
            for who, way in CONTESTANTS.items():
                if who in case.figures:
                    yield from broadcast_checks(case, who, broadcast(way, cores, int(given["threads"]), costs))
        elif case.scenario.name == "lot" and USE in case.figures.get("tocsin", {}):
            threads = int(given["threads"])
            # With an event of its own, no thread shares a bucket: the model of one thread holds.
            time = lot(threads if given["event"] == "shared" else 1, 0, costs)
            measured = case.figures["tocsin"][USE].value
            yield Check(f"lot, {given['event']} event, threads {threads}", "tocsin", "release and park", time, measured)


def by_case(found: Iterable[Check]) -> Iterator[Checked]:
    for (what, who), group in groupby(found, key=lambda one: (one.what, one.who)):
        yield Checked(what, who, {one.column: one for one in group})


def broadcast_checks(case: CaseSummary, who: str, predicted: Awakening) -> Iterator[Check]:
    columns = (("held", "waker held", predicted.held), ("awake", "half awake", predicted.half),
               ("last", "last awake", predicted.last))  # fmt: skip
    for metric, label, time in columns:
        measured = case.figures[who].get((metric, "median"))
        if measured is not None:
            yield Check(f"broadcast, {case.title}", who, label, time, measured.value)


Rows = Iterator[tuple[str, list[float]]]


def tables(costs: Costs, cores: tuple[int, ...], waiters: tuple[int, ...]) -> Iterator[tuple[str, Rows]]:
    """A title, and rows with a time for each number of cores. A row is simulated when it is asked for."""
    for count in waiters:
        yield f"broadcast to {count:,} waiters: waker held, last awake", broadcast_rows(costs, cores, count)
    yield "lot: a release and a park on every core at once", lot_rows(costs, cores, waiters)


def broadcast_rows(costs: Costs, cores: tuple[int, ...], count: int) -> Rows:
    for way in Way:
        played = [broadcast(way, one, count, costs) for one in cores]
        yield f"{way.value}: held", [one.held for one in played]
        yield f"{way.value}: last", [one.last for one in played]


def lot_rows(costs: Costs, cores: tuple[int, ...], waiters: tuple[int, ...]) -> Rows:
    yield "one event for all", [lot(one, 0, costs) for one in cores]
    for count in waiters:
        yield f"each time one of {count:,} events at random", [lot(one, count, costs) for one in cores]

# SPDX-License-Identifier: Apache-2.0
"""What workers say and what a result file holds, as types. lab/README.md describes both forms in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tocsin_lab.parsing import Malformed, checked

FORMAT = 1  # of the result file
BUSY_LIMIT = 0.10  # above this share of all cores, other programs disturb the measurement

Key = tuple[str, str]  # a column's metric and statistic


def in_words(name: str) -> str:
    return name.replace("_", " ")


class Parameters(Mapping[str, str]):
    """A case's parameters: a mapping that never changes and can be a key."""

    def __init__(self, values: Mapping[str, str] | None = None, **more: str) -> None:
        self._values = {**(values or {}), **more}
        self._hash = hash(frozenset(self._values.items()))

    @classmethod
    def from_json(cls, data: Any) -> Parameters:
        return cls({name: checked(str, value) for name, value in checked(dict, data).items()})

    def to_json(self) -> dict[str, str]:
        return dict(self._values)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self._values.items())

    __repr__ = __str__

    @property
    def title(self) -> str:
        return ", ".join(in_words(f"{name} {value}") for name, value in self._values.items())

    def without(self, name: str) -> Parameters:
        return Parameters({one: value for one, value in self._values.items() if one != name})


@dataclass(frozen=True)
class Distribution:
    """A log-linear histogram of picoseconds. worker/measure/histogram.hpp says where the buckets lie."""

    sub_bits: int
    counts: tuple[tuple[int, int], ...]  # (index, count), ascending by index
    least: int
    most: int
    sum: int | None = None

    @classmethod
    def from_json(cls, data: Any) -> Distribution:
        try:
            counts = tuple((index, count) for index, count in data["counts"])
            return cls(int(data["sub_bits"]), counts, int(data["least"]), int(data["most"]), data.get("sum"))
        except (KeyError, TypeError, ValueError) as error:
            raise Malformed(f"no distribution: {error!r}") from None

    def to_json(self) -> dict[str, Any]:
        return {"unit": "ps", "sub_bits": self.sub_bits, "total": self.total, "least": self.least, "most": self.most,
                "sum": self.sum, "counts": self.counts}  # fmt: skip

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts)


# What a worker can run


@dataclass(frozen=True)
class Contestant:
    name: str
    label: str
    role: str  # floor, ours, variant, peer, reference, rejected
    about: str = ""
    limits: str = ""
    tier: str = "quick"


@dataclass(frozen=True)
class Column:
    """A figure that a scenario promises."""

    metric: str
    statistic: str  # median, p99 or most of a distribution; or value
    label: str
    unit: str  # ns, bytes, count
    judged: bool = False

    @property
    def key(self) -> Key:
        return self.metric, self.statistic

    @property
    def title(self) -> str:
        """The label, and the statistic where the label doesn't say it."""
        return f"{self.label} p99" if self.statistic == "p99" and self.label != "p99" else self.label


@dataclass
class Case:
    parameters: Parameters
    tier: str
    refusals: dict[str, str] = field(default_factory=dict)  # by contestant: why it can't take part
    contestants: list[str] = field(default_factory=list)  # that can; the catalogue fills it in


@dataclass
class Scenario:
    """The first worker that has a scenario describes it; others need to give its name and their cases only."""

    name: str
    question: str = ""
    method: str = ""
    floor: str = ""
    columns: tuple[Column, ...] = ()
    cases: list[Case] = field(default_factory=list)

    @property
    def title(self) -> str:
        return in_words(self.name)

    def column(self, key: Key) -> Column | None:
        return next((one for one in self.columns if one.key == key), None)


@dataclass(frozen=True)
class Build:
    compiler: str
    flags: str
    standard_library: str


@dataclass(frozen=True)
class Description:
    """What a worker's --list says."""

    build: Build
    contestants: list[Contestant]
    scenarios: list[Scenario]


# What was measured


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What a worker's --check or --run says."""

    round: int = 0  # 0: not measured in a round
    order: int = 0  # in that round
    scenario: str
    contestant: str
    parameters: Parameters
    seed: int = 0
    budget_ms: float = 0.0
    ok: bool
    operations: int = 0
    values: dict[str, float]
    distributions: dict[str, Distribution]
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that gave no sample."""

    scenario: str
    parameters: Parameters
    contestant: str
    mode: str = field(default="run", metadata={"json": "while"})
    round: int = 0
    reason: str


@dataclass(frozen=True)
class Disturbance:
    """The share of all cores that other programs used, and the share that the hypervisor took away."""

    others: float
    stolen: float

    @property
    def is_quiet(self) -> bool:
        return self.others <= BUSY_LIMIT and self.stolen <= BUSY_LIMIT

    def complaint(self) -> str | None:
        if self.is_quiet:
            return None
        return (
            f"the machine is not quiet: other programs use {self.others:.0%} of its cores"
            + (f", and the hypervisor takes {self.stolen:.0%}" if self.stolen > 0.01 else "")
            + "; expect wide intervals"
        )


@dataclass
class Quietness:
    before: Disturbance
    rounds: list[Disturbance] = field(default_factory=list)

    @property
    def loud_rounds(self) -> list[int]:
        return [number for number, one in enumerate(self.rounds, 1) if not one.is_quiet]

    @property
    def worst(self) -> Disturbance:
        every = [self.before, *self.rounds]
        return Disturbance(max(one.others for one in every), max(one.stolen for one in every))


@dataclass(frozen=True, kw_only=True)
class Machine:
    processor: str
    architecture: str = ""
    cores: int
    usable_cores: tuple[int, ...]
    hypervisor: bool | None = None
    memory_mb: int | None = None
    kernel: str = ""
    system: str = ""
    governor: str | None = None
    idle_driver: str | None = None
    clock: str | None = None
    root: bool | None = None

    @property
    def system_name(self) -> str:
        """As people say it: `Linux 6.18`, `Windows 10`. `system` has more, and begins with the name."""
        name, _, rest = self.system.partition("-")
        version = self.kernel if not rest or rest.startswith(self.kernel) else rest.split("-")[0]
        return f"{name} {version}".strip()


@dataclass(frozen=True)
class Project:
    commit: str | None = None
    changed: bool | None = None  # whether there were changes that were not committed


@dataclass(frozen=True)
class Plan:
    mode: str
    rounds: int
    budget_ms: float
    seed: int


@dataclass(kw_only=True)
class Result:
    """Everything that a run measured, and on what."""

    format: int
    started: str | None = None
    finished: str | None = None
    interrupted: bool
    project: Project
    machine: Machine
    workers: dict[str, Build]
    plan: Plan
    contestants: list[Contestant]
    scenarios: list[Scenario]
    rounds_finished: int
    further_rounds: int = 0  # of those cases whose verdicts were not decided
    failures: list[Failure]
    counts: list[Sample]
    samples: list[Sample]
    quietness: Quietness

    @property
    def by_name(self) -> dict[str, Contestant]:
        return {one.name: one for one in self.contestants}

    @property
    def measured_on(self) -> str:
        """The system that ran the workers."""
        by_wine = not self.machine.system.startswith("Windows") and any(one.endswith(".exe") for one in self.workers)
        return f"Wine on {self.machine.system_name}" if by_wine else self.machine.system_name

# SPDX-License-Identifier: Apache-2.0
"""Two results side by side: what became slower or faster, and what only looks so.

The two were not measured in the same minutes, so a change of the machine looks like a change of the code. Therefore a
difference is claimed only where the intervals of the two medians don't overlap *and* those of the ratios to a reference
of the same rounds don't either. The reference is the floor, or, without a floor, the best peer that both have. How
often the figures of other contestants differ shows what such a difference is worth.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tocsin_lab.analyse.figures import Figure, best_peer
from tocsin_lab.analyse.statistics import Estimate, paired_ratio
from tocsin_lab.analyse.summary import CaseSummary, summarise
from tocsin_lab.records import Column, Contestant, Key, Result, in_words

OURS = ("ours", "variant")
LEAST_CHANGE = 0.03  # what a rebuild can do to short operations by moving code (docs/benchmarking.md)

MACHINE_FIELDS = ("processor", "architecture", "cores", "usable_cores", "hypervisor", "memory_mb", "kernel", "governor",
                  "idle_driver", "clock")  # fmt: skip
BUILD_FIELDS = ("compiler", "flags", "standard_library")
PLAN_FIELDS = ("rounds", "budget_ms")


class Change(Enum):
    SLOWER = "slower"
    FASTER = "faster"
    NONE = "no difference shown"
    MACHINE = "moved with the machine"  # the figure differs, its ratio to the reference does not


@dataclass(frozen=True)
class Difference:
    """One contestant in one column of one case. Less is better in all that are judged."""

    case: CaseSummary
    column: Column
    contestant: str
    before: Estimate
    after: Estimate
    reference: str | None
    ratio_before: Estimate | None
    ratio_after: Estimate | None
    change: Change

    @property
    def times(self) -> float:
        return self.after.median / self.before.median if self.before.median else float("inf")


@dataclass
class Comparison:
    warnings: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)  # judged columns of the contestants that are compared
    counted: list[Difference] = field(default_factory=list)  # single counts, without interval
    controls: list[Difference] = field(default_factory=list)  # judged columns of all others
    missing: list[str] = field(default_factory=list)

    def of(self, change: Change) -> list[Difference]:
        found = [one for one in self.differences if one.change is change]
        return sorted(found, key=lambda one: one.times, reverse=change is not Change.FASTER)


def warnings_for(before: Result, after: Result) -> Iterator[str]:
    """Why the two should not be compared, or only with care."""
    if before.format != after.format:
        yield f"the files have different formats: {before.format} and {after.format}"
    yield from changes("another machine", before.machine, after.machine, MACHINE_FIELDS)
    for worker in sorted(before.workers.keys() & after.workers.keys()):
        yield from changes(worker, before.workers[worker], after.workers[worker], BUILD_FIELDS)
    yield from changes("the runs differ", before.plan, after.plan, PLAN_FIELDS)
    for which, result in (("first", before), ("second", after)):
        if result.interrupted:
            yield f"the {which} result is partial: {result.rounds_finished} of {result.plan.rounds} rounds"
        if result.project.changed:
            yield f"the {which} result was measured with changes that were not committed"
    methods = {one.name: one for one in before.scenarios}
    for one in after.scenarios:
        was = methods.get(one.name)
        if was is not None and (was.method, was.columns) != (one.method, one.columns):
            yield f"{one.name} is measured in another way: its description changed"


def changes(what: str, before: object, after: object, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        was, now = getattr(before, name), getattr(after, name)
        if was != now:
            yield f"{what}: {in_words(name)} was {said(was)}, is {said(now)}"


def said(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def compare(before: Result, after: Result, contestants: set[str] | None, scenarios: set[str] | None) -> Comparison:
    """`contestants`: compares these instead of tocsin and its variants. `scenarios`: compares only these."""
    comparison = Comparison(list(warnings_for(before, after)))
    known = {one.name: one for one in [*before.contestants, *after.contestants]}
    subjects = contestants or {name for name, one in known.items() if one.role in OURS}
    earlier = {(case.scenario.name, case.parameters): case for case in summarise(before)}
    for case in summarise(after):
        if scenarios and case.scenario.name not in scenarios:
            continue
        was = earlier.pop((case.scenario.name, case.parameters), None)
        if was is None:
            comparison.missing.append(f"{case.name(', ')}: only in the second result")
        else:
            compare_case(comparison, was, case, subjects, after.by_name)
    comparison.missing += [
        f"{case.name(', ')}: only in the first result"
        for case in earlier.values()
        if not scenarios or case.scenario.name in scenarios
    ]
    return comparison


def compare_case(
    comparison: Comparison,
    before: CaseSummary,
    after: CaseSummary,
    subjects: set[str],
    contestants: Mapping[str, Contestant],
) -> None:
    for column in after.scenario.columns:
        key = column.key
        both = [name for name in after.figures if key in after.figures[name] and key in before.figures.get(name, {})]
        for name in both:
            was, now = before.figures[name][key], after.figures[name][key]
            reference = reference_of(before, both, key, name, contestants)
            found = difference(before, after, column, name, was, now, reference)
            if min(was.value.count, now.value.count) < 2:
                if name in subjects and changed_count(was.value.median, now.value.median):
                    comparison.counted.append(found)
            elif column.judged:
                (comparison.differences if name in subjects else comparison.controls).append(found)


def reference_of(
    case: CaseSummary, both: list[str], key: Key, besides: str, contestants: Mapping[str, Contestant]
) -> str | None:
    """The floor, else the best peer among those that both results have. The floor itself has no reference."""
    floor = next((name for name in both if contestants[name].role == "floor"), None)
    if floor == besides:
        return None
    rounds = {name: {key: case.figures[name][key].by_round} for name in both}
    return floor or best_peer(rounds, key, contestants, besides)


def difference(
    before: CaseSummary,
    after: CaseSummary,
    column: Column,
    name: str,
    was: Figure,
    now: Figure,
    reference: str | None,
) -> Difference:
    key = column.key
    ratios = [
        paired_ratio(figure.by_round, case.figures[reference][key].by_round) if reference else None
        for figure, case in ((was, before), (now, after))
    ]
    change = change_of(was.value, now.value)
    if change is not Change.NONE and ratios[0] and ratios[1] and change_of(ratios[0], ratios[1]) is not change:
        change = Change.MACHINE
    return Difference(after, column, name, was.value, now.value, reference, ratios[0], ratios[1], change)


def change_of(before: Estimate, after: Estimate) -> Change:
    if before.overlaps(after) or abs(after.median - before.median) < LEAST_CHANGE * before.median:
        return Change.NONE
    return Change.SLOWER if after.median > before.median else Change.FASTER


def changed_count(before: float, after: float) -> bool:
    """Whether a count of one run changed by more than a tenth, and by more than the few calls that start and end it."""
    return abs(after - before) > max(0.1 * before, 0.02)

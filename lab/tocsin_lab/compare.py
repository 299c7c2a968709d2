"""Two results side by side: what became slower or faster, and what only looks so.

The two were not measured in the same minutes, so a change of the machine looks like a change of the code. Therefore a
difference is claimed only where the intervals of the two medians don't overlap *and* those of the ratios to the
reference of the same rounds don't either: the floor, or where there is none the best peer that both have. How often
figures of contestants that are not ours differ says what such a difference is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tocsin_lab.statistics import Estimate, paired_ratio
from tocsin_lab.summary import CaseSummary, Column, Figure, best_peer, summarise

OURS = ("ours", "variant")
LEAST_CHANGE = 0.03  # what a rebuild can do to short operations by moving code (docs/benchmarking.md)

MACHINE_FIELDS = ("processor", "architecture", "cores", "usable_cores", "hypervisor", "memory_mb", "kernel", "governor",
                  "idle_driver", "clock")  # fmt: skip
PLAN_FIELDS = ("rounds", "budget_ms")


class Change(Enum):
    SLOWER = "slower"
    FASTER = "faster"
    NONE = "no difference"
    MACHINE = "moved with the machine"  # the figure differs, its ratio to the reference does not


@dataclass(frozen=True)
class Difference:
    """One contestant in one column of one case. Less is better in all that are judged."""

    case: CaseSummary
    column: Mapping[str, Any]
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
    differences: list[Difference] = field(default_factory=list)  # of who was asked for, judged columns
    counted: list[Difference] = field(default_factory=list)  # single counts, which have no interval
    controls: list[Difference] = field(default_factory=list)  # of everybody else
    missing: list[str] = field(default_factory=list)

    def of(self, change: Change) -> list[Difference]:
        found = [one for one in self.differences if one.change is change]
        return sorted(found, key=lambda one: one.times, reverse=change is not Change.FASTER)


def warnings_for(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Why the two should not be compared, or only with care."""
    if before["format"] != after["format"]:
        yield f"the files have different formats: {before['format']} and {after['format']}"
    for name in MACHINE_FIELDS:
        was, now = before["machine"].get(name), after["machine"].get(name)
        if was != now:
            yield f"another machine: {name.replace('_', ' ')} was {was}, is {now}"
    for worker in sorted(before["workers"].keys() & after["workers"].keys()):
        for name, was in before["workers"][worker].items():
            now = after["workers"][worker].get(name)
            if was != now:
                yield f"{worker}: {name.replace('_', ' ')} was {was}, is {now}"
    for name in PLAN_FIELDS:
        was, now = before["plan"].get(name), after["plan"].get(name)
        if was != now:
            yield f"the runs differ: {name.replace('_', ' ')} was {was}, is {now}"
    for which, result in (("first", before), ("second", after)):
        if result["interrupted"]:
            yield f"the {which} result is partial: {result['rounds_finished']} of {result['plan']['rounds']} rounds"
        if result["project"].get("changed"):
            yield f"the {which} result was measured with changes that were not committed"
    methods = {one["name"]: one for one in before["scenarios"]}
    for one in after["scenarios"]:
        was = methods.get(one["name"])
        if was is not None and (was["method"], was["columns"]) != (one["method"], one["columns"]):
            yield f"{one['name']} is measured in another way: its description changed"


def compare(
    before: Mapping[str, Any], after: Mapping[str, Any], contestants: set[str] | None, scenarios: set[str] | None
) -> Comparison:
    """`contestants`: who is compared, instead of tocsin and its variants. `scenarios`: where; None is everywhere."""
    comparison = Comparison(list(warnings_for(before, after)))
    roles = {one["name"]: one["role"] for one in [*before["contestants"], *after["contestants"]]}
    subjects = contestants or {name for name, role in roles.items() if role in OURS}
    known = {(case.scenario["name"], case.parameters): case for case in summarise(before)}
    for case in summarise(after):
        if scenarios and case.scenario["name"] not in scenarios:
            continue
        earlier = known.pop((case.scenario["name"], case.parameters), None)
        if earlier is None:
            comparison.missing.append(f"{name_of(case)}: only in the second result")
        else:
            compare_case(comparison, earlier, case, subjects, {one["name"]: one for one in after["contestants"]})
    comparison.missing += [
        f"{name_of(case)}: only in the first result"
        for case in known.values()
        if not scenarios or case.scenario["name"] in scenarios
    ]
    return comparison


def name_of(case: CaseSummary) -> str:
    return ", ".join(part for part in (case.scenario["name"].replace("_", " "), case.title) if part)


def compare_case(
    comparison: Comparison,
    before: CaseSummary,
    after: CaseSummary,
    subjects: set[str],
    contestants: Mapping[str, Any],
) -> None:
    for column in after.scenario["columns"]:
        key = (column["metric"], column["statistic"])
        both = [name for name in after.figures if key in after.figures[name] and key in before.figures.get(name, {})]
        for name in both:
            was, now = before.figures[name][key], after.figures[name][key]
            reference = reference_of(before, both, key, name, contestants)
            found = difference(before, after, column, name, was, now, reference)
            if min(was.value.count, now.value.count) < 2:
                if name in subjects and changed_count(was.value.median, now.value.median):
                    comparison.counted.append(found)
            elif column["judged"]:
                (comparison.differences if name in subjects else comparison.controls).append(found)


def reference_of(
    case: CaseSummary, both: list[str], column: Column, besides: str, contestants: Mapping[str, Any]
) -> str | None:
    """The floor, else the best peer of the first result, if the second has it too. A floor has none."""
    floor = next((name for name in both if contestants[name]["role"] == "floor"), None)
    if floor == besides:
        return None
    rounds = {name: {column: case.figures[name][column].by_round} for name in both}
    return floor or best_peer(rounds, column, contestants, besides)


def difference(
    before: CaseSummary,
    after: CaseSummary,
    column: Mapping[str, Any],
    name: str,
    was: Figure,
    now: Figure,
    reference: str | None,
) -> Difference:
    key = (column["metric"], column["statistic"])
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
    """A count of one run: a tenth more or less, and not a few calls of starting and ending it."""
    return abs(after - before) > max(0.1 * before, 0.02)

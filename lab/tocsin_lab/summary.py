"""From a result to what is said about it. Pure data: tables and reports only lay it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tocsin_lab import targets as goals
from tocsin_lab.histogram import Histogram
from tocsin_lab.statistics import Estimate, Verdict, estimate, judge, paired_ratio

QUANTILES = {"median": 0.5, "p99": 0.99, "most": 1.0}

Parameters = tuple[tuple[str, str], ...]
Column = tuple[str, str]  # metric, statistic


class Outcome(Enum):
    REACHED = "reached"
    WITHIN_ERROR = "within the error"
    MISSED = "missed"


@dataclass(frozen=True)
class Figure:
    """One contestant in one column of one case, over the rounds."""

    by_round: Mapping[int, float]
    value: Estimate
    to_floor: Estimate | None = None
    to_best_peer: Estimate | None = None  # of all peers but itself


@dataclass(frozen=True)
class Judgement:
    """tocsin in a judged column."""

    column: Mapping[str, Any]
    verdict: Verdict
    against: str
    ratio: Estimate | None


@dataclass(frozen=True)
class TargetResult:
    target: goals.Target
    column: Mapping[str, Any]
    against: str
    figure: Estimate
    outcome: Outcome


@dataclass
class CaseSummary:
    scenario: Mapping[str, Any]
    parameters: Parameters
    figures: dict[str, dict[Column, Figure]] = field(default_factory=dict)  # by contestant, fastest first
    excluded: dict[str, str] = field(default_factory=dict)  # contestants that failed, and how
    notes: dict[str, list[str]] = field(default_factory=dict)  # by note: who reported it
    judgements: list[Judgement] = field(default_factory=list)
    targets: list[TargetResult] = field(default_factory=list)

    @property
    def title(self) -> str:
        return ", ".join(f"{name} {value}".replace("_", " ") for name, value in self.parameters)


def figure_of(sample: Mapping[str, Any], metric: str, statistic: str) -> float | None:
    """A column's figure in one sample: nanoseconds, or the value as it is."""
    if statistic == "value":
        value = sample["values"].get(metric)
        return None if value is None else float(value)
    if metric not in sample["distributions"]:
        return None
    quantile = Histogram.from_json(sample["distributions"][metric]).quantile(QUANTILES[statistic])
    return None if quantile is None else quantile / 1e3


def summarise(result: Mapping[str, Any]) -> list[CaseSummary]:
    """In the order of the scenarios and cases; cases without any sample are left out."""
    contestants = {one["name"]: one for one in result["contestants"]}
    return [
        build_case(scenario, tuple(case["parameters"].items()), contestants, result)
        for scenario in result["scenarios"]
        for case in scenario["cases"]
        if any(samples_of(result["samples"], scenario["name"], case["parameters"]))
    ]


def samples_of(samples: list[dict[str, Any]], scenario: str, parameters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    return (one for one in samples if one["scenario"] == scenario and one["parameters"] == parameters)


def build_case(
    scenario: Mapping[str, Any], given: Parameters, contestants: Mapping[str, Any], result: Mapping[str, Any]
) -> CaseSummary:
    case = CaseSummary(scenario, given)
    collected: dict[str, dict[Column, dict[int, float]]] = {}
    for sample in samples_of(result["samples"], scenario["name"], dict(given)):
        for note in sample["notes"]:
            who = case.notes.setdefault(note, [])
            if sample["contestant"] not in who:
                who.append(sample["contestant"])
        collect(collected, sample, scenario["columns"], sample["round"], counted=False)
    for sample in samples_of(result["counts"], scenario["name"], dict(given)):
        collect(collected, sample, scenario["columns"], 0, counted=True)
    for failure in result["failures"]:
        if failure["scenario"] == scenario["name"] and failure["parameters"] == dict(given):
            case.excluded[failure["contestant"]] = failure["reason"]
    fill_figures(case, collected, contestants)
    judge_case(case, contestants)
    return case


def collect(
    collected: dict[str, dict[Column, dict[int, float]]],
    sample: Mapping[str, Any],
    columns: list[dict[str, Any]],
    round_: int,
    *,
    counted: bool,
) -> None:
    """System calls come from the counting run and nothing else does."""
    for column in columns:
        if (column["metric"] == "syscalls") != counted:
            continue
        figure = figure_of(sample, column["metric"], column["statistic"])
        if figure is not None:
            key = (column["metric"], column["statistic"])
            collected.setdefault(sample["contestant"], {}).setdefault(key, {})[round_] = figure


def best_peer(
    figures: Mapping[str, Mapping[Column, Mapping[int, float]]],
    column: Column,
    contestants: Mapping[str, Any],
    besides: str,
) -> str | None:
    """The peer with the least median in this column."""
    medians = {
        name: estimate(list(columns[column].values()))
        for name, columns in figures.items()
        if contestants[name]["role"] == "peer" and name != besides and column in columns
    }
    known = {name: one.median for name, one in medians.items() if one is not None}
    return min(known, key=known.__getitem__, default=None)


def fill_figures(
    case: CaseSummary, collected: Mapping[str, dict[Column, dict[int, float]]], contestants: Mapping[str, Any]
) -> None:
    floor = next((name for name in collected if contestants[name]["role"] == "floor"), None)
    for name, columns in collected.items():
        for column, by_round in columns.items():
            value = estimate(list(by_round.values()))
            if value is None:
                continue
            peer = best_peer(collected, column, contestants, besides=name)
            floor_rounds = collected[floor].get(column, {}) if floor and floor != name else {}
            case.figures.setdefault(name, {})[column] = Figure(
                by_round,
                value,
                paired_ratio(by_round, floor_rounds),
                paired_ratio(by_round, collected[peer][column]) if peer else None,
            )
    first = case.scenario["columns"][0]
    leading = (first["metric"], first["statistic"])

    def order(name: str) -> tuple[bool, float]:
        figure = case.figures[name].get(leading)
        return (contestants[name]["role"] != "floor", figure.value.median if figure else float("inf"))

    case.figures = {name: case.figures[name] for name in sorted(case.figures, key=order)}


def judge_case(case: CaseSummary, contestants: Mapping[str, Any]) -> None:
    rounds = {name: {key: one.by_round for key, one in columns.items()} for name, columns in case.figures.items()}
    ours = next((name for name, one in contestants.items() if one["role"] == "ours"), None)
    for column in case.scenario["columns"]:
        key = (column["metric"], column["statistic"])
        if ours in rounds and key in rounds[ours] and column["judged"]:
            peer = best_peer(rounds, key, contestants, besides=ours)
            if peer is not None:
                mine, other = rounds[ours][key], rounds[peer][key]
                case.judgements.append(Judgement(column, judge(mine, other), peer, paired_ratio(mine, other)))
        for target in goals.TARGETS:
            if target.metric == key[0] and (target.statistic or "value") == key[1]:
                add_target(case, target, column, rounds, contestants)


def add_target(
    case: CaseSummary,
    target: goals.Target,
    column: Mapping[str, Any],
    rounds: Mapping[str, Mapping[Column, Mapping[int, float]]],
    contestants: Mapping[str, Any],
) -> None:
    key = (column["metric"], column["statistic"])
    mine = rounds.get(target.contestant, {}).get(key)
    if mine is None or not target.applies_to(case.scenario["name"], dict(case.parameters)):
        return
    against = target.against
    if against == goals.ABSOLUTE:
        figure = estimate(list(mine.values()))
    else:
        other = best_peer(rounds, key, contestants, target.contestant) if against == goals.BEST_PEER else against
        figure = paired_ratio(mine, rounds[other][key]) if other in rounds and key in rounds[other] else None
        against = other or against
    if figure is not None:
        counted = target.metric == "syscalls"
        case.targets.append(TargetResult(target, column, against, figure, outcome_of(figure, target.limit, counted)))


def outcome_of(figure: Estimate, limit: float, counted: bool = False) -> Outcome:
    """What is counted is counted once; of what is measured, one sample says nothing of its error."""
    if figure.median <= limit:
        return Outcome.REACHED
    if figure.count < 2 and not counted:
        return Outcome.WITHIN_ERROR
    return Outcome.WITHIN_ERROR if figure.low <= limit else Outcome.MISSED

# SPDX-License-Identifier: Apache-2.0
"""From a result to what can be said about it, as plain data."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin_lab.analyse.figures import ByRound, Collected, Figure, best_peer, collect
from tocsin_lab.analyse.statistics import Estimate, estimate, paired_ratio
from tocsin_lab.analyse.verdict import TargetResult, Verdict, judge, results_for
from tocsin_lab.records import Column, Contestant, Failure, Key, Parameters, Result, Sample, Scenario


@dataclass(frozen=True)
class Judgement:
    """A contestant in a column, against the best peer."""

    column: Column
    verdict: Verdict
    against: str
    ratio: Estimate | None


@dataclass
class CaseSummary:
    scenario: Scenario
    parameters: Parameters
    samples: list[Sample]
    figures: dict[str, dict[Key, Figure]] = field(default_factory=dict)  # by contestant, fastest first
    excluded: dict[str, str] = field(default_factory=dict)  # contestants that failed, and how
    notes: dict[str, list[str]] = field(default_factory=dict)  # by note: the contestants that it was about
    judgements: list[Judgement] = field(default_factory=list)
    targets: list[TargetResult] = field(default_factory=list)

    @property
    def title(self) -> str:
        return self.parameters.title

    @property
    def rounds(self) -> dict[str, dict[Key, ByRound]]:
        return {name: {key: one.by_round for key, one in columns.items()} for name, columns in self.figures.items()}

    def name(self, between: str = " ") -> str:
        """The scenario, and the case if there are several."""
        return between.join(part for part in (self.scenario.title, self.title) if part)


@dataclass
class Measured:
    """What a result has of one case."""

    samples: list[Sample] = field(default_factory=list)
    counts: list[Sample] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def summarise(result: Result) -> list[CaseSummary]:
    """In the order of the scenarios and cases. Cases without any sample are left out."""
    contestants = result.by_name
    measured: defaultdict[tuple[str, Parameters], Measured] = defaultdict(Measured)
    for part in ("samples", "counts", "failures"):
        for one in getattr(result, part):
            getattr(measured[one.scenario, one.parameters], part).append(one)
    return [
        build_case(scenario, case.parameters, contestants, measured[scenario.name, case.parameters])
        for scenario in result.scenarios
        for case in scenario.cases
        if measured[scenario.name, case.parameters].samples
    ]


def build_case(
    scenario: Scenario, parameters: Parameters, contestants: Mapping[str, Contestant], measured: Measured
) -> CaseSummary:
    case = CaseSummary(scenario, parameters, measured.samples)
    for sample in measured.samples:
        for note in sample.notes:
            about = case.notes.setdefault(note, [])
            if sample.contestant not in about:
                about.append(sample.contestant)
    case.excluded = {one.contestant: one.reason for one in measured.failures}
    case.figures = figures_of(scenario, collect(scenario.columns, measured.samples, measured.counts), contestants)
    ours = next((name for name in case.figures if contestants[name].role == "ours"), None)
    judged = [judgement_of(ours, one, case, contestants) for one in scenario.columns if ours and one.judged]
    case.judgements = [one for one in judged if one is not None]
    case.targets = list(results_for(scenario, parameters, case.rounds, contestants))
    return case


def figures_of(
    scenario: Scenario, collected: Collected, contestants: Mapping[str, Contestant]
) -> dict[str, dict[Key, Figure]]:
    """The floor first, then by the first column."""
    floor = next((name for name in collected if contestants[name].role == "floor"), None)
    found: dict[str, dict[Key, Figure]] = {}
    for name, columns in collected.items():
        for key, by_round in columns.items():
            value = estimate(list(by_round.values()))
            if value is None:
                continue
            peer = best_peer(collected, key, contestants, besides=name)
            floor_rounds = collected[floor].get(key, {}) if floor and floor != name else {}
            found.setdefault(name, {})[key] = Figure(
                by_round,
                value,
                paired_ratio(by_round, floor_rounds),
                paired_ratio(by_round, collected[peer][key]) if peer else None,
            )
    leading = scenario.columns[0].key

    def order(name: str) -> tuple[bool, float]:
        figure = found[name].get(leading)
        return (contestants[name].role != "floor", figure.value.median if figure else float("inf"))

    return {name: found[name] for name in sorted(found, key=order)}


def judgement_of(
    name: str, column: Column, case: CaseSummary, contestants: Mapping[str, Contestant]
) -> Judgement | None:
    """A contestant against the best peer. None without a figure of either."""
    rounds = case.rounds
    peer = best_peer(rounds, column.key, contestants, besides=name)
    if peer is None or column.key not in rounds.get(name, {}):
        return None
    mine, other = rounds[name][column.key], rounds[peer][column.key]
    return Judgement(column, judge(mine, other), peer, paired_ratio(mine, other))


def measured_columns(cases: list[CaseSummary]) -> list[Column]:
    """The columns of a scenario that hold a figure in one of these cases, and always the first."""
    columns = cases[0].scenario.columns
    return [
        one
        for one in columns
        if one is columns[0] or any(one.key in figures for case in cases for figures in case.figures.values())
    ]


def tally(cases: list[CaseSummary]) -> dict[Verdict, int]:
    """How many comparisons with the best peer came out how. The terminal and the report count the same ones."""
    found = [one.verdict for case in cases for one in case.judgements]
    return {each: found.count(each) for each in Verdict}


def undecided(result: Result) -> set[tuple[str, Parameters, str]]:
    """What must be measured further before all verdicts are decided, as scenario, case and contestant. In a case with
    an open verdict, the contestants are tocsin, the floor, and every peer that tocsin does not certainly beat."""
    roles = {one.name: one.role for one in result.contestants}
    found = set()
    for case in summarise(result):
        for one in case.judgements:
            if one.verdict is not Verdict.OPEN:
                continue
            ours = next(name for name in case.figures if roles[name] == "ours")
            mine = case.figures[ours][one.column.key].by_round
            found |= {
                (case.scenario.name, case.parameters, name)
                for name, figures in case.figures.items()
                if roles[name] in ("ours", "floor")
                or roles[name] == "peer"
                and one.column.key in figures
                and judge(mine, figures[one.column.key].by_round) is not Verdict.WIN
            }
    return found

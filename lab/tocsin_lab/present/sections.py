# SPDX-License-Identifier: Apache-2.0
"""The report's sections. The losses and targets, with the reason of each loss and of each missed target as far as it is
known. Then the scenarios: for each its charts, its cases, and a table for each case."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Generic, TypeVar

from tocsin_lab.analyse.answers import Answer
from tocsin_lab.analyse.figures import Figure
from tocsin_lab.analyse.summary import CaseSummary, Judgement, measured_columns
from tocsin_lab.analyse.verdict import Outcome, TargetResult, Verdict
from tocsin_lab.present.charts import case_charts, comparison_of_cases, growth_charts, single
from tocsin_lab.present.context import Context, Picture
from tocsin_lab.present.numerals import interval, quantity, ratio, spread, three_figures
from tocsin_lab.records import Column, Key, Scenario
from tocsin_lab.scenarios import Loss, reason_for

CAPTIONS = {
    "ranking": "Median over the rounds; the bar is its interval. Less is better.",
    "percentiles": "All rounds together: the curve says how large each share of all values is at most.",
    "awakening": "All rounds together: the share of the threads that is awake at each time after the set.",
    "span": "The full dot: the waker continues. The ring: the last thread is awake. Medians.",
}


OVERVIEW = 2  # charts of a scenario that are open


@dataclass(frozen=True)
class Cell:
    value: str
    spread: str


@dataclass(frozen=True)
class TableRow:
    who: str
    label: str
    role: str
    cells: list[Cell | None]
    to_floor: str
    to_best_peer: str


@dataclass(frozen=True)
class VerdictChip:
    column: str
    verdict: Verdict
    against: str
    ratio: str
    interval: str


@dataclass(frozen=True)
class CaseView:
    title: str
    pictures: list[Picture]
    columns: tuple[Column, ...]
    rows: list[TableRow]
    verdicts: list[VerdictChip]
    excluded: dict[str, str]
    notes: dict[str, str]


@dataclass
class Section:
    """The first charts are open; more charts, and the cases, are closed."""

    scenario: Scenario
    columns: list[Column] = field(default_factory=list)
    overview: list[Picture] = field(default_factory=list)
    more: list[Picture] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)  # of a scenario with one contestant: a row for each case
    views: list[CaseView] = field(default_factory=list)


def sections(context: Context, answers: list[Answer]) -> list[Section]:
    quoted = {(one.case.scenario.name, one.case.title) for one in answers}
    return [
        section(context, list(group), quoted)
        for _, group in groupby(context.cases, key=lambda case: case.scenario.name)
    ]


def section(context: Context, cases: list[CaseSummary], quoted: set[tuple[str, str]]) -> Section:
    found = Section(cases[0].scenario, columns=measured_columns(cases))
    columns = found.columns
    if only := single(cases):
        found.overview = [context.picture(comparison_of_cases(cases, only), CAPTIONS["ranking"])]
        found.rows = [row(context, only, case.figures[only], columns, label=case.title) for case in cases]
        return found
    pictures = [
        context.picture(chart, f"Median by {chart.parameter}; the bars are its interval.")
        for chart in growth_charts(cases)
    ]
    found.overview, found.more = pictures[:OVERVIEW], pictures[OVERVIEW:]
    shown = None
    if not pictures:  # then the case that an answer quotes stands for the scenario
        shown = next((case for case in cases if (found.scenario.name, case.title) in quoted), cases[0])
        found.overview = case_pictures(context, shown, f"{shown.title}: " if shown.title else "")
    found.views = [view(context, case, [] if case is shown else case_pictures(context, case)) for case in cases]
    return found


def case_pictures(context: Context, case: CaseSummary, prefix: str = "") -> list[Picture]:
    return [context.picture(one, f"{prefix}{CAPTIONS[one.kind]}") for one in case_charts(case)]


def view(context: Context, case: CaseSummary, pictures: list[Picture]) -> CaseView:
    columns = tuple(measured_columns([case]))
    return CaseView(
        title=case.title or "the only case",
        pictures=pictures,
        columns=columns,
        rows=[row(context, name, figures, columns) for name, figures in case.figures.items()],
        verdicts=[
            VerdictChip(
                one.column.title, one.verdict, context.label(one.against), ratio(one.ratio), interval(one.ratio)
            )
            for one in case.judgements
        ],
        excluded={context.label(name): reason for name, reason in case.excluded.items()},
        notes={
            note: "all" if len(about) == len(case.figures) else ", ".join(map(context.label, about))
            for note, about in case.notes.items()
        },
    )


def row(
    context: Context, name: str, figures: Mapping[Key, Figure], columns: Iterable[Column], label: str | None = None
) -> TableRow:
    columns = list(columns)
    leading = figures.get(columns[0].key)
    return TableRow(
        who=name,
        label=context.label(name) if label is None else label,
        role=context.role(name),
        cells=[cell(figures.get(column.key), column.unit) for column in columns],
        to_floor=ratio(leading.to_floor) if leading else "",
        to_best_peer=ratio(leading.to_best_peer) if leading else "",
    )


def cell(figure: Figure | None, unit: str) -> Cell | None:
    return Cell(quantity(figure.value.median, unit), spread(figure.value)) if figure else None


UNKNOWN = "Not known yet."


@dataclass(frozen=True)
class LossRow:
    where: str
    scenario: str
    column: str
    ratio: str
    interval: str
    peer: str
    reason: str


@dataclass(frozen=True)
class TargetRow:
    where: str
    scenario: str
    column: str
    wanted: str
    against: str
    figure: str
    interval: str
    who: str
    outcome: Outcome
    reason: str


AnyRow = TypeVar("AnyRow", LossRow, TargetRow)


@dataclass(frozen=True)
class ByReason(Generic[AnyRow]):
    reason: str
    rows: list[AnyRow]


def losses(context: Context) -> list[ByReason[LossRow]]:
    found = [
        LossRow(
            where=case.name(" · "),
            scenario=case.scenario.name,
            column=one.column.title,
            ratio=ratio(one.ratio),
            interval=interval(one.ratio),
            peer=context.label(one.against),
            reason=reason(context, case, one, context.ours),
        )
        for case in context.cases
        for one in case.judgements
        if one.verdict is Verdict.LOSS
    ]
    return by_reason(found)


def targets(context: Context) -> list[TargetRow]:
    return [
        TargetRow(
            where=case.name(" · "),
            scenario=case.scenario.name,
            column=one.column.title,
            wanted=one.target.describe(),
            against="" if one.against == one.target.against else context.label(one.against),
            figure=three_figures(one.figure.median),
            interval=interval(one.figure),
            who=context.label(one.target.contestant),
            outcome=one.outcome,
            reason=reason(context, case, one, one.target.contestant),
        )
        for case in context.cases
        for one in case.targets
    ]


def reason(context: Context, case: CaseSummary, one: Judgement | TargetResult, contestant: str) -> str:
    cores = len(context.result.machine.usable_cores)
    loss = Loss(case.scenario.name, one.column.metric, case.parameters, one.against, cores, contestant)
    return reason_for(loss) or UNKNOWN


def by_reason(rows: list[AnyRow]) -> list[ByReason[AnyRow]]:
    """In the order in which the reasons come up; what is not known comes last."""
    found: dict[str, list[AnyRow]] = {}
    for row in rows:
        found.setdefault(row.reason, []).append(row)
    return [ByReason(each, found[each]) for each in sorted(found, key=lambda each: each == UNKNOWN)]

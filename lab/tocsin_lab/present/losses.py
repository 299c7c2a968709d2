"""The report's losses and targets, each with its reason as far as it is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from tocsin_lab.analyse.statistics import Verdict
from tocsin_lab.analyse.summary import CaseSummary, Judgement
from tocsin_lab.analyse.targets import Outcome, TargetResult
from tocsin_lab.present.context import Context
from tocsin_lab.present.numerals import interval, ratio, three_figures
from tocsin_lab.scenarios import Loss, reason_for

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
    span: int = 1  # rows that share the reason; 0: an earlier row has it


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
    span: int = 1


AnyRow = TypeVar("AnyRow", LossRow, TargetRow)


def losses(context: Context) -> list[LossRow]:
    found = [
        LossRow(
            where=case.name(" · "),
            scenario=case.scenario.name,
            column=one.column.title,
            ratio=ratio(one.ratio),
            interval=interval(one.ratio),
            peer=context.label(one.against),
            reason=reason(context, case, one),
        )
        for case in context.cases
        for one in case.judgements
        if one.verdict is Verdict.LOSS
    ]
    return each_reason_once(found)


def targets(context: Context) -> list[TargetRow]:
    """The missed ones first."""
    found = [
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
            reason=reason(context, case, one),
        )
        for case in context.cases
        for one in case.targets
    ]
    return [
        row
        for outcome in (Outcome.MISSED, Outcome.WITHIN_ERROR, Outcome.REACHED)
        for row in each_reason_once([one for one in found if one.outcome is outcome])
    ]


def reason(context: Context, case: CaseSummary, one: Judgement | TargetResult) -> str:
    cores = len(context.result.machine.usable_cores)
    return reason_for(Loss(case.scenario.name, one.column.metric, case.parameters, one.against, cores)) or UNKNOWN


def each_reason_once(rows: list[AnyRow]) -> list[AnyRow]:
    """Consecutive rows with the same reason share one cell, in the first of them."""
    found = []
    for _, group in groupby(rows, key=lambda row: row.reason):
        same = list(group)
        found += [replace(row, span=0 if index else len(same)) for index, row in enumerate(same)]
    return found

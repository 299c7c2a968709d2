# SPDX-License-Identifier: Apache-2.0
"""The report's losses and targets, with the reason of each loss and of each missed target as far as it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from tocsin_lab.analyse.summary import CaseSummary, Judgement
from tocsin_lab.analyse.targets import Outcome, TargetResult
from tocsin_lab.analyse.verdict import Verdict
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

# SPDX-License-Identifier: Apache-2.0
"""The report's predictions for other numbers of cores, from the costs that the result has measured."""

from dataclasses import dataclass
from itertools import groupby

from tocsin_lab.analyse import scaling
from tocsin_lab.present.context import Context
from tocsin_lab.present.numerals import quantity, three_figures

WAITERS_SHOWN = (10, 100, 1_000, 10_000)  # simulating more takes longer than reading it


@dataclass(frozen=True)
class CostRow:
    name: str
    meaning: str
    source: str
    value: str


@dataclass(frozen=True)
class CheckCell:
    predicted: str
    measured: str
    times: str


@dataclass(frozen=True)
class CheckRow:
    who: str
    label: str
    cells: list[CheckCell]


@dataclass(frozen=True)
class CheckedCase:
    what: str
    rows: list[CheckRow]


@dataclass(frozen=True)
class CheckTable:
    """Cases that have the same columns."""

    columns: list[str]
    cases: list[CheckedCase]


@dataclass(frozen=True)
class PredictionTable:
    title: str
    rows: list[tuple[str, list[str]]]


@dataclass(frozen=True)
class Predictions:
    costs: list[CostRow]
    checks: list[CheckTable]
    cores: tuple[int, ...]
    tables: list[PredictionTable]


def predictions(context: Context) -> Predictions | None:
    """None: the result didn't measure the costs."""
    try:
        found = scaling.costs_of(context.result, context.cases)
    except scaling.Lacking:
        return None
    costs = scaling.as_costs(found)
    checked = scaling.by_case(scaling.checks(context.result, costs, context.cases))
    cores = (1,) if scaling.is_of_one_core(found) else scaling.CORES
    return Predictions(
        [CostRow(one.name, one.meaning, one.source, quantity(one.value, "ns")) for one in found],
        [
            check_table(context, columns, list(group))
            for columns, group in groupby(checked, key=lambda one: list(one.columns))
        ],
        cores,
        [
            PredictionTable(title, [(label, [quantity(time, "ns") for time in times]) for label, times in rows])
            for title, rows in scaling.tables(costs, cores, WAITERS_SHOWN)
        ],
    )


def check_table(context: Context, columns: list[str], checked: list[scaling.Checked]) -> CheckTable:
    cases = [
        CheckedCase(what, [check_row(context, one) for one in group])
        for what, group in groupby(checked, key=lambda one: one.what)
    ]
    return CheckTable(columns, cases)


def check_row(context: Context, checked: scaling.Checked) -> CheckRow:
    cells = [
        CheckCell(
            quantity(one.predicted, "ns"), quantity(one.measured.median, "ns"), f"{three_figures(one.times)} ×"
        )
        for one in checked.columns.values()
    ]
    return CheckRow(checked.who, context.label(checked.who), cells)

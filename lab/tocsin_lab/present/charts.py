# SPDX-License-Identifier: Apache-2.0
"""What the report's charts draw, as plain data with every text in it. The page's script turns it into pictures."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tocsin_lab.analyse.answers import Answer
from tocsin_lab.analyse.statistics import Estimate, merge, quantile
from tocsin_lab.analyse.summary import CaseSummary
from tocsin_lab.parsing import as_json
from tocsin_lab.present.published_figures import RECORDS
from tocsin_lab.present.numerals import quantity, quantity_with_interval
from tocsin_lab.records import Column, Distribution, Parameters, in_words

# Shares at which a curve has a point: dense where distributions have their tails.
SHARES = (
    0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.84,
    0.87, 0.9, 0.92, 0.94, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.996, 0.998, 0.999, 0.9995, 0.9998, 0.9999,
)  # fmt: skip
LEAST_FOR_CURVE = 3  # values of a parameter that make a curve


@dataclass(frozen=True)
class Row:
    """A contestant's figure: a dot with its interval."""

    who: str
    value: float
    low: float
    high: float
    text: str
    said: str  # with the interval
    label: str | None = None  # instead of the name of the contestant
    at: float | None = None  # where on the axis of a curve
    held: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Published:
    """A figure that others have published for the same case."""

    label: str
    machine: str
    value: float
    text: str
    at: float | None = None


@dataclass(frozen=True)
class Chart:
    kind: str  # ranking, percentiles, awakening, span, growth: page.js draws each
    unit: str
    title: str
    rows: list[Row] = field(default_factory=list)
    curves: dict[str, list[float]] = field(default_factory=dict)  # instead of rows, by contestant
    history: list[Published] = field(default_factory=list)
    parameter: str = ""  # along which figures grow
    short: bool = False

    def to_json(self) -> dict[str, Any]:
        """Without the parts that this kind of chart doesn't have."""
        return {name: as_json(value) for name, value in vars(self).items() if value or name in ("rows", "history")}


def short(value: float) -> float:
    """Four figures are more than a picture shows."""
    return float(f"{value:.4g}")


def row_of(contestant: str, figure: Estimate, unit: str) -> Row:
    value, low, high = map(short, (figure.median, figure.low, figure.high))
    return Row(contestant, value, low, high, quantity(figure.median, unit), quantity_with_interval(figure, unit))


def published_for(case: CaseSummary, column: Column) -> list[Published]:
    return [
        Published(one.label, one.machine, short(one.value), quantity(one.value, column.unit))
        for one in RECORDS
        if one.value is not None and one.key == column.key and one.belongs_to(case.scenario.name, case.parameters)
    ]


def ranking(case: CaseSummary, column: Column) -> Chart | None:
    """A dot with its interval for each contestant."""
    rows = [
        row_of(name, figures[column.key].value, column.unit)
        for name, figures in case.figures.items()
        if column.key in figures
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: row.value)
    return Chart("ranking", column.unit, column.label, rows, history=published_for(case, column))


def answer_chart(answer: Answer, shown: set[str]) -> Chart:
    """Of the contestants that are shown."""
    chart = ranking(answer.case, answer.column)
    assert chart is not None, "an answer has figures"
    return replace(chart, rows=[row for row in chart.rows if row.who in shown], history=[], short=True)


def merged(case: CaseSummary, metric: str) -> Iterator[tuple[str, Distribution]]:
    """Each contestant's distribution, of all rounds together."""
    found: dict[str, list[Distribution]] = {}
    for sample in case.samples:
        if metric in sample.distributions:
            found.setdefault(sample.contestant, []).append(sample.distributions[metric])
    for name in case.figures:
        if name in found:
            together = merge(found[name])
            if together.total > 1:
                yield name, together


def curve_of(distribution: Distribution) -> list[float]:
    """Nanoseconds at each of the shares, as far out as there are values to tell."""
    furthest = 1 - 1 / distribution.total
    values = (quantile(distribution, share) for share in SHARES if share <= furthest)
    return [short(value / 1e3) for value in values if value is not None]


def curves(kind: str, case: CaseSummary, metric: str, unit: str, title: str) -> Chart | None:
    found = {name: curve_of(one) for name, one in merged(case, metric)}
    return Chart(kind, unit, title, curves=found) if found else None


def percentiles(case: CaseSummary, column: Column) -> Chart | None:
    return curves("percentiles", case, column.metric, column.unit, column.label)


def awakening(case: CaseSummary) -> Chart | None:
    """The share of threads awake over time."""
    return curves("awakening", case, "awake", "ns", "threads awake")


def held_and_last(case: CaseSummary) -> Chart | None:
    """How long the waker of many is held, and when the last of them is awake."""
    column = case.scenario.column(("last", "median"))
    if column is None:
        return None
    rows = []
    for name, figures in case.figures.items():
        if ("held", "median") in figures and column.key in figures:
            held = figures["held", "median"].value
            last = row_of(name, figures[column.key].value, "ns")
            said = f"held {quantity(held.median, 'ns')}, last awake {last.text}"
            rows.append(replace(last, held=short(held.median), said=said))
    if not rows:
        return None
    rows.sort(key=lambda row: row.held or 0.0)
    return Chart("span", "ns", "waker held, last awake", rows, history=published_for(case, column))


def case_charts(case: CaseSummary) -> list[Chart]:
    """A picture of the case's figures, and one of their distribution."""
    if both := held_and_last(case):  # one thread wakes many
        return [one for one in (both, awakening(case)) if one]
    columns = case.scenario.columns
    judged = [one for one in columns if one.judged] or columns[:1]
    leading, others = judged[0], [one for one in columns if one is not judged[0]]
    # A value has no distribution. If the leading figure is one, the next figure that has a distribution is drawn, or
    # else the next one that is judged.
    second = next((chart for one in (leading, *others) if (chart := percentiles(case, one))), None)
    if second is None and len(judged) > 1:
        second = ranking(case, judged[1])
    return [one for one in (ranking(case, leading), second) if one]


def single(cases: list[CaseSummary]) -> str | None:
    """The contestant of a scenario that has only one, such as the floors: its cases are compared instead."""
    found = {name for case in cases for name in case.figures}
    return next(iter(found)) if len(found) == 1 else None


def comparison_of_cases(cases: list[CaseSummary], contestant: str) -> Chart:
    column = cases[0].scenario.columns[0]
    rows = [
        replace(row_of(contestant, case.figures[contestant][column.key].value, column.unit), label=case.title)
        for case in cases
        if column.key in case.figures[contestant]
    ]
    return Chart("ranking", column.unit, column.label, rows)


def number_of(case: CaseSummary, name: str) -> float | None:
    try:
        return float(case.parameters[name])
    except (KeyError, ValueError):
        return None


def growing_parameter(cases: Iterable[CaseSummary]) -> str | None:
    """The parameter along which figures are drawn as a curve: the one with the most numbers."""
    values: dict[str, set[float]] = {}
    for case in cases:
        for name in case.parameters:
            number = number_of(case, name)
            if number is not None:
                values.setdefault(name, set()).add(number)
    most = max(values, key=lambda name: len(values[name]), default=None)
    return most if most is not None and len(values[most]) >= LEAST_FOR_CURVE else None


def growth_charts(cases: list[CaseSummary]) -> list[Chart]:
    """One for each judged column and each choice of the other parameters."""
    parameter = growing_parameter(cases)
    if parameter is None:
        return []
    groups: dict[Parameters, list[CaseSummary]] = {}
    for case in cases:
        groups.setdefault(case.parameters.without(parameter), []).append(case)
    return [
        growth(group, parameter, others, column)
        for others, group in groups.items()
        for column in cases[0].scenario.columns
        if column.judged and len(group) >= LEAST_FOR_CURVE
    ]


def growth(cases: list[CaseSummary], parameter: str, others: Parameters, column: Column) -> Chart:
    rows, history = [], []
    for case in cases:
        at = number_of(case, parameter)
        for name, figures in case.figures.items():
            if column.key in figures:
                rows.append(replace(row_of(name, figures[column.key].value, column.unit), at=at))
        history += [replace(one, at=at) for one in published_for(case, column)]
    title = ": ".join(part for part in (column.label, others.title) if part)
    return Chart("growth", column.unit, title, rows, history=history, parameter=in_words(parameter))

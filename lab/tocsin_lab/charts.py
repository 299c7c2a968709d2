"""What the report's charts draw, as plain data: the page's script turns it into pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tocsin_lab.answers import Answer
from tocsin_lab.history import RECORDS, Record
from tocsin_lab.histogram import Histogram, merge
from tocsin_lab.statistics import Estimate
from tocsin_lab.summary import CaseSummary, Column, samples_of

Data = dict[str, Any]

# Shares at which a curve has a point: dense where distributions have their tails.
SHARES = (
    0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.84,
    0.87, 0.9, 0.92, 0.94, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.996, 0.998, 0.999, 0.9995, 0.9998, 0.9999,
)  # fmt: skip
LEAST_FOR_SCALING = 3  # values of a number that make a curve


def short(value: float) -> float:
    """Four figures are more than a picture shows."""
    return float(f"{value:.4g}")


def key(column: Mapping[str, Any]) -> Column:
    return column["metric"], column["statistic"]


def interval_row(contestant: str, value: Estimate) -> Data:
    return {"who": contestant, "value": short(value.median), "low": short(value.low), "high": short(value.high)}


def historic_rows(case: CaseSummary, column: Mapping[str, Any]) -> list[Data]:
    return [
        {"label": one.label, "machine": one.machine, "value": short(one.value)}
        for one in RECORDS
        if one.value is not None
        and one.column == key(column)
        and one.belongs_to(case.scenario["name"], dict(case.parameters))
    ]


def ranking(case: CaseSummary, column: Mapping[str, Any], *, history: bool = True) -> Data | None:
    """A dot with its interval for each contestant."""
    rows = [
        interval_row(name, figures[key(column)].value)
        for name, figures in case.figures.items()
        if key(column) in figures
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: row["value"])
    return {
        "kind": "ranking",
        "unit": column["unit"],
        "title": column["label"],
        "rows": rows,
        "history": historic_rows(case, column) if history else [],
    }


def answer_chart(answer: Answer) -> Data:
    return {**ranking(answer.case, answer.column, history=False), "short": True}


def merged(case: CaseSummary, metric: str, samples: list[Data]) -> Iterator[tuple[str, Histogram]]:
    """Each contestant's distribution, of all rounds together."""
    found: dict[str, list[Histogram]] = {}
    for sample in samples_of(samples, case.scenario["name"], dict(case.parameters)):
        if metric in sample["distributions"] and sample["contestant"] in case.figures:
            found.setdefault(sample["contestant"], []).append(Histogram.from_json(sample["distributions"][metric]))
    for name in case.figures:
        if name in found:
            together = merge(found[name])
            if together.total > 1:
                yield name, together


def curve_of(histogram: Histogram) -> list[float]:
    """Nanoseconds at each of the shares, as far out as there are values to know it by."""
    furthest = 1 - 1 / histogram.total
    return [short(histogram.quantile(share) / 1e3) for share in SHARES if share <= furthest]


def percentiles(case: CaseSummary, column: Mapping[str, Any], samples: list[Data]) -> Data | None:
    curves = {name: curve_of(one) for name, one in merged(case, column["metric"], samples)}
    if not curves:
        return None
    return {"kind": "percentiles", "unit": column["unit"], "title": column["label"], "curves": curves}


def awakening(case: CaseSummary, samples: list[Data]) -> Data | None:
    """The share of threads awake over time."""
    curves = {name: curve_of(one) for name, one in merged(case, "awake", samples)}
    if not curves:
        return None
    return {"kind": "awakening", "unit": "ns", "title": "threads awake", "curves": curves}


def held_and_last(case: CaseSummary) -> Data | None:
    """How long the waker of many is held, and when the last of them is awake."""
    rows = [
        {
            **interval_row(name, figures["last", "median"].value),
            "held": short(figures["held", "median"].value.median),
        }
        for name, figures in case.figures.items()
        if ("held", "median") in figures and ("last", "median") in figures
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: row["held"])
    column = next(one for one in case.scenario["columns"] if key(one) == ("last", "median"))
    return {
        "kind": "span",
        "unit": "ns",
        "title": "waker held, last awake",
        "rows": rows,
        "history": historic_rows(case, column),
    }


def case_charts(case: CaseSummary, samples: list[Data]) -> list[Data]:
    """The picture of a case's figures beside that of their distribution."""
    if both := held_and_last(case):  # one wakes many
        found = [both, awakening(case, samples)]
    else:
        judged = [one for one in case.scenario["columns"] if one["judged"]] or case.scenario["columns"][:1]
        leading = judged[0]
        found = [ranking(case, leading), percentiles(case, leading, samples)]
        if found[1] is None:  # a value without distribution: the next figure that has one, or that is judged
            others = [one for one in case.scenario["columns"] if key(one) != key(leading)]
            found[1] = next((one for one in (percentiles(case, one, samples) for one in others) if one), None)
            if found[1] is None and len(judged) > 1:
                found[1] = ranking(case, judged[1])
    return [one for one in found if one is not None]


def single(cases: list[CaseSummary]) -> str | None:
    """The contestant of a scenario that has only one, such as the floors: its cases are compared instead."""
    found = {name for case in cases for name in case.figures}
    return next(iter(found)) if len(found) == 1 else None


def comparison_of_cases(cases: list[CaseSummary], contestant: str) -> Data:
    column = cases[0].scenario["columns"][0]
    rows = [
        {**interval_row(contestant, case.figures[contestant][key(column)].value), "label": case.title}
        for case in cases
        if key(column) in case.figures[contestant]
    ]
    return {"kind": "ranking", "unit": column["unit"], "title": column["label"], "rows": rows, "history": []}


def number_of(case: CaseSummary, name: str) -> float | None:
    try:
        return float(dict(case.parameters)[name])
    except (KeyError, ValueError):
        return None


def growing_parameter(cases: list[CaseSummary]) -> str | None:
    """The parameter along which figures can be drawn as a curve: numbers, and the most of them."""
    values: dict[str, set[float]] = {}
    for case in cases:
        for name, _ in case.parameters:
            number = number_of(case, name)
            if number is not None:
                values.setdefault(name, set()).add(number)
    most = max(values, key=lambda name: len(values[name]), default=None)
    return most if most is not None and len(values[most]) >= LEAST_FOR_SCALING else None


def scaling_charts(cases: list[CaseSummary]) -> list[Data]:
    """One for each judged column and each choice of the other parameters."""
    parameter = growing_parameter(cases)
    if parameter is None:
        return []
    groups: dict[tuple[tuple[str, str], ...], list[CaseSummary]] = {}
    for case in cases:
        rest = tuple((name, value) for name, value in case.parameters if name != parameter)
        groups.setdefault(rest, []).append(case)
    columns = [one for one in cases[0].scenario["columns"] if one["judged"]]
    charts = [
        scaling(group, parameter, rest, column)
        for rest, group in groups.items()
        for column in columns
        if len(group) >= LEAST_FOR_SCALING
    ]
    return charts


def scaling(
    cases: list[CaseSummary], parameter: str, rest: tuple[tuple[str, str], ...], column: Mapping[str, Any]
) -> Data:
    rows, history = [], []
    for case in cases:
        at = number_of(case, parameter)
        for name, figures in case.figures.items():
            if key(column) in figures:
                rows.append({"at": at, **interval_row(name, figures[key(column)].value)})
        history += [{"at": at, **row} for row in historic_rows(case, column)]
    where = ", ".join(f"{name} {value}".replace("_", " ") for name, value in rest)
    return {
        "kind": "scaling",
        "unit": column["unit"],
        "title": ": ".join(part for part in (column["label"], where) if part),
        "parameter": parameter.replace("_", " "),
        "rows": rows,
        "history": history,
    }


def records_shown(scenarios: set[str]) -> list[Record]:
    """All of them: also those whose scenario was not measured here say what others saw."""
    return sorted(RECORDS, key=lambda one: one.scenario not in scenarios)

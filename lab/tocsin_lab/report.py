"""One page that says what a result says: self-contained, to be opened without a network.

The words and tables are HTML that needs no script; the script draws the charts and filters. Vega-Lite draws them
(decision 20); its code comes out of the package vl-convert-python and into the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tocsin_lab import charts, scaling
from tocsin_lab.answers import Answer, answer_all
from tocsin_lab.machine import Disturbance
from tocsin_lab.numerals import interval, quantity, ratio, three_figures
from tocsin_lab.reasons import Loss, reason_for
from tocsin_lab.results import write_whole
from tocsin_lab.statistics import Estimate, Verdict
from tocsin_lab.summary import CaseSummary, Figure, Judgement, Outcome, TargetResult, summarise
from tocsin_lab.tables import statistic_of

PAGE = Path(__file__).with_name("page")
VEGA_LITE = "6.4"
ROLES = {
    "ours": "tocsin",
    "floor": "floor",
    "peer": "peers",
    "variant": "tocsin otherwise",
    "reference": "references",
    "rejected": "rejected designs",
}
ANSWER_ROWS = 7
LEVEL_NAMED = 3
WAITERS_SHOWN = (10, 100, 1_000, 10_000)  # of the predictions: more takes longer to play through than to read

Data = dict[str, Any]


class ReportError(Exception):
    """No report can be made. The text is for the reader."""


@cache
def chart_library() -> str:
    try:
        import vl_convert
    except ImportError:  # no build of it for this kind of machine
        raise ReportError("needs the Python package vl-convert-python; `./dev lab report` on another machine") from None
    return vl_convert.javascript_bundle(vl_version=VEGA_LITE)  # sets window.vegaEmbed


class Builder:
    """Collects the charts while the page's parts are described."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.result = result
        self.contestants = {one["name"]: one for one in result["contestants"]}
        self.cases = summarise(result)
        self.charts: list[Data] = []
        self.seen = {name for case in self.cases for name in case.figures}

    def label(self, name: str) -> str:
        return self.contestants[name]["label"] if name in self.contestants else name

    def chart(self, data: Data, caption: str) -> Data:
        self.charts.append(data)
        return {"id": len(self.charts) - 1, "title": data["title"], "caption": caption, "alt": self.in_words(data)}

    def in_words(self, data: Data) -> str:
        """For those who don't see it; the table has all of it."""
        rows = data.get("rows") if data["kind"] in ("ranking", "span") else None
        if rows:
            listed = "; ".join(
                f"{row.get('label') or self.label(row['who'])} {quantity(row['value'], data['unit'])}"
                for row in rows[:8]
            )
            more = f"; and {len(rows) - 8} more" if len(rows) > 8 else ""
            return f"Chart, {data['title']}: {listed}{more}."
        who = list(dict.fromkeys(data["curves"] if "curves" in data else (row["who"] for row in data["rows"])))
        return f"Chart, {data['title']}: curves of {', '.join(map(self.label, who))}. The tables have the figures."

    # What the template shows

    def answers(self) -> list[Data]:
        return [self.answer(one) for one in answer_all(self.cases, self.contestants)]

    def answer(self, one: Answer) -> Data:
        data = charts.answer_chart(one)
        shown = [*one.ranking[:ANSWER_ROWS], *filter(self.ours, one.ranking[ANSWER_ROWS:])]
        rows = [row for row in data["rows"] if row["who"] in shown or self.role(row["who"]) == "floor"]
        first = one.figure(one.ranking[0]).value
        return {
            "question": one.question,
            "winner": self.label(one.ranking[0]),
            "standing": self.standing(one),
            "level": self.level(one),
            "figure": quantity(first.median, one.column["unit"]),
            "runner_up": self.runner_up(one),
            "scenario": one.case.scenario["name"],
            "case": one.case.title,
            "hidden": len(one.ranking) - len(shown),
            "chart": self.chart({**data, "rows": rows}, ""),
        }

    def standing(self, one: Answer) -> str:
        """Of tocsin: ahead, level with the first, or behind."""
        if self.ours(one.ranking[0]):
            return "ours" if len(one.level) == 1 else "ours level"
        return "level" if any(self.ours(name) for name in one.level) else "behind"

    def level(self, one: Answer) -> str:
        """Who can't be told from the first: ours by name, and few others."""
        others = sorted(one.level[1:], key=lambda name: not self.ours(name))
        if len(others) <= LEVEL_NAMED:
            return ", ".join(map(self.label, others))
        return f"{self.label(others[0])} and {len(others) - 1} more"

    def runner_up(self, one: Answer) -> str:
        """The first of those that are certainly behind."""
        behind = [name for name in one.ranking if name not in one.level]
        if not behind or not one.figure(one.ranking[0]).value.median:
            return ""
        times = one.figure(behind[0]).value.median / one.figure(one.ranking[0]).value.median
        return f"{self.label(behind[0])} takes {three_figures(times)} × as much"

    def ours(self, name: str) -> bool:
        return self.role(name) == "ours"

    def role(self, name: str) -> str:
        return self.contestants[name]["role"]

    def reason(self, case: CaseSummary, one: Judgement | TargetResult) -> str:
        cores = len(self.result["machine"]["usable_cores"])
        return reason_for(
            Loss(case.scenario["name"], one.column["metric"], dict(case.parameters), one.against, cores)
        )

    def losses(self) -> list[Data]:
        found = [
            {
                "where": place(case),
                "scenario": case.scenario["name"],
                "column": one.column["label"] + statistic_of(one.column),
                "ratio": ratio(one.ratio),
                "interval": interval(one.ratio),
                "peer": self.label(one.against),
                "reason": self.reason(case, one),
            }
            for case in self.cases
            for one in case.judgements
            if one.verdict is Verdict.LOSS
        ]
        return reasons_once(found)

    def targets(self) -> list[Data]:
        order = [Outcome.MISSED, Outcome.WITHIN_ERROR, Outcome.REACHED]
        found = [
            {
                "where": place(case),
                "scenario": case.scenario["name"],
                "column": one.column["label"] + statistic_of(one.column),
                "wanted": one.target.describe(),
                "against": "" if one.against == one.target.against else self.label(one.against),
                "figure": three_figures(one.figure.median),
                "interval": interval(one.figure),
                "who": self.label(one.target.contestant),
                "outcome": one.outcome,
                "reason": self.reason(case, one),
            }
            for case in self.cases
            for one in case.targets
        ]
        return [
            one
            for outcome in order
            for one in reasons_once([one for one in found if one["outcome"] is outcome])
        ]

    def scenarios(self) -> list[Data]:
        quoted = {(one.case.scenario["name"], one.case.title) for one in answer_all(self.cases, self.contestants)}
        return [
            self.scenario(name, list(group), quoted)
            for name, group in groupby(self.cases, key=lambda case: case.scenario["name"])
        ]

    def scenario(self, name: str, cases: list[CaseSummary], quoted: set[tuple[str, str]]) -> Data:
        found = {**cases[0].scenario, "title": name.replace("_", " "), "overview": [], "rows": [], "views": []}
        if only := charts.single(cases):
            found["overview"] = [self.chart(charts.comparison_of_cases(cases, only), CAPTIONS["ranking"])]
            found["rows"] = [
                {**self.row(only, case.figures[only], found["columns"]), "label": case.title} for case in cases
            ]
            return found
        found["overview"] = [
            self.chart(data, f"Median by {data['parameter']}; the bars are its interval.")
            for data in charts.scaling_charts(cases)
        ]
        found["views"] = [self.case(case) for case in cases]
        first = next((index for index, case in enumerate(cases) if (name, case.title) in quoted), 0)
        found["views"][first]["open"] = True
        return found

    def case(self, case: CaseSummary) -> Data:
        columns = case.scenario["columns"]
        return {
            "title": case.title or "the only case",
            "open": False,
            "charts": [
                self.chart(one, CAPTIONS[one["kind"]]) for one in charts.case_charts(case, self.result["samples"])
            ],
            "columns": columns,
            "rows": [self.row(name, figures, columns) for name, figures in case.figures.items()],
            "verdicts": [
                {
                    "column": one.column["label"] + statistic_of(one.column),
                    "verdict": one.verdict,
                    "against": self.label(one.against),
                    "ratio": ratio(one.ratio),
                    "interval": interval(one.ratio),
                }
                for one in case.judgements
            ],
            "excluded": {self.label(name): reason for name, reason in case.excluded.items()},
            "notes": {
                note: "all" if len(who) == len(case.figures) else ", ".join(map(self.label, who))
                for note, who in case.notes.items()
            },
        }

    def row(self, name: str, figures: Mapping[Any, Figure], columns: list[Data]) -> Data:
        leading = figures.get(charts.key(columns[0]))
        return {
            "who": name,
            "label": self.label(name),
            "role": self.role(name),
            "cells": [
                {"value": quantity(one.value.median, column["unit"]), "spread": spread(one.value)} if one else None
                for column in columns
                for one in [figures.get(charts.key(column))]
            ],
            "to_floor": ratio(leading.to_floor) if leading else "",
            "to_best_peer": ratio(leading.to_best_peer) if leading else "",
        }

    def history(self) -> list[Data]:
        return [
            {
                "source": one.source,
                "machine": one.machine,
                "label": one.label,
                "scenario": one.scenario.replace("_", " "),
                "where": ", ".join(f"{name} {value}".replace("_", " ") for name, value in one.where.items()),
                "figure": "" if one.value is None else quantity(one.value, "ns"),
                "remark": one.remark,
            }
            for one in charts.records_shown({one["name"] for one in self.result["scenarios"]})
        ]

    def scaling(self) -> Data | None:
        """What a model makes of the costs that this result measured; nothing if it didn't measure them."""
        try:
            costs = scaling.costs_of(self.result, self.cases)
        except scaling.Lacking:
            return None
        known = scaling.as_costs(costs)
        cores = (1,) if scaling.is_of_one_core(costs) else scaling.CORES
        return {
            "costs": [{"name": one.name, "meaning": one.meaning, "source": one.source,
                       "value": quantity(one.value, "ns")} for one in costs],
            "checks": [self.checks(columns, list(some)) for columns, some in groupby(
                scaling.by_case(scaling.checks(self.result, known, self.cases)), key=lambda one: list(one.columns))],
            "cores": cores,
            "tables": [
                {"title": title, "rows": [{"label": label, "times": [quantity(time, "ns") for time in times]}
                                          for label, times in rows]}
                for title, rows in scaling.tables(known, cores, WAITERS_SHOWN)
            ],
        }  # fmt: skip

    def checks(self, columns: list[str], rows: list[scaling.Checked]) -> Data:
        """Those that have the same columns, each case with its contestants."""
        return {
            "columns": columns,
            "cases": [
                {"what": what, "rows": [
                    {"who": one.who, "label": self.label(one.who), "cells": [
                        {"predicted": quantity(each.predicted, "ns"), "measured": quantity(each.measured.median, "ns"),
                         "times": f"{three_figures(each.times)} ×"} for each in one.columns.values()]}
                    for one in group]}
                for what, group in groupby(rows, key=lambda one: one.what)
            ],
        }  # fmt: skip

    def filters(self) -> list[Data]:
        """The contestants of this result, by role."""
        return [
            {"title": title, "members": [one for one in self.contestants.values()
                                         if one["role"] == role and one["name"] in self.seen]}
            for role, title in ROLES.items()
            if any(one["role"] == role and one["name"] in self.seen for one in self.contestants.values())
        ]

    def builds(self) -> list[Data]:
        """How the workers were built, those alike together; warnings change no code."""
        found: dict[tuple[str, ...], Data] = {}
        for name, build in self.result["workers"].items():
            flags = " ".join(flag for flag in build["flags"].split() if not flag.startswith("-W"))
            made = {**build, "flags": flags, "workers": []}
            found.setdefault((build["compiler"], build["standard_library"], flags), made)["workers"].append(name)
        return list(found.values())

    def disturbance(self) -> Data:
        rounds = [Disturbance(one["others"], one["stolen"]) for one in self.result["quietness"]["rounds"]]
        before = Disturbance(**self.result["quietness"]["before"])
        worst = Disturbance(max(one.others for one in (before, *rounds)), max(one.stolen for one in (before, *rounds)))
        return {"others": f"{worst.others:.1%}", "stolen": f"{worst.stolen:.1%}",
                "loud": [number for number, one in enumerate(rounds, 1) if not one.is_quiet], "rounds": len(rounds)}


CAPTIONS = {
    "ranking": "Median over the rounds; the bar is its interval. Less is better.",
    "percentiles": "All rounds together: so many of all values are below the curve.",
    "awakening": "All rounds together: the share of the threads that is awake so long after the set.",
    "span": "From the full dot, when the waker goes on, to the ring, when the last thread is awake. Medians.",
}


def place(case: CaseSummary) -> str:
    return " · ".join(part for part in (case.scenario["name"].replace("_", " "), case.title) if part)


def reasons_once(rows: list[Data]) -> list[Data]:
    """A reason that holds for several rows in a row stands beside the first of them: `span` says for how many."""
    for _, group in groupby(rows, key=lambda row: row["reason"]):
        first, *rest = group
        first["span"] = 1 + len(rest)
        for row in rest:
            row["span"] = 0
    return rows


def spread(value: Estimate) -> str:
    """Half the interval; nothing where one sample is all there is."""
    if value.count < 2 or not value.median:
        return ""
    return "> 999 %" if value.spread > 9.99 else f"± {value.spread * 100:.0f} %"


def script_data(builder: Builder) -> Markup:
    contestants = [
        {key: one[key] for key in ("name", "label", "role")} for one in builder.result["contestants"]
        if one["name"] in builder.seen
    ]
    data = {"contestants": contestants, "shares": charts.SHARES, "charts": builder.charts}
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def make_report(result: Mapping[str, Any]) -> str:
    builder = Builder(result)
    if not builder.cases:
        raise ReportError("nothing was measured, so there is nothing to report")
    judgements = [one.verdict for case in builder.cases for one in case.judgements]
    outcomes = [one.outcome for case in builder.cases for one in case.targets]
    parts = {
        "result": result,
        "answers": builder.answers(),
        "losses": builder.losses(),
        "targets": builder.targets(),
        "scenarios": builder.scenarios(),
        "scaling": builder.scaling(),
        "history": builder.history(),
        "filters": builder.filters(),
        "builds": builder.builds(),
        "disturbance": builder.disturbance(),
        "verdicts": {one: judgements.count(one) for one in Verdict},
        "outcomes": {one: outcomes.count(one) for one in Outcome},
        "failures": result["failures"],
        "licences": (PAGE / "licences.txt").read_text(),
        "style": Markup((PAGE / "page.css").read_text()),
        "script": Markup((PAGE / "page.js").read_text()),
        "library": Markup(chart_library().replace("</script", "<\\/script")),
        "data": script_data(builder),
    }
    environment = Environment(loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("page.html").render(parts)


def write_report(result: Mapping[str, Any], path: Path) -> None:
    """OSError or ReportError if that is not possible."""
    text = make_report(result)
    write_whole(path, lambda file: file.write(text))

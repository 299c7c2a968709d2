# SPDX-License-Identifier: Apache-2.0
"""The README's picture: what it costs to wake one thread, and a thousand. It is drawn from one result, like the table
beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import vl_convert

from tocsin_lab.analyse.summary import CaseSummary, summarise
from tocsin_lab.errors import LabError
from tocsin_lab.present.numerals import quantity
from tocsin_lab.present.report import VEGA_LITE
from tocsin_lab.records import Contestant, Key, Parameters, Result

NS_PER_US, NS_PER_MS = 1e3, 1e6


@dataclass(frozen=True)
class Theme:
    name: str
    ink: str
    soft: str
    grid: str
    ours: tuple[str, str]  # of a panel's first bar and its second
    peer: tuple[str, str]


THEMES = (
    Theme("light", ink="#1f2328", soft="#59636e", grid="#e2e6ea",
          ours=("#b3261e", "#e6a8a4"), peer=("#7d8894", "#c9d0d7")),
    Theme("dark", ink="#f0f6fc", soft="#9aa4ae", grid="#30363d",
          ours=("#ff8a80", "#8c4a45"), peer=("#8b949e", "#4a535c")),
)


@dataclass(frozen=True)
class Panel:
    title: str
    scenario: str
    where: Parameters
    keys: tuple[Key, ...]  # a bar each
    legend: tuple[str, ...]
    unit: str
    scale: float


PANELS = (
    Panel("Wake one thread that has slept for 10 ms", "wake_latency", Parameters({"delay_ms": "10", "cores": "2"}),
          (("latency", "median"),), ("until it runs",), "µs", NS_PER_US),
    Panel("Wake 1,000 threads", "broadcast", Parameters({"threads": "1000"}),
          (("held", "median"), ("last", "median")), ("the waker is held", "the last is awake"), "ms", NS_PER_MS),
)  # fmt: skip


def svg(result: Result, theme: Theme) -> str:
    drawn = vl_convert.vegalite_to_svg(json.dumps(specification(result, theme)), vl_version=VEGA_LITE)
    return drawn + "\n"


def specification(result: Result, theme: Theme) -> dict[str, Any]:
    """A picture of Vega-Lite."""
    cases = {(one.scenario.name, one.parameters): one for one in summarise(result)}
    panels = []
    for panel in PANELS:
        case = cases.get((panel.scenario, panel.where))
        if case is None:
            raise LabError(f"the result lacks {panel.scenario} with {panel.where.title}: the picture needs it")
        panels.append(drawn(panel, bars(panel, case, result.by_name, theme), theme))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "hconcat": panels,
        "spacing": 28,
        "padding": 8,
        "config": {
            "background": "transparent",
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": {"labelColor": theme.soft, "titleColor": theme.soft, "gridColor": theme.grid, "domain": False,
                     "ticks": False, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 400},
            "title": {"color": theme.ink, "fontSize": 14, "anchor": "start", "frame": "group", "offset": 10},
            "legend": {"labelColor": theme.soft, "labelFontSize": 12},
        },
    }  # fmt: skip


def bars(
    panel: Panel, case: CaseSummary, contestants: Mapping[str, Contestant], theme: Theme
) -> list[dict[str, Any]]:
    """Of tocsin and its peers that have all figures of the panel, the least sum of its figures first."""
    found = []
    for name, figures in case.figures.items():
        if contestants[name].role not in ("ours", "peer") or any(key not in figures for key in panel.keys):
            continue
        medians = [figures[key].value.median for key in panel.keys]
        found.append((sum(medians), name, medians))
    return [
        {"who": contestants[name].label, "what": what, "value": median / panel.scale, "text": quantity(median, "ns"),
         "fill": (theme.ours if contestants[name].role == "ours" else theme.peer)[part], "order": order, "part": part}
        for order, (_, name, medians) in enumerate(sorted(found))
        for part, (what, median) in enumerate(zip(panel.legend, medians, strict=True))
    ]  # fmt: skip


def drawn(panel: Panel, values: list[dict[str, Any]], theme: Theme) -> dict[str, Any]:
    two = len(panel.legend) > 1
    by_bar = {"yOffset": {"field": "part", "type": "ordinal", "axis": None}} if two else {}
    place: dict[str, Any] = {
        "y": {"field": "who", "type": "nominal", "sort": {"field": "order"}, "title": None,
              "axis": {"labelColor": {"condition": {"test": "datum.label === 'tocsin'", "value": theme.ours[0]},
                                      "value": theme.soft},
                       "labelFontWeight": {"condition": {"test": "datum.label === 'tocsin'", "value": "bold"},
                                           "value": "normal"}, "labelLimit": 170}},
        "x": {"field": "value", "type": "quantitative", "title": f"{panel.unit}, less is better",
              "axis": {"tickCount": 5, "format": "d"}, "scale": {"domainMin": 0, "nice": True}},
        **by_bar,
    }  # fmt: skip
    subtitle = f"solid: {panel.legend[0]}; pale: {panel.legend[1]}" if two else panel.legend[0]
    return {
        "title": {"text": panel.title, "subtitle": subtitle, "subtitleColor": theme.soft, "subtitleFontSize": 12},
        "width": 250,
        "height": {"step": 14 if two else 28},
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "bar", "cornerRadiusEnd": 2}, "encoding": {**place, "fill": {"field": "fill", "type": "nominal", "scale": None}}},
            {"mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11, "color": theme.soft},
             "encoding": {**place, "text": {"field": "text", "type": "nominal"}}},
        ],
    }  # fmt: skip

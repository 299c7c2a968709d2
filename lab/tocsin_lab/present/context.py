# SPDX-License-Identifier: Apache-2.0
"""What all sections of the report share: the result, its summary, and the charts that they collect for the script."""

from dataclasses import dataclass

from tocsin_lab.analyse.summary import CaseSummary, summarise
from tocsin_lab.present.charts import Chart
from tocsin_lab.present.numerals import quantity
from tocsin_lab.records import Contestant, Result


@dataclass(frozen=True)
class Picture:
    """Where the page draws a chart."""

    id: int
    title: str
    caption: str
    alt: str


class Context:
    def __init__(self, result: Result) -> None:
        self.result = result
        self.contestants: dict[str, Contestant] = result.by_name
        self.cases: list[CaseSummary] = summarise(result)
        self.charts: list[Chart] = []
        self.seen = {name for case in self.cases for name in case.figures}
        self.ours = next((one.name for one in result.contestants if one.role == "ours"), "")

    def label(self, name: str) -> str:
        return self.contestants[name].label if name in self.contestants else name

    def role(self, name: str) -> str:
        return self.contestants[name].role

    def is_ours(self, name: str) -> bool:
        return self.role(name) == "ours"

    def picture(self, chart: Chart, caption: str = "", alt: str = "") -> Picture:
        self.charts.append(chart)
        return Picture(len(self.charts) - 1, chart.title, caption, alt or self.in_words(chart))

    def in_words(self, chart: Chart) -> str:
        """A chart for people who don't see it, with all of its contestants. The tables have all of its figures."""
        if chart.kind in ("ranking", "span"):
            named = [f"{row.label or self.label(row.who)} {quantity(row.value, chart.unit)}" for row in chart.rows]
            return f"Chart, {chart.title}: {'; '.join(named)}."
        names = dict.fromkeys(chart.curves or (row.who for row in chart.rows))
        return f"Chart, {chart.title}: curves of {', '.join(map(self.label, names))}. The tables have the figures."

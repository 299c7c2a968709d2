# SPDX-License-Identifier: Apache-2.0
"""How figures are written, wherever they appear."""

from math import ceil

from tocsin_lab.analyse.statistics import Estimate
from tocsin_lab.analyse.verdict import NOT_SLOWER_WITHIN

# The factors of each unit and their names, largest first. The report's axes use them, too.
UNITS: dict[str, list[tuple[float, str]]] = {
    "ns": [(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1, " ns")],
    "bytes": [(1, " B")],
    "count": [(1, "")],
}


def quantity(value: float, unit: str) -> str:
    """Three figures, in the unit that suits the size; bytes are whole."""
    if unit == "bytes":
        return f"{value:,.0f} B"
    units = UNITS.get(unit, UNITS["count"])
    factor, name = next((one for one in units if abs(value) >= one[0]), units[-1])
    return f"{three_figures(value / factor)}{name}"


def three_figures(value: float) -> str:
    size = abs(value)
    if 0 < size < 0.005:
        return "<0.01"
    if size < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if size < 100 else f"{value:,.0f}"


def ratio(figure: Estimate | None) -> str:
    return "" if figure is None else f"{three_figures(figure.median)} ×"


def interval(figure: Estimate | None) -> str:
    return "" if figure is None else f"{three_figures(figure.low)}–{high_end(figure.high)}"


def high_end(value: float) -> str:
    """Rounds up what would else read as if it excluded a loss of more than a quarter."""
    shown = three_figures(value)
    hides_a_loss = value > NOT_SLOWER_WITHIN and shown == three_figures(NOT_SLOWER_WITHIN)
    return three_figures(ceil(value * 100) / 100) if hides_a_loss else shown


def quantity_with_interval(figure: Estimate, unit: str) -> str:
    return f"{quantity(figure.median, unit)} ({quantity(figure.low, unit)} to {quantity(figure.high, unit)})"


def spread(figure: Estimate) -> str:
    """Half the interval, as a share of the median; empty where one sample is all there is."""
    if figure.count < 2 or not figure.median:
        return ""
    return "> 999 %" if figure.spread > 9.99 else f"± {figure.spread * 100:.0f} %"

"""How figures are written, wherever they appear."""

from __future__ import annotations

from tocsin_lab.statistics import Estimate


def quantity(value: float, unit: str) -> str:
    """Three figures, in the unit that suits the size."""
    if unit == "ns":
        for factor, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
            if abs(value) >= factor:
                return f"{three_figures(value / factor)} {name}"
        return f"{three_figures(value)} ns"
    if unit == "bytes":
        return f"{value:,.0f} B"
    return three_figures(value)


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
    return "" if figure is None else f"{three_figures(figure.low)}–{three_figures(figure.high)}"

# SPDX-License-Identifier: Apache-2.0
"""`./dev lab compare`: two results side by side."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tocsin_lab.analyse.compare import Change, Comparison, Difference, compare
from tocsin_lab.errors import REGRESSION, LabError
from tocsin_lab.measure.plan import require_known
from tocsin_lab.measure.results import load
from tocsin_lab.present.numerals import interval, quantity, three_figures
from tocsin_lab.present.tables import make_console
from tocsin_lab.records import Result


def run(options: argparse.Namespace) -> int:
    before, after = load(options.before, any_format=True), load(options.after, any_format=True)
    scenarios = dict.fromkeys(one.name for result in (before, after) for one in result.scenarios)
    contestants = {one.name: one.label for one in [*before.contestants, *after.contestants]}
    require_known("scenario", options.scenario, scenarios)
    require_known("contestant", options.contestant, contestants)
    try:
        found = compare(before, after, set(options.contestant) or None, set(options.scenario) or None)
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"results of formats {before.format} and {after.format} can't be compared: {error!r}") from None
    console = make_console()
    for which, path, result in (("first", options.before, before), ("second", options.after, after)):
        console.print(f"{which:<7} {origin(path, result)}", markup=False, soft_wrap=True)
    show(console, found, contestants)
    return REGRESSION if found.of(Change.SLOWER) else 0


def origin(path: Path, result: Result) -> str:
    """Which version a result measured, when, where and how thoroughly."""
    return (
        f"{path}: commit {(result.project.commit or 'unknown')[:12]}, {(result.started or 'at an unknown time')[:16]}, "
        f"{result.machine.processor}, {result.rounds_finished} rounds"
    )


def show(console: Console, found: Comparison, labels: dict[str, str]) -> None:
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", "bold yellow"))
    for change, style in ((Change.SLOWER, "bold red"), (Change.FASTER, "green")):
        if found.of(change):
            console.rule(Text(change.value, style), align="left")
            console.print(table_of(found.of(change), labels))
    if found.counted:
        console.rule("other counts (one run each: no interval, no verdict)", align="left")
        show_counts(console, found.counted, labels)
    for text in found.missing:
        console.print(Text(f"  {text}", "dim"))
    conclude(console, found)


def show_counts(console: Console, counted: Iterable[Difference], labels: dict[str, str]) -> None:
    for one in counted:
        was, now = three_figures(one.before.median), three_figures(one.after.median)
        console.print(f"  {escape(name_of(one, labels))}: {was} → {now}")


def name_of(one: Difference, labels: dict[str, str]) -> str:
    contestant = "" if one.contestant == "tocsin" else f" [{labels[one.contestant]}]"
    return f"{one.case.name(', ')}: {one.column.label}{contestant}"


def table_of(differences: Iterable[Difference], labels: dict[str, str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "first", "second", "times", "to", "first", "second"):
        table.add_column(heading, justify="left" if heading in ("", "to") else "right")
    for one in differences:
        ratios = [
            f"{three_figures(ratio.median)} ({interval(ratio)})" if ratio else ""
            for ratio in (one.ratio_before, one.ratio_after)
        ]
        table.add_row(
            escape(name_of(one, labels)),
            quantity(one.before.median, one.column.unit),
            quantity(one.after.median, one.column.unit),
            f"{three_figures(one.times)} ×",
            escape(labels[one.reference]) if one.reference else "",
            *ratios,
        )
    return table


def conclude(console: Console, found: Comparison) -> None:
    counts = {change: len(found.of(change)) for change in Change}
    console.rule("of tocsin's figures" if found.differences else "nothing to compare", align="left")
    console.print("  " + "   ".join(f"{count} {change.value}" for change, count in counts.items()))
    moved = sum(one.change in (Change.SLOWER, Change.FASTER) for one in found.controls)
    if found.controls:
        console.print(
            f"  By the same rule, {moved} of the {len(found.controls)} figures of others differ, though their code is "
            "the same. That is how much a single difference is worth."
        )

"""What is done with results that are there already: `report` makes its page, `compare` holds two together."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tocsin_lab.cli import BAD_REQUEST, NOT_SAVED, names
from tocsin_lab.compare import Change, Comparison, Difference, compare, name_of
from tocsin_lab.plan import require_known
from tocsin_lab.report import ReportError, write_report
from tocsin_lab.results import load
from tocsin_lab.tables import interval, quantity, three_figures

REGRESSION = 1


def report(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev lab report", description="Makes the page of a result again: one HTML file that needs no network."
    )
    parser.add_argument("result", type=Path, metavar="RESULT.json")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page (default: beside the result, as .html)")
    options = parser.parse_args(arguments)
    path = options.out or options.result.with_suffix(".html")
    if not save_report(load(options.result), path):
        return NOT_SAVED
    print(f"Report: {path}")
    return 0


def save_report(result: dict[str, Any], path: Path) -> bool:
    try:
        write_report(result, path)
        return True
    except ReportError as error:
        print(f"lab: no report: {error}", file=sys.stderr)
    except OSError as error:
        print(f"lab: the report can't be written to {path}: {error.strerror or error}", file=sys.stderr)
    return False


def compare_results(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev lab compare",
        description="What became slower or faster from the first result to the second. Exit code 1: tocsin did "
        "become slower somewhere.",
    )
    parser.add_argument("before", type=Path, metavar="A.json")
    parser.add_argument("after", type=Path, metavar="B.json")
    parser.add_argument("--scenario", type=names, action="extend", default=[], metavar="NAME[,NAME...]")
    parser.add_argument(
        "--contestant", type=names, action="extend", default=[], metavar="NAME[,NAME...]",
        help="instead of tocsin and its variants",
    )
    options = parser.parse_args(arguments)
    before, after = load(options.before, any_format=True), load(options.after, any_format=True)
    for what, wanted in (("scenario", options.scenario), ("contestant", options.contestant)):
        require_known(what, wanted, known_names(f"{what}s", before, after))
    try:
        found = compare(before, after, set(options.contestant) or None, set(options.scenario) or None)
    except (KeyError, TypeError, ValueError) as error:
        formats = f"{before['format']} and {after['format']}"
        print(f"lab: results of formats {formats} can't be compared: {error!r}", file=sys.stderr)
        return BAD_REQUEST
    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=140)
    labels = {one["name"]: one["label"] for one in [*before["contestants"], *after["contestants"]]}
    show(console, found, labels)
    return REGRESSION if found.of(Change.SLOWER) else 0


def known_names(part: str, *results: dict[str, Any]) -> Iterable[str]:
    return dict.fromkeys(one["name"] for result in results for one in result[part])


def show(console: Console, found: Comparison, labels: dict[str, str]) -> None:
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", "bold yellow"))
    for change, style in ((Change.SLOWER, "bold red"), (Change.FASTER, "green")):
        if found.of(change):
            console.rule(Text(change.value, style), align="left")
            console.print(table_of(found.of(change), labels))
    if found.counted:
        console.rule("other counts (one run each: no interval, no verdict)", align="left")
        for one in found.counted:
            console.print(f"  {escape(place(one, labels))}: {three_figures(one.before.median)} → "
                          f"{three_figures(one.after.median)}")  # fmt: skip
    for text in found.missing:
        console.print(Text(f"  {text}", "dim"))
    conclude(console, found)


def place(one: Difference, labels: dict[str, str]) -> str:
    who = "" if one.contestant == "tocsin" else f" [{labels[one.contestant]}]"
    return f"{name_of(one.case)}: {one.column['label']}{who}"


def table_of(differences: list[Difference], labels: dict[str, str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "first", "second", "times", "to", "first", "second"):
        table.add_column(heading, justify="left" if heading in ("", "to") else "right")
    for one in differences:
        unit = one.column["unit"]
        ratios = [
            f"{three_figures(ratio.median)} ({interval(ratio)})" if ratio else ""
            for ratio in (one.ratio_before, one.ratio_after)
        ]
        table.add_row(
            escape(place(one, labels)),
            quantity(one.before.median, unit),
            quantity(one.after.median, unit),
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
            f"  Of the others' {len(found.controls)} figures {moved} differ by the same rule, though their code is the "
            "same: so much a single difference is worth."
        )


VERBS = {"compare": compare_results, "report": report}

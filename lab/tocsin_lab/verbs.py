"""What is done with results that are there already: `report` makes its page, `compare` holds two together, `scaling`
predicts other numbers of cores from one, `quote` makes the README's table."""

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

from tocsin_lab import scaling as model
from tocsin_lab.cli import BAD_REQUEST, NOT_SAVED, ROOT, names, positive_whole
from tocsin_lab.compare import Change, Comparison, Difference, compare, name_of
from tocsin_lab.machine import Disturbance
from tocsin_lab.numerals import interval, quantity, three_figures
from tocsin_lab.plan import require_known
from tocsin_lab.quotes import table as quoted_table
from tocsin_lab.report import ReportError, write_report
from tocsin_lab.results import ResultError, load
from tocsin_lab.summary import summarise

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
    for which, path, result in (("first", options.before, before), ("second", options.after, after)):
        console.print(f"{which:<7} {origin(path, result)}", markup=False, soft_wrap=True)
    show(console, found, labels)
    return REGRESSION if found.of(Change.SLOWER) else 0


def origin(path: Path, result: dict[str, Any]) -> str:
    """Of which version, when, where and how thoroughly a result was measured."""
    commit = (result["project"].get("commit") or "unknown")[:12]
    return (
        f"{path}: commit {commit}, {str(result.get('started') or 'at an unknown time')[:16]}, "
        f"{result['machine'].get('processor')}, {result['rounds_finished']} rounds"
    )


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


def scaling(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev lab scaling",
        description="What a wake-up of many and a busy bucket would take with more cores, by a simulation of the costs "
        "that a result measured; and where the result measured the same itself, both beside each other.",
        epilog=f"A result with all that is needed: ./dev lab --scenario {','.join(model.NEEDED)}",
    )
    parser.add_argument("result", type=Path, nargs="?", metavar="RESULT.json",
                        help="default: the newest in build/lab/ that has what is needed")  # fmt: skip
    parser.add_argument("--cores", type=numbers, default=model.CORES, metavar="N[,N...]")
    parser.add_argument("--waiters", type=numbers, default=model.WAITERS, metavar="N[,N...]")
    options = parser.parse_args(arguments)
    if max(options.cores) > model.MOST_CORES or max(options.waiters) > model.MOST_WAITERS:
        parser.error(f"at most {model.MOST_CORES} cores and {model.MOST_WAITERS:,} waiters: beyond them nothing holds")
    try:
        path, result = (options.result, load(options.result)) if options.result else newest_with_costs()
        cases = summarise(result)
        costs = model.costs_of(result, cases)
    except model.Lacking as error:
        print(f"lab: {error}", file=sys.stderr)
        return BAD_REQUEST
    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=140)
    machine = result["machine"]
    console.print(f"{path}: {machine['processor']}, {len(machine['usable_cores'])} cores, {machine['kernel']}",
                  markup=False, soft_wrap=True)  # fmt: skip
    rounds = [Disturbance(one["others"], one["stolen"]) for one in result["quietness"]["rounds"]]
    if complaint := max(rounds, key=lambda one: one.others, default=Disturbance(0, 0)).complaint():
        console.print(Text(f"warning: {complaint}; what is measured takes longer than what is predicted", "bold yellow"))
    show_costs(console, costs)
    show_checks(console, list(model.checks(result, model.as_costs(costs), cases)))
    if model.is_of_one_core(costs) and max(options.cores) > 1:
        console.print("Measured on one core: it doesn't say what a second one would cost, so only one is predicted.")
        options.cores = (1,)
    show_predictions(console, model.as_costs(costs), options.cores, options.waiters)
    return 0


def numbers(text: str) -> tuple[int, ...]:
    found = tuple(positive_whole(one) for one in names(text))
    if not found:
        raise argparse.ArgumentTypeError(f"{text}: expected numbers above 0")
    return found


def newest_with_costs() -> tuple[Path, dict[str, Any]]:
    folder = ROOT / "build" / "lab"
    for path in sorted(folder.glob("*.json"), key=lambda one: one.stat().st_mtime, reverse=True):
        try:
            result = load(path)
            model.costs_of(result)
        except (ResultError, model.Lacking):
            continue
        return path, result
    raise model.Lacking(
        f"no result in {folder} has what is needed; measure with ./dev lab --scenario {','.join(model.NEEDED)}"
    )


def show_costs(console: Console, costs: list[model.Cost]) -> None:
    console.rule("costs, as measured", align="left")
    table = Table(box=None, pad_edge=False)
    for heading in ("", "", "from"):
        table.add_column(heading)
    table.add_column("", justify="right")
    for one in costs:
        table.add_row(one.name, one.meaning, one.source, quantity(one.value, "ns"))
    console.print(table)


def show_checks(console: Console, found: list[model.Check]) -> None:
    if not found:
        return
    console.rule("this machine: predicted and measured", align="left")
    table = Table(box=None, pad_edge=False)
    for heading in ("", "", ""):
        table.add_column(heading)
    for heading in ("predicted", "measured", "interval", "measured by predicted"):
        table.add_column(heading, justify="right")
    previous: tuple[str, str] | None = None
    for one in found:
        where = (one.what, one.who)
        table.add_row(
            *(where if where != previous else ("", "")),
            one.column,
            quantity(one.predicted, "ns"),
            quantity(one.measured.median, "ns"),
            f"{quantity(one.measured.low, 'ns')}–{quantity(one.measured.high, 'ns')}",
            f"{three_figures(one.times)} ×",
        )
        previous = where
    console.print(table)


def show_predictions(
    console: Console, costs: model.Costs, cores: tuple[int, ...], waiters: tuple[int, ...]
) -> None:
    for title, rows in model.tables(costs, cores, waiters):
        console.rule(title, align="left")
        table = Table(box=None, pad_edge=False)
        table.add_column("")
        for number in cores:
            table.add_column(f"{number} core{'' if number == 1 else 's'}", justify="right")
        for label, times in rows:
            table.add_row(label, *(quantity(time, "ns") for time in times))
        console.print(table)


def quote(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev lab quote", description="Prints the table of figures that the README quotes from a result."
    )
    parser.add_argument("result", type=Path, metavar="RESULT.json")
    print("\n".join(quoted_table(load(parser.parse_args(arguments).result))))
    return 0


VERBS = {"compare": compare_results, "quote": quote, "report": report, "scaling": scaling}

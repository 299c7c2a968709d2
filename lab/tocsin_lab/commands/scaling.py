# SPDX-License-Identifier: Apache-2.0
"""`./dev lab scaling`: predicts other numbers of cores from a result."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tocsin_lab.analyse import scaling as model
from tocsin_lab.analyse.summary import summarise
from tocsin_lab.arguments import RESULTS
from tocsin_lab.measure.results import ResultError, load
from tocsin_lab.present.numerals import quantity, three_figures
from tocsin_lab.present.tables import make_console
from tocsin_lab.records import Result


def run(options: argparse.Namespace) -> int:
    path, result = (options.result, load(options.result)) if options.result else newest_with_costs()
    cases = summarise(result)
    costs = model.costs_of(result, cases)
    console = make_console()
    machine = result.machine
    console.print(f"{path}: {machine.processor}, {len(machine.usable_cores)} cores, {result.measured_on}",
                  markup=False, soft_wrap=True)  # fmt: skip
    rounds = result.quietness.rounds
    if rounds and (complaint := max(rounds, key=lambda one: one.others).complaint()):
        console.print(Text(f"warning: {complaint}; measured times are longer than predicted ones", "bold yellow"))
    show_costs(console, costs)
    show_checks(console, list(model.checks(result, model.as_costs(costs), cases)))
    cores = options.cores
    if model.is_of_one_core(costs) and max(cores) > 1:
        console.print("Measured on one core: the costs of a second one are unknown, so only one is predicted.")
        cores = (1,)
    show_predictions(console, model.as_costs(costs), cores, options.waiters)
    return 0


def newest_with_costs() -> tuple[Path, Result]:
    for path in sorted(RESULTS.glob("*.json"), key=lambda one: one.stat().st_mtime, reverse=True):
        try:
            result = load(path)
            model.costs_of(result, summarise(result))
        except (ResultError, model.Lacking):
            continue
        return path, result
    raise model.Lacking(
        f"no result in {RESULTS} has what is needed; measure with ./dev lab --scenario {','.join(model.NEEDED)}"
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


def show_predictions(console: Console, costs: model.Costs, cores: tuple[int, ...], waiters: tuple[int, ...]) -> None:
    for title, rows in model.tables(costs, cores, waiters):
        console.rule(title, align="left")
        table = Table(box=None, pad_edge=False)
        table.add_column("")
        for number in cores:
            table.add_column(f"{number} core{'' if number == 1 else 's'}", justify="right")
        for label, times in rows:
            table.add_row(label, *(quantity(time, "ns") for time in times))
        console.print(table)

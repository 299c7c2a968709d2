# SPDX-License-Identifier: Apache-2.0
"""`./dev lab --list`: what there is to run."""

import argparse

from rich.console import Console
from rich.markup import escape

from tocsin_lab.measure.workers import Catalogue, open_catalogue
from tocsin_lab.present.tables import make_console
from tocsin_lab.records import Scenario


def run(options: argparse.Namespace) -> int:
    print_catalogue(make_console(), open_catalogue(options.workers))
    return 0


def print_catalogue(console: Console, catalogue: Catalogue) -> None:
    console.print("[bold]Contestants[/] (--contestant)")
    for name, one in catalogue.contestants.items():
        limits = f"; limits: {one.limits}" if one.limits else ""
        console.print(f"  [bold]{name}[/] ({one.role}): {escape(one.about + limits)}")
    console.print("\n[bold]Scenarios[/] (--scenario), their cases (--where), and who can't take part")
    for name, scenario in catalogue.scenarios.items():
        console.print(f"  [bold]{name}[/]: {escape(scenario.question)}")
        print_cases(console, scenario)


def print_cases(console: Console, scenario: Scenario) -> None:
    values: dict[str, dict[str, None]] = {}
    reasons: dict[str, str] = {}
    for case in scenario.cases:
        for parameter, value in case.parameters.items():
            values.setdefault(parameter, {})[value] = None
        reasons.update(case.refusals)
    for parameter, known in values.items():
        console.print(f"      {parameter}={','.join(known)}")
    for contestant, reason in reasons.items():
        always = all(contestant in case.refusals for case in scenario.cases)
        where = "without" if always else "in some cases without"
        console.print(f"      [dim]{where} {contestant}: {escape(reason)}")

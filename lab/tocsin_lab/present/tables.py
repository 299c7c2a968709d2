# SPDX-License-Identifier: Apache-2.0
"""Shows a summary on the terminal."""

from collections.abc import Mapping
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tocsin_lab.analyse.figures import Figure
from tocsin_lab.analyse.summary import CaseSummary, Judgement, measured_columns, summarise, tally
from tocsin_lab.analyse.verdict import Outcome, TargetResult, Verdict
from tocsin_lab.present.numerals import interval, quantity, ratio, three_figures
from tocsin_lab.present.quotes import WIDEST, rows_of
from tocsin_lab.records import Contestant, Result

STYLES = {"ours": "bold green", "floor": "cyan", "variant": "green", "reference": "dim", "rejected": "dim"}
VERDICT_STYLES = {Verdict.WIN: "green", Verdict.NOT_SLOWER: "yellow", Verdict.OPEN: "magenta", Verdict.LOSS: "bold red"}
OUTCOME_STYLES = {Outcome.REACHED: "green", Outcome.WITHIN_ERROR: "yellow", Outcome.MISSED: "bold red"}
LOG_WIDTH = 140  # of tables that go to a file


def make_console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=LOG_WIDTH)


def print_tables(console: Console, result: Result, *, every_case: bool) -> None:
    """The answers; with `every_case`, first a table for each case, and by name all losses and missed targets."""
    cases = summarise(result)
    if every_case:
        for _, group in groupby(cases, key=lambda case: case.scenario.name):
            print_scenario(console, list(group), result.by_name)
        print_losses(console, cases, result.by_name)
    print_answers(console, result)
    print_circumstances(console, result)
    print_finding(console, cases)


def print_scenario(console: Console, cases: list[CaseSummary], contestants: Mapping[str, Contestant]) -> None:
    scenario = cases[0].scenario
    console.rule(f"[bold]{escape(scenario.title)}[/]  {escape(scenario.question)}", align="left")
    console.print(f"[dim]{escape(scenario.method)}.\nFloor: {escape(scenario.floor)}.")
    for case in cases:
        print_case(console, case, contestants)


def print_case(console: Console, case: CaseSummary, contestants: Mapping[str, Contestant]) -> None:
    columns = measured_columns([case])
    table = Table(title=escape(case.title) or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("", no_wrap=True, min_width=max(len(contestants[name].label) for name in case.figures))
    for column in columns:
        table.add_column(column.label, justify="right")
        if column is columns[0]:
            for heading in ("±", "to floor", "to best peer"):
                table.add_column(heading, justify="right")
    for name, figures in case.figures.items():
        cells: list[str] = []
        for column in columns:
            figure = figures.get(column.key)
            cells.append(quantity(figure.value.median, column.unit) if figure else "")
            if column is columns[0]:
                cells += leading_cells(figure)
        table.add_row(contestants[name].label, *cells, style=STYLES.get(contestants[name].role, ""))
    console.print(table)
    print_remarks(console, case, contestants)
    console.print()


def leading_cells(figure: Figure | None) -> list[str]:
    if figure is None:
        return ["", "", ""]
    spread = "> 999%" if figure.value.spread > 9.99 else f"{figure.value.spread:.0%}"
    return [spread, ratio(figure.to_floor), ratio(figure.to_best_peer)]


def print_remarks(console: Console, case: CaseSummary, contestants: Mapping[str, Contestant]) -> None:
    def label(name: str) -> str:
        return contestants[name].label if name in contestants else name

    for one in case.judgements:
        text = Text(f"  {one.column.title}: ")
        text.append(one.verdict.value, VERDICT_STYLES[one.verdict])
        text.append(f" against {label(one.against)}")
        if one.ratio is not None:
            text.append(f", {ratio(one.ratio)} ({interval(one.ratio)})")
        console.print(text)
    for target in case.targets:
        against = "" if target.against == target.target.against else f" ({label(target.against)})"
        text = Text(f"  target {target.column.label} {target.target.describe()}{against}: ")
        text.append(target.outcome.value, OUTCOME_STYLES[target.outcome])
        text.append(f", {three_figures(target.figure.median)} ({interval(target.figure)})")
        if target.target.contestant != "tocsin":
            text.append(f" [{label(target.target.contestant)}]")
        console.print(text)
    for name, reason in case.excluded.items():
        console.print(Text(f"  {label(name)} failed: {reason}", "bold red"))
    for note, about in case.notes.items():
        whose = "all" if len(about) == len(case.figures) else ", ".join(map(label, about))
        console.print(Text(f"  note: {note} ({whose})", "yellow"))


def print_losses(console: Console, cases: list[CaseSummary], contestants: Mapping[str, Contestant]) -> None:
    """Every loss and every missed target by name."""
    console.rule("[bold]Where tocsin takes more than the best of the others", align="left")
    for case in cases:
        for one in case.judgements:
            if one.verdict is Verdict.LOSS:
                console.print(Text(f"  {loss_in_words(case, one, contestants)}", "red"))
    console.rule("[bold]Targets that it misses", align="left")
    for case in cases:
        for one in case.targets:
            if one.outcome is Outcome.MISSED:
                console.print(Text(f"  {target_in_words(case, one)}", "red"))


def print_finding(console: Console, cases: list[CaseSummary]) -> None:
    if any((counts := tally(cases)).values()):
        console.print(f"\n{finding(counts)}", soft_wrap=True)


def finding(counts: Mapping[Verdict, int]) -> str:
    """What a run found, in one sentence."""
    compared = sum(counts.values())
    undecided = f"; not decided: {counts[Verdict.OPEN]}" if counts[Verdict.OPEN] else ""
    return (
        f"In {compared} comparison{'' if compared == 1 else 's'} with the best of the others, tocsin takes less in "
        f"{counts[Verdict.WIN]}, is not slower in {counts[Verdict.NOT_SLOWER]} and takes more in {counts[Verdict.LOSS]}"
        f"{undecided}."
    )


def loss_in_words(case: CaseSummary, one: Judgement, contestants: Mapping[str, Contestant]) -> str:
    figure = f"{ratio(one.ratio)} ({interval(one.ratio)})"
    return f"{case.name()}: {one.column.label} {figure} {contestants[one.against].label}"


def target_in_words(case: CaseSummary, one: TargetResult) -> str:
    figure = f"{three_figures(one.figure.median)} ({interval(one.figure)})"
    return f"{case.name()}: {one.column.label} {figure}, wanted {one.target.describe()}"


def print_answers(console: Console, result: Result) -> None:
    """The one table that says what this machine answers. It fits into 80 columns."""
    rows = rows_of(result)
    if not rows:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True, width=WIDEST)
    table.add_column("tocsin", justify="right", style="bold green", no_wrap=True)
    table.add_column("best of", justify="right", no_wrap=True)
    table.add_column("the others", max_width=23, no_wrap=True)
    table.add_column("takes", justify="right", no_wrap=True)
    for one in rows:
        style = VERDICT_STYLES[one.verdict]
        table.add_row(Text(one.question), one.ours, one.best, Text(one.who, "dim"), Text(one.comparison, style))
    console.print(table)


def print_circumstances(console: Console, result: Result) -> None:
    machine, plan, project = result.machine, result.plan, result.project
    commit = (project.commit or "unknown")[:12] + (" with changes" if project.changed else "")
    build = next(iter(result.workers.values()))
    for line in (
        f"{machine.processor}, {machine.cores} cores, {result.measured_on}",
        f"{build.compiler}, {build.standard_library}",
        f"commit {commit}; {plan.mode}, {result.rounds_finished} of {plan.rounds} rounds, seed {plan.seed}",
    ):
        console.print(Text(f"  {line}", "dim"))
    if loud := result.quietness.loud_rounds:
        worst = max(result.quietness.rounds[number - 1].others for number in loud)
        console.print(
            Text(
                f"  In {len(loud)} of {len(result.quietness.rounds)} rounds other programs used the machine "
                f"(up to {worst:.0%} of its cores): medians are doubtful, ratios less so.",
                "yellow",
            )
        )
    if result.interrupted:
        console.print(Text("  Interrupted: what was measured until then is kept.", "bold yellow"))

"""Lays out a summary on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tocsin_lab.numerals import interval, quantity, ratio, three_figures
from tocsin_lab.statistics import Verdict
from tocsin_lab.summary import CaseSummary, Figure, Outcome

STYLES = {"ours": "bold green", "floor": "cyan", "variant": "green", "reference": "dim", "rejected": "dim"}
VERDICT_STYLES = {Verdict.WIN: "green", Verdict.TIE: "yellow", Verdict.LOSS: "bold red"}
OUTCOME_STYLES = {Outcome.REACHED: "green", Outcome.WITHIN_ERROR: "yellow", Outcome.MISSED: "bold red"}


def print_scenario(console: Console, cases: list[CaseSummary], contestants: Mapping[str, Any]) -> None:
    scenario = cases[0].scenario
    console.rule(f"[bold]{escape(scenario['name'].replace('_', ' '))}[/]  {escape(scenario['question'])}", align="left")
    console.print(f"[dim]{escape(scenario['method'])}.\nFloor: {escape(scenario['floor'])}.", highlight=False)
    for case in cases:
        print_case(console, case, contestants)


def print_case(console: Console, case: CaseSummary, contestants: Mapping[str, Any]) -> None:
    columns = case.scenario["columns"]
    table = Table(title=escape(case.title) or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("", no_wrap=True, min_width=max(len(contestants[name]["label"]) for name in case.figures))
    for column in columns:
        table.add_column(column["label"], justify="right")
        if column is columns[0]:
            for heading in ("±", "to floor", "to best peer"):
                table.add_column(heading, justify="right")
    for name, figures in case.figures.items():
        cells: list[str] = []
        for column in columns:
            figure = figures.get((column["metric"], column["statistic"]))
            cells.append(quantity(figure.value.median, column["unit"]) if figure else "")
            if column is columns[0]:
                cells += leading_cells(figure)
        contestant = contestants[name]
        table.add_row(contestant["label"], *cells, style=STYLES.get(contestant["role"], ""))
    console.print(table)
    print_remarks(console, case, contestants)
    console.print()


def leading_cells(figure: Figure | None) -> list[str]:
    if figure is None:
        return ["", "", ""]
    spread = "> 999%" if figure.value.spread > 9.99 else f"{figure.value.spread:.0%}"
    return [spread, ratio(figure.to_floor), ratio(figure.to_best_peer)]


def print_remarks(console: Console, case: CaseSummary, contestants: Mapping[str, Any]) -> None:
    def label(name: str) -> str:
        return contestants[name]["label"] if name in contestants else name

    for one in case.judgements:
        text = Text(f"  {one.column['label']}{statistic_of(one.column)}: ")
        text.append(one.verdict.value, VERDICT_STYLES[one.verdict])
        text.append(f" against {label(one.against)}")
        if one.ratio is not None:
            text.append(f", {ratio(one.ratio)} ({interval(one.ratio)})")
        console.print(text)
    for target in case.targets:
        against = "" if target.against == target.target.against else f" ({label(target.against)})"
        text = Text(f"  target {target.column['label']} {target.target.describe()}{against}: ")
        text.append(target.outcome.value, OUTCOME_STYLES[target.outcome])
        text.append(f", {three_figures(target.figure.median)} ({interval(target.figure)})")
        if target.target.contestant != "tocsin":
            text.append(f" [{label(target.target.contestant)}]")
        console.print(text)
    for name, reason in case.excluded.items():
        console.print(Text(f"  {label(name)} failed: {reason}", "bold red"))
    for note, who in case.notes.items():
        whose = "all" if len(who) == len(case.figures) else ", ".join(map(label, who))
        console.print(Text(f"  note: {note} ({whose})", "yellow"))


def statistic_of(column: Mapping[str, Any]) -> str:
    return " p99" if column["statistic"] == "p99" and column["label"] != "p99" else ""


def print_conclusion(console: Console, cases: list[CaseSummary], result: Mapping[str, Any]) -> None:
    """Wins, ties and losses, and every loss and missed target by name."""
    contestants = {one["name"]: one for one in result["contestants"]}
    judgements = [(case, one) for case in cases for one in case.judgements]
    targets = [(case, one) for case in cases for one in case.targets]
    console.rule("[bold]tocsin against the best peer of each case", align="left")
    counts = Text("  ")
    for verdict in Verdict:
        count = sum(one.verdict is verdict for _, one in judgements)
        counts.append(f"{count} {PLURALS[verdict]}   ", VERDICT_STYLES[verdict])
    console.print(counts)
    for case, one in judgements:
        if one.verdict is Verdict.LOSS:
            peer = contestants[one.against]["label"]
            where = " ".join(part for part in (case.scenario["name"].replace("_", " "), case.title) if part)
            console.print(
                Text(f"  loss: {where}: {one.column['label']} {ratio(one.ratio)} ({interval(one.ratio)}) {peer}", "red")
            )
    counts = Text("  targets: ")
    for outcome in Outcome:
        count = sum(one.outcome is outcome for _, one in targets)
        counts.append(f"{count} {outcome.value}   ", OUTCOME_STYLES[outcome])
    console.print(counts)
    for case, one in targets:
        if one.outcome is Outcome.MISSED:
            where = " ".join(part for part in (case.scenario["name"].replace("_", " "), case.title) if part)
            console.print(
                Text(
                    f"  missed: {where}: {one.column['label']} {three_figures(one.figure.median)} "
                    f"({interval(one.figure)}), wanted {one.target.describe()}",
                    "red",
                )
            )
    print_circumstances(console, result)


PLURALS = {Verdict.WIN: "wins", Verdict.TIE: "without a difference", Verdict.LOSS: "losses"}


def print_circumstances(console: Console, result: Mapping[str, Any]) -> None:
    machine, plan = result["machine"], result["plan"]
    commit = (result["project"]["commit"] or "unknown")[:12] + (" with changes" if result["project"]["changed"] else "")
    build = next(iter(result["workers"].values()))
    console.print(
        f"[dim]  {machine['processor']}, {machine['cores']} cores, {machine['kernel']}; {build['compiler']}, "
        f"{build['standard_library']}; commit {commit}; {plan['mode']}, {result['rounds_finished']} of "
        f"{plan['rounds']} rounds, seed {plan['seed']}",
        highlight=False,
    )
    noisy = [one for one in result["quietness"]["rounds"] if one["others"] > 0.10 or one["stolen"] > 0.10]
    if noisy:
        worst = max(one["others"] for one in noisy)
        console.print(
            Text(
                f"  In {len(noisy)} of {len(result['quietness']['rounds'])} rounds others used the machine "
                f"(up to {worst:.0%} of its cores): medians are doubtful, ratios less so.",
                "yellow",
            )
        )
    if result["interrupted"]:
        console.print(Text("  Interrupted: what was measured until then is kept.", "bold yellow"))

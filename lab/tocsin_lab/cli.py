"""The command line of the laboratory."""

from __future__ import annotations

import argparse
import datetime
import os
import secrets
import signal
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from tocsin_lab.plan import MODES, Selection, UnknownName, require_known, select, with_overrides
from tocsin_lab.results import ResultError, reason_of, save_or_print, why_not_writable
from tocsin_lab.session import Session
from tocsin_lab.smoke import smoke
from tocsin_lab.summary import summarise
from tocsin_lab.workers import Catalogue, WorkerError, find_workers, load_catalogue

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_WORKERS = ROOT / "build" / "release" / "lab"
BAD_REQUEST = 2
NOT_SAVED = 3
INTERRUPTED = 130
REQUIREMENTS = "lab/requirements.txt"
LOG_WIDTH = 140  # of tables that go to a file


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def condition(text: str) -> tuple[str, tuple[str, ...]]:
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise argparse.ArgumentTypeError(f"{text}: expected PARAMETER=VALUE[,VALUE...]")
    return name, tuple(names(values))


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
    return number


def positive_whole(text: str) -> int:
    number = positive(text)
    if number != int(number):
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number")
    return int(number)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev lab",
        description="Measures how fast threads wake on this machine: tocsin beside what else there is.",
        epilog="With results: ./dev lab report RESULT.json, ./dev lab compare A.json B.json, ./dev lab scaling RESULT.json, "
        "./dev lab quote RESULT.json",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", dest="mode", action="store_const", const="quick", help="about two minutes")
    length.add_argument("--full", dest="mode", action="store_const", const="full", help="every case, hours")
    parser.set_defaults(mode="default")
    parser.add_argument("--all", action="store_true", help="every contestant there is; takes several times as long")
    parser.add_argument("--smoke", action="store_true", help="only check that everything still runs, in seconds")
    parser.add_argument("--list", action="store_true", help="what there is to run, and who can't run where and why")
    parser.add_argument("--scenario", type=names, action="extend", default=[], metavar="NAME[,NAME...]")
    parser.add_argument("--contestant", type=names, action="extend", default=[], metavar="NAME[,NAME...]")
    parser.add_argument(
        "--where", type=condition, action="append", default=[], metavar="PARAMETER=VALUE[,VALUE...]",
        help="only cases with these values, of any length of run",
    )
    parser.add_argument("--rounds", type=positive_whole, metavar="N", help="samples of each contestant")
    parser.add_argument("--budget-ms", type=positive, metavar="MS", help="how long one sample measures")
    parser.add_argument("--seed", type=int, metavar="N", help="decides every order; random if not given, and said")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the result file (default: below build/lab/)")
    parser.add_argument("--no-syscalls", action="store_true", help="don't count system calls")
    parser.add_argument("--workers", type=Path, default=DEFAULT_WORKERS, metavar="FOLDER", help=argparse.SUPPRESS)
    return parser


def main(arguments: list[str]) -> int:
    try:
        if arguments and not arguments[0].startswith("-"):
            return verb(arguments[0])(arguments[1:])
        return carry_out(make_parser().parse_args(arguments))
    except (UnknownName, WorkerError, ResultError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return BAD_REQUEST


def verb(name: str) -> Any:
    try:
        from tocsin_lab.verbs import VERBS
    except ImportError as error:
        raise WorkerError(f"needs the Python package {error.name} ({REQUIREMENTS}); ./dev lab installs it") from None
    require_known("verb", [name], VERBS)
    return VERBS[name]


def carry_out(options: argparse.Namespace) -> int:
    workers = find_workers(options.workers)
    if not workers:
        raise WorkerError(f"no workers in {options.workers}; ./dev lab builds them")
    catalogue = load_catalogue(workers)
    if options.smoke:
        return smoke(catalogue)
    mode = with_overrides(MODES[options.mode], options.rounds, options.budget_ms)
    selection = Selection(tuple(options.scenario), tuple(options.contestant), dict(options.where), options.all)
    pairs = select(catalogue, selection, mode.tier)
    if options.list:
        print_catalogue(make_console(), catalogue)
        return 0
    if not pairs:
        raise UnknownName("nothing to run: no contestant can take part in what was asked for (--list says why)")
    console = make_console()
    seed = options.seed if options.seed is not None else secrets.randbits(32)
    session = Session(catalogue, pairs, mode, seed, make_observer(), count_syscalls=not options.no_syscalls)
    return measure(console, session, options.out)


def make_console() -> Any:
    try:
        from rich.console import Console
    except ImportError:
        raise WorkerError(f"needs the Python package rich ({REQUIREMENTS}); ./dev lab installs it") from None
    console = Console()
    return console if console.is_terminal else Console(width=LOG_WIDTH)


def make_observer() -> Any:
    """Progress goes to the error stream, so that the tables can be redirected."""
    from rich.console import Console

    from tocsin_lab.progress import make_progress

    return make_progress(Console(stderr=True))


def measure(console: Any, session: Session, out: Path | None) -> int:
    from tocsin_lab.verbs import save_report

    path = out or default_path(session.mode.name)
    if reason := why_not_writable(path):
        session.observer.say(f"{path} can't be written: {reason}; the result will be printed instead")
    try:
        result = session.run(ROOT)
    finally:
        session.observer.stop()
    # Saved before anything is said about it, and not to be interrupted: what follows can fail without a loss.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    saved = save_or_print(result, path, sys.stdout, sys.stderr)
    page = path.with_suffix(".html")
    reported = saved and bool(result["samples"]) and save_report(result, page)
    signal.signal(signal.SIGINT, before)

    try:
        print_tables(console, result)
        if saved:
            console.print(f"  Everything measured: {path}", highlight=False, soft_wrap=True)
        if reported:
            console.print(f"  Report, to open in a browser: {page}", highlight=False, soft_wrap=True)
        sys.stdout.flush()
    except OSError as error:  # a full disk, or nobody reads any more
        print(f"lab: the tables can't be printed: {reason_of(error)}", file=sys.stderr)
        print_no_more()
    if result["interrupted"]:
        return INTERRUPTED
    return 0 if saved else NOT_SAVED


def print_no_more() -> None:
    """What is still to be written would fail again when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def print_tables(console: Any, result: dict[str, Any]) -> None:
    from tocsin_lab.tables import print_conclusion, print_scenario

    cases = summarise(result)
    contestants = {one["name"]: one for one in result["contestants"]}
    for _, group in groupby(cases, key=lambda case: case.scenario["name"]):
        print_scenario(console, list(group), contestants)
    print_conclusion(console, cases, result)


def default_path(mode: str) -> Path:
    now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    return ROOT / "build" / "lab" / f"{now}_{mode}.json"


def print_catalogue(console: Any, catalogue: Catalogue) -> None:
    from rich.markup import escape

    console.print("[bold]Contestants[/] (--contestant)")
    for name, one in catalogue.contestants.items():
        limits = f"; limits: {one['limits']}" if one["limits"] else ""
        console.print(f"  [bold]{name}[/] ({one['role']}): {escape(one['about'] + limits)}", highlight=False)
    console.print("\n[bold]Scenarios[/] (--scenario), cases (--where) and who can't take part")
    for name, scenario in catalogue.scenarios.items():
        console.print(f"  [bold]{name}[/]: {escape(scenario['question'])}", highlight=False)
        values: dict[str, list[str]] = {}
        reasons: dict[str, str] = {}
        for case in scenario["cases"]:
            for parameter, value in case["parameters"].items():
                known = values.setdefault(parameter, [])
                if value not in known:
                    known.append(value)
            reasons.update(case["refusals"])
        for parameter, known in values.items():
            console.print(f"      {parameter}={','.join(known)}", highlight=False)
        for who, why in reasons.items():
            always = all(who in case["refusals"] for case in scenario["cases"])
            where = "without" if always else "in some cases without"
            console.print(f"      [dim]{where} {who}: {escape(why)}", highlight=False)

# SPDX-License-Identifier: Apache-2.0
"""`./dev lab`: measures, saves the result and its report, and shows the answers; a longer run also shows each case."""

import argparse
import datetime
import os
import secrets
import sys
from pathlib import Path

from rich.console import Console

from tocsin_lab.analyse.summary import undecided
from tocsin_lab.arguments import ANSWERS, RESULTS, ROOT
from tocsin_lab.errors import INTERRUPTED, NOT_SAVED, complain
from tocsin_lab.files import reason_of, why_not_writable
from tocsin_lab.measure.interruption import Interruption
from tocsin_lab.measure.plan import MODES, Selection, UnknownName, select, with_overrides
from tocsin_lab.measure.progress import make_progress
from tocsin_lab.measure.results import save_or_print
from tocsin_lab.measure.session import Session
from tocsin_lab.measure.workers import open_catalogue
from tocsin_lab.present.quotes import QUOTED
from tocsin_lab.present.report import save_report
from tocsin_lab.present.tables import make_console, print_tables
from tocsin_lab.records import Parameters


def run(options: argparse.Namespace) -> int:
    catalogue = open_catalogue(options.workers)
    mode = with_overrides(MODES[options.mode], options.rounds, options.budget_ms)
    selection = Selection(tuple(options.scenario), tuple(options.contestant), dict(options.where), options.all)
    pairs = select(catalogue, selection, mode.tier)
    if options.mode == ANSWERS:
        asked = {(one.scenario, Parameters(one.where)) for one in QUOTED}
        pairs = [one for one in pairs if one.case in asked]
    if not pairs:
        raise UnknownName("nothing to run: no contestant can take part in what was asked for (--list says why)")
    seed = options.seed if options.seed is not None else secrets.randbits(32)
    # Until the program ends: an interruption shortens the measuring, and nothing else.
    with Interruption() as interruption:
        # Progress goes to the error stream, so that the tables can be redirected.
        observer = make_progress(Console(stderr=True))
        session = Session(
            catalogue, pairs, mode, seed, observer, ROOT, interruption,
            count_syscalls=mode.counts_syscalls and not options.no_syscalls, undecided=undecided,
        )  # fmt: skip
        path = options.out or default_path(mode.name)
        return measure(make_console(), session, path, every_case=options.mode != ANSWERS)


def default_path(mode: str) -> Path:
    now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    return RESULTS / f"{now}_{mode}.json"


def measure(console: Console, session: Session, path: Path, *, every_case: bool = True) -> int:
    if reason := why_not_writable(path):
        session.observer.say(f"{path} can't be written: {reason}; the result will be printed instead")
    try:
        result = session.run()
    finally:
        session.observer.stop()
    if result.interrupted:
        complain("interrupted; saving what was measured")
    # The result is saved first: whatever fails afterwards loses nothing.
    saved = save_or_print(result, path, sys.stdout, sys.stderr)
    page = path.with_suffix(".html")
    reported = saved and bool(result.samples) and save_report(result, page)
    try:
        print_tables(console, result, every_case=every_case)
        if saved:
            console.print(f"Everything measured: {path}", soft_wrap=True)
        if reported:
            console.print(f"Report, to open in a browser: {page}", soft_wrap=True)
        elif not result.samples:
            console.print("Nothing was measured, so there is no report.")
        sys.stdout.flush()
    except OSError as error:  # a full disk, a closed pipe or terminal
        complain(f"the tables can't be printed: {reason_of(error)}")
        print_no_more()
    if result.interrupted:
        return INTERRUPTED
    return 0 if saved else NOT_SAVED


def print_no_more() -> None:
    """Otherwise the interpreter tries again, when it ends, to write what it has buffered, and fails again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)

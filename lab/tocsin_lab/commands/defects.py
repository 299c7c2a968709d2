# SPDX-License-Identifier: Apache-2.0
"""`./dev lab defects`: what goes wrong elsewhere, shown on this machine, with tocsin under the same load."""

import argparse
import datetime
import sys
from pathlib import Path

from tocsin_lab.arguments import RESULTS, ROOT
from tocsin_lab.defects import DEFECTS, Findings
from tocsin_lab.errors import INTERRUPTED, NOT_SAVED, REGRESSION, complain
from tocsin_lab.files import why_not_writable
from tocsin_lab.measure.interruption import Interruption
from tocsin_lab.measure.machine import describe_machine, describe_project
from tocsin_lab.measure.reproductions import compiler_of, load_findings, try_defect
from tocsin_lab.measure.results import save_or_print
from tocsin_lab.present.defects import row_in_words, save_page


def run(options: argparse.Namespace) -> int:
    if options.result:
        page = options.result.with_name(options.result.name.removesuffix(".xz").removesuffix(".json") + ".html")
        if not save_page(load_findings(options.result), page):
            return NOT_SAVED
        print(f"Page: {page}")
        return 0
    path = options.out or RESULTS / "defects" / f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}.json"
    if reason := why_not_writable(path):
        complain(f"{path} can't be written: {reason}; the result will be printed instead")
    with Interruption() as interruption:
        return finish(find(options, interruption), path)


def find(options: argparse.Namespace, interruption: Interruption) -> Findings:
    found = Findings(
        started=now(), finished="", interrupted=False, budget_s=options.budget, project=describe_project(ROOT),
        machine=describe_machine(), compiler=compiler_of(options.programs),
    )  # fmt: skip
    for defect in DEFECTS:
        if options.only and defect.id not in options.only:
            continue
        if interruption.requested:
            break
        if sys.stderr.isatty():
            print(f"{defect.id} ...", file=sys.stderr, flush=True)
        if row := try_defect(defect, options.programs, options.budget, interruption):
            found.rows.append(row)
            print(row_in_words(row), flush=True)
    found.interrupted = interruption.requested
    found.finished = now()
    return found


def now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def finish(found: Findings, path: Path) -> int:
    if found.interrupted:
        complain("interrupted; saving what was seen")
    saved = save_or_print(found, path, sys.stdout, sys.stderr)
    if saved and save_page(found, path.with_suffix(".html")):
        print(f"Everything seen: {path}\nPage, to open in a browser: {path.with_suffix('.html')}")
    failing = [row.defect for row in found.rows if row.ours_fails]
    if failing:
        complain(f"tocsin fails in: {', '.join(failing)}")
        return REGRESSION
    if found.interrupted:
        return INTERRUPTED
    return 0 if saved else NOT_SAVED

# SPDX-License-Identifier: Apache-2.0
"""Runs the reproductions of defects, each in a process of its own with a limit of time."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from tocsin_lab.defects import FORMAT, Defect, Findings, Row, Side, Trial
from tocsin_lab.errors import LabError
from tocsin_lab.measure.interruption import Interruption
from tocsin_lab.measure.results import ResultError, read_json
from tocsin_lab.measure.workers import LAST_WORDS, ON_WINDOWS, PROGRAM_OF_WINDOWS, ask
from tocsin_lab.parsing import Malformed, parse

PREFIX = "tocsin_lab_defect_"
SCRIPTS = Path(__file__).resolve().parents[2] / "defects"
# A program may need this much longer than its budget: for setting up, and for 3 s of looks at each hang.
GRACE_S = 30.0
# A new Windows of Wine takes most of a minute to start.
START_OF_WINE_S = 180.0


def program(name: str, folder: Path) -> Path:
    """A script is run as it is. A source file was built into the folder; if its name begins with windows_, for
    Windows."""
    path = SCRIPTS / name
    if path.suffix == ".py":
        return path
    return folder / f"{PREFIX}{path.stem}{PROGRAM_OF_WINDOWS if path.stem.startswith('windows_') else ''}"


def start_wine(folder: Path) -> bool:
    """Called before a program's own time runs. Uses the Windows that the environment names, else one beside the
    programs."""
    own = {"WINEPREFIX": str(folder.resolve() / "wine"), "WINEDEBUG": "-all", "DISPLAY": "",
           "WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe="}  # fmt: skip
    for name, value in own.items():
        os.environ.setdefault(name, value)
    # Its output goes nowhere, because Wine's server stays for some seconds and would keep a pipe open.
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(["wineboot", "-i"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=START_OF_WINE_S, check=False)  # fmt: skip
        return done.returncode == 0
    return False


def try_side(path: Path, side: str, budget_s: float, interruption: Interruption, missing: str) -> Side:
    """Whatever happens to the program is an answer, not an error."""
    if not path.is_file():
        return Side(absent=f"not here: needs {missing}" if missing else "not built here")
    if path.suffix == PROGRAM_OF_WINDOWS and not ON_WINDOWS:
        if shutil.which("wine") is None:
            return Side(absent="not here: needs Wine")
        if not start_wine(path.parent):
            return Side(absent="not here: Wine does not start")
    try:
        return Side(trial=parse(Trial, ask(path, [side, f"{budget_s:g}"], budget_s + GRACE_S, interruption)))
    except Malformed as error:
        return Side(failure=f"gave no result: {error}")
    except LabError as error:
        return Side(failure=str(error).strip().splitlines()[-1][:LAST_WORDS])  # a traceback's last line says most


def try_defect(defect: Defect, folder: Path, budget_s: float, interruption: Interruption) -> Row | None:
    """None: interrupted before the peer's outcome was known."""
    peer = try_side(program(defect.program, folder), "peer", budget_s, interruption, defect.needs)
    if interruption.requested and peer.trial is None:
        return None
    if defect.ours is None:
        return Row(defect.id, peer, Side(absent=defect.counterpart))
    ours = try_side(program(defect.ours, folder), "ours", budget_s, interruption, defect.needs)
    if interruption.requested and ours.trial is None:
        ours = Side(absent="not run: interrupted")
    return Row(defect.id, peer, ours)


def compiler_of(folder: Path) -> str:
    """What built the programs, as CMake left it in the folder."""
    try:
        return (folder / "compiler.txt").read_text().strip()
    except OSError:
        return ""


def load_findings(path: Path) -> Findings:
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT or "rows" not in data:
        raise ResultError(f"{path} is no result of ./dev lab defects of format {FORMAT}")
    try:
        return parse(Findings, data)
    except Malformed as error:
        raise ResultError(f"{path} can't be read as a result of ./dev lab defects: {error}") from None

# SPDX-License-Identifier: Apache-2.0
"""Runs the reproductions of defects, each in a process of its own with a limit of time."""

from pathlib import Path

from tocsin_lab.defects import FORMAT, Defect, Findings, Row, Side, Trial
from tocsin_lab.errors import LabError
from tocsin_lab.measure.interruption import Interruption
from tocsin_lab.measure.results import ResultError, read_json
from tocsin_lab.measure.workers import LAST_WORDS, ask
from tocsin_lab.parsing import Malformed, parse

PREFIX = "tocsin_lab_defect_"
SOURCES = Path(__file__).resolve().parents[2] / "defects"
# A program may need this much longer than its budget: for setting up, and for 3 s of looks at each hang.
GRACE_S = 30.0
TOLD = "told in words, because its program would not end on its own"


def program(name: str, folder: Path) -> Path:
    """What the source file of that name was built into."""
    return folder / f"{PREFIX}{Path(name).stem}"


def try_side(path: Path, side: str, budget_s: float, interruption: Interruption, missing: str) -> Side:
    """Whatever happens to the program is an answer, not an error."""
    if not path.is_file():
        return Side(absent=f"not here: needs {missing}" if missing else "not built here")
    try:
        return Side(trial=parse(Trial, ask(path, [side, f"{budget_s:g}"], budget_s + GRACE_S, interruption)))
    except Malformed as error:
        return Side(failure=f"gave no result: {error}")
    except LabError as error:
        return Side(failure=str(error).strip().splitlines()[-1][:LAST_WORDS])  # a traceback's last line says most


def try_defect(defect: Defect, folder: Path, budget_s: float, interruption: Interruption) -> Row | None:
    """None: interrupted before the peer's outcome was known."""
    if defect.program is None:
        peer = Side(absent=TOLD)
    else:
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

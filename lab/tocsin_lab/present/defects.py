# SPDX-License-Identifier: Apache-2.0
"""What a run of the reproductions found: lines for the terminal, and one page that needs no network."""

import re
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from tocsin_lab.defects import BY_ID, LEFT_OUT, NOT_FOUND, READ, Defect, Findings, Row, Side, Trial
from tocsin_lab.errors import complain
from tocsin_lab.files import reason_of, write_whole
from tocsin_lab.present.report import PAGE, templates

TRACKERS = {"GCC": "https://gcc.gnu.org", "glibc": "https://sourceware.org"}
IN_TRACKER = re.compile(r"(GCC|glibc) (\d+)")
ON_GITHUB = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")


@dataclass(frozen=True)
class Source:
    text: str
    address: str | None


@dataclass(frozen=True)
class Card:
    """One side of a row."""

    who: str
    kind: str  # seen, even (not seen) or none
    headline: str
    detail: str
    note: str


@dataclass(frozen=True)
class Article:
    defect: Defect
    cards: tuple[Card, Card]
    sources: list[Source]


def source(text: str) -> Source:
    if found := IN_TRACKER.match(text):
        return Source(text, f"{TRACKERS[found[1]]}/bugzilla/show_bug.cgi?id={found[2]}")
    if found := ON_GITHUB.match(text):
        return Source(text, f"https://github.com/{found[1]}/issues/{found[2]}")
    return Source(text, None)


def sources(texts: tuple[str, ...]) -> list[Source]:
    return [source(one) for one in texts]


def seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def headline(trial: Trial) -> str:
    if not trial.tries:
        return "not tried"
    if not trial.seen:
        return f"not seen in {seconds(trial.seconds)}"
    return f"seen {counted(trial.seen, 'times')}"


def detail(trial: Trial, tries: str) -> str:
    if not trial.tries:
        return f"no {tries} in {seconds(trial.seconds)}"
    return f"in {counted(trial.tries, tries)}" + (f", {seconds(trial.seconds)}" if trial.seen else "")


def counted(number: int, plural: str) -> str:
    return f"{number:,} {plural.removesuffix('s') if number == 1 else plural}"


def outcome(side: Side, tries: str) -> str:
    """A side in one line: `seen 3 times in 28,961 races, 6.0 s` or `not seen in 6.0 s, in 28,961 races`."""
    if side.trial is None:
        return side.failure or side.absent or ""
    joint = " " if side.trial.seen else ", "
    return f"{headline(side.trial)}{joint}{detail(side.trial, tries)}"


def row_in_words(row: Row) -> str:
    """A row for the terminal."""
    defect = BY_ID[row.defect]
    version = row.peer.trial.version if row.peer.trial else defect.peer
    seen = f"not run here; we saw it {defect.before}" if defect.told else outcome(row.peer, defect.tries)
    lines = [f"{defect.id}: {defect.title}", f"  {version:<34} {seen}"]
    if row.peer.trial and row.peer.trial.note:
        lines.append(f"  {'':<34} {row.peer.trial.note}")
    ours = f"tocsin {defect.counterpart}" if defect.ours else "tocsin"
    lines.append(f"  {ours:<34} {outcome(row.ours, defect.tries)}")
    return "\n".join(lines)


def card(who: str, side: Side, tries: str, absence: str = "Not run") -> Card:
    if side.trial is None:
        return Card(who, "none", "No result" if side.failure else absence, side.failure or side.absent or "", "")
    trial = side.trial
    kind = "seen" if trial.seen else "even" if trial.tries else "none"
    return Card(who, kind, headline(trial).capitalize(), detail(trial, tries), trial.note)


def article(row: Row) -> Article:
    defect = BY_ID[row.defect]
    ours = f"tocsin: {defect.counterpart}" if defect.ours else "tocsin"
    peer = f"{defect.peer}: {row.peer.trial.version}" if row.peer.trial else defect.peer
    absence = "Not run" if defect.ours else "No counterpart"
    cards = (
        Card(peer, "none", "Told in words", f"We saw it {defect.before}.", "")
        if defect.told else card(peer, row.peer, defect.tries),
        card(ours, row.ours, defect.tries, absence),
    )  # fmt: skip
    return Article(defect, cards, sources(defect.sources))


def make_page(findings: Findings) -> str:
    rows = [row for row in findings.rows if row.defect in BY_ID]
    parts = {
        "findings": findings,
        "articles": [article(row) for row in rows],
        "told": sum(1 for row in rows if BY_ID[row.defect].told),
        "seen": sum(1 for row in rows if row.peer.trial and row.peer.trial.seen),
        "ours": sum(1 for row in rows if row.ours_fails),
        "compared": sum(1 for row in rows if row.ours.trial),
        "left_out": LEFT_OUT,
        "read": READ,
        "not_found": NOT_FOUND,
        "style": Markup((PAGE / "page.css").read_text()),
    }
    environment = templates()
    environment.filters["sources"] = sources
    return environment.get_template("defects.html").render(parts)


def save_page(findings: Findings, path: Path) -> bool:
    """False: there is no page, and the reader has been told why."""
    try:
        text = make_page(findings)
        write_whole(path, lambda file: file.write(text))
        return True
    except OSError as error:
        complain(f"the page can't be written to {path}: {reason_of(error)}")
    return False

# SPDX-License-Identifier: Apache-2.0
"""The table of answers that a run prints, and the few figures of it that the README quotes. Each comes from one result,
so only what was measured is quoted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tocsin_lab.analyse.summary import CaseSummary, Judgement, judgement_of, summarise
from tocsin_lab.analyse.verdict import Verdict
from tocsin_lab.parsing import as_json
from tocsin_lab.present.numerals import interval, quantity, ratio
from tocsin_lab.records import Contestant, Parameters, Result


@dataclass(frozen=True)
class Quote:
    """A row. It is left out if the result lacks its case."""

    question: str  # as a run asks it, in WIDEST characters at most
    scenario: str
    where: Mapping[str, str]
    metric: str
    who: str = "tocsin"
    readme: str = ""  # as the README asks it; empty: the README does not quote it


WIDEST = 28
SOCKETS = {"rate": "1000", "sockets": "64"}
QUOTED = (
    Quote("look at an unset event", "polling", {"threads": "1"}, "poll"),
    Quote("set an event that is set", "redundant_set", {"event": "auto", "producers": "1"}, "set",
          readme="set an event that is set already"),
    Quote("set and take, nobody sleeps", "pairs", {"operation": "auto_set_wait"}, "time",
          readme="set an event and take it, nobody sleeps"),
    Quote("wake an address, no waiter", "address_wake", {"bytes": "4", "stranger": "none"}, "wake",
          readme="wake an address on which nobody waits"),
    Quote("change a word, no waiter", "address_change", {"bytes": "4"}, "change"),
    Quote("take the set one of 8 events", "wait_many", {"what": "ready", "events": "8"}, "time"),
    Quote("event round, 2 threads", "hurdles", {"threads": "2"}, "hurdle",
          readme="2 threads hand an event round"),
    Quote("event round, 16 threads", "hurdles", {"threads": "16"}, "hurdle"),
    Quote("ping-pong, two cores", "ping_pong", {"cores": "2"}, "trip"),
    Quote("ping-pong, one core", "ping_pong", {"cores": "1"}, "trip"),
    Quote("wake a sleeping thread", "wake_latency", {"delay_ms": "10", "cores": "2"}, "latency",
          readme="wake a thread that has slept for 10 ms"),
    Quote("gate for 1,000: opener held", "broadcast", {"threads": "1000"}, "held",
          readme="open a gate for 1,000 threads: the opener is held"),
    Quote("gate for 1,000: last awake", "broadcast", {"threads": "1000"}, "last",
          readme="open a gate for 1,000 threads: the last is awake"),
    Quote("all of 8 events, two cores", "wait_many", {"what": "all", "events": "8"}, "time"),
    Quote("all of 8 events, one core", "wait_many", {"what": "all_one_core", "events": "8"}, "time"),
    Quote("any of 64 events, one core", "wait_many", {"what": "comes_one_core", "events": "64"}, "time",
          readme="wait for any of 64 events, one core"),
    Quote("event/64 sockets, wait_set", "multiplexed", SOCKETS, "cpu",
          readme="an event or 64 sockets, by `wait_set`: CPU"),
    Quote("event/64 sockets, wait_any", "multiplexed", SOCKETS, "cpu", "tocsin_wait_any"),
    Quote("a lock, 4 threads", "locks", {"lock": "word", "bytes": "4", "threads": "4"}, "use"),
    Quote("commit, 64 threads, memory", "group_commit", {"threads": "64", "on": "memory"}, "commit"),
    Quote("commit, 64 threads, disk", "group_commit", {"threads": "64", "on": "disk"}, "commit"),
    Quote("size of an event", "memory", {"event": "auto", "events": "1000"}, "size",
          readme="the size of an event"),
)  # fmt: skip

HEAD = ["| case | tocsin | best of the others | tocsin takes |", "| --- | ---: | ---: | --- |"]
FORMAT = 1
# What the picture shows: for how long the thread is held that opens a gate.
PICTURED = ("broadcast", Parameters({"threads": "1000"}), ("held", "median"))


@dataclass(frozen=True)
class Row:
    """A quote with the figures that a result has for it, in words."""

    question: str
    readme: str
    ours: str
    best: str  # of the others
    who: str
    verdict: Verdict
    comparison: str  # without its interval
    interval: str

    @property
    def words(self) -> str:
        """How many times as much as the other takes; where that doesn't tell them apart, with its interval."""
        decided = self.verdict in (Verdict.WIN, Verdict.LOSS)
        return self.comparison if decided or not self.interval else f"{self.comparison} ({self.interval} ×)"


@dataclass(frozen=True)
class Bar:
    """A contestant in the picture."""

    who: str
    ours: bool
    nanoseconds: int


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What the README quotes of one result, and on what it was measured. The file lab/figures/quoted.json is one."""

    format: int = FORMAT
    commit: str
    started: str
    machine: str
    compiler: str
    rounds: int
    rows: tuple[str, ...]  # of the README's table
    bars: tuple[Bar, ...]


def rows_of(result: Result) -> list[Row]:
    cases = {(one.scenario.name, one.parameters): one for one in summarise(result)}
    found = []
    for quote in QUOTED:
        case = cases.get((quote.scenario, Parameters(quote.where)))
        judgement = judged(quote, case, result.by_name) if case else None
        if case and judgement:
            found.append(in_figures(quote, case, judgement, result.by_name))
    return found


def figures_of(result: Result) -> Figures:
    machine = result.machine
    virtual = "virtual, " if machine.hypervisor else ""
    build = next(iter(result.workers.values()))
    return Figures(
        commit=(result.project.commit or "unknown")[:7],
        started=(result.started or "")[:10],
        machine=f"{machine.processor}, {virtual}{machine.cores} cores, {result.measured_on}",
        compiler=build.compiler,
        rounds=result.rounds_finished,
        rows=tuple(
            f"| {one.readme} | {one.ours} | {one.best}, {one.who} | {one.words} |"
            for one in rows_of(result)
            if one.readme
        ),
        bars=tuple(bars(result)),
    )


def bars(result: Result) -> list[Bar]:
    """tocsin and its peers, the quickest first."""
    scenario, parameters, key = PICTURED
    case = next((one for one in summarise(result) if (one.scenario.name, one.parameters) == (scenario, parameters)),
                None)  # fmt: skip
    shown = [
        Bar(result.by_name[name].label, result.by_name[name].role == "ours", round(figures[key].value.median))
        for name, figures in (case.figures if case else {}).items()
        if result.by_name[name].role in ("ours", "peer") and key in figures
    ]
    return sorted(shown, key=lambda one: one.nanoseconds)


def table(figures: Figures) -> list[str]:
    """Markdown, a line each."""
    return [*HEAD, *figures.rows]


def as_text(figures: Figures) -> str:
    return json.dumps(as_json(figures), indent=1, ensure_ascii=False) + "\n"


def judged(quote: Quote, case: CaseSummary, contestants: Mapping[str, Contestant]) -> Judgement | None:
    """A metric's median comes before its other statistics."""
    column = next(one for one in case.scenario.columns if one.metric == quote.metric)
    return judgement_of(quote.who, column, case, contestants)


def in_figures(quote: Quote, case: CaseSummary, judgement: Judgement, contestants: Mapping[str, Contestant]) -> Row:
    def median(name: str) -> str:
        return quantity(case.figures[name][judgement.column.key].value.median, judgement.column.unit)

    decided = judgement.verdict in (Verdict.WIN, Verdict.LOSS) and judgement.ratio is not None
    return Row(
        quote.question, quote.readme, median(quote.who), median(judgement.against),
        contestants[judgement.against].label, judgement.verdict,
        ratio(judgement.ratio) if decided else judgement.verdict.value, interval(judgement.ratio),
    )  # fmt: skip

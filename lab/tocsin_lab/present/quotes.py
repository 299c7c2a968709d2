# SPDX-License-Identifier: Apache-2.0
"""The table of figures in the README, which is also the last screen of a run. It is made from one result, so it quotes
only what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin_lab.analyse.summary import CaseSummary, Judgement, judgement_of, summarise
from tocsin_lab.analyse.verdict import Verdict
from tocsin_lab.present.numerals import interval, quantity, ratio
from tocsin_lab.records import Contestant, Parameters, Result


@dataclass(frozen=True)
class Quote:
    """A row. It is left out if the result lacks its case."""

    question: str  # in the reader's words
    scenario: str
    where: Mapping[str, str]
    metric: str
    who: str = "tocsin"


SOCKETS = {"rate": "1000", "sockets": "64"}
QUOTED = (
    Quote("look at an event that isn't set", "polling", {"threads": "1"}, "poll"),
    Quote("set an event that is set already", "redundant_set", {"event": "auto", "producers": "1"}, "set"),
    Quote("set and take, nobody sleeps", "pairs", {"operation": "auto_set_wait"}, "time"),
    Quote("wake an address on which nobody waits", "address_wake", {"bytes": "4", "stranger": "none"}, "wake"),
    Quote("change a word on which nobody waits, and wake", "address_change", {"bytes": "4"}, "change"),
    Quote("take the one of 8 events that is set", "wait_many", {"what": "ready", "events": "8"}, "time"),
    Quote("2 threads hand an event round", "hurdles", {"threads": "2"}, "hurdle"),
    Quote("16 threads hand an event round", "hurdles", {"threads": "16"}, "hurdle"),
    Quote("question and answer, two cores", "ping_pong", {"cores": "2"}, "trip"),
    Quote("question and answer, one core", "ping_pong", {"cores": "1"}, "trip"),
    Quote("wake a thread that has slept for 10 ms", "wake_latency", {"delay_ms": "10", "cores": "2"}, "latency"),
    Quote("open a gate for 1,000 threads: the opener is held", "broadcast", {"threads": "1000"}, "held"),
    Quote("open a gate for 1,000 threads: the last is awake", "broadcast", {"threads": "1000"}, "last"),
    Quote("wait for all of 8 events, two cores", "wait_many", {"what": "all", "events": "8"}, "time"),
    Quote("wait for all of 8 events, one core", "wait_many", {"what": "all_one_core", "events": "8"}, "time"),
    Quote("wait for any of 64 events, one core", "wait_many", {"what": "comes_one_core", "events": "64"}, "time"),
    Quote("an event or 64 sockets, 1,000 wakes a second: CPU, by wait_set", "multiplexed", SOCKETS, "cpu"),
    Quote("the same by wait_any", "multiplexed", SOCKETS, "cpu", "tocsin_wait_any"),
    Quote("one lock, 4 threads: a turn", "locks", {"lock": "word", "bytes": "4", "threads": "4"}, "turn"),
    Quote("a commit, 64 threads, in memory", "group_commit", {"threads": "64", "on": "memory"}, "commit"),
    Quote("a commit, 64 threads, on disk", "group_commit", {"threads": "64", "on": "disk"}, "commit"),
    Quote("an event's size", "memory", {"event": "auto", "events": "1000"}, "size"),
)

HEAD = ["| case | tocsin | best of the others | tocsin takes |", "| --- | ---: | ---: | --- |"]


@dataclass(frozen=True)
class Quoted:
    """A quote with the figures that a result has for it."""

    question: str
    ours: str
    best: str  # of the others
    who: str
    verdict: Verdict
    comparison: str


def quoted(result: Result) -> list[Quoted]:
    cases = {(one.scenario.name, one.parameters): one for one in summarise(result)}
    found = []
    for quote in QUOTED:
        case = cases.get((quote.scenario, Parameters(quote.where)))
        judgement = judged(quote, case, result.by_name) if case else None
        if case and judgement:
            found.append(in_figures(quote, case, judgement, result.by_name))
    return found


def table(result: Result) -> list[str]:
    """Markdown, a line each."""
    return HEAD + [
        f"| {one.question} | {one.ours} | {one.best}, {one.who} | {one.comparison} |" for one in quoted(result)
    ]


def judged(quote: Quote, case: CaseSummary, contestants: Mapping[str, Contestant]) -> Judgement | None:
    """A metric's median comes before its other statistics."""
    column = next(one for one in case.scenario.columns if one.metric == quote.metric)
    return judgement_of(quote.who, column, case, contestants)


def in_figures(quote: Quote, case: CaseSummary, judgement: Judgement, contestants: Mapping[str, Contestant]) -> Quoted:
    def median(name: str) -> str:
        return quantity(case.figures[name][judgement.column.key].value.median, judgement.column.unit)

    return Quoted(
        quote.question, median(quote.who), median(judgement.against), contestants[judgement.against].label,
        judgement.verdict, in_words(judgement),
    )  # fmt: skip


def in_words(judgement: Judgement) -> str:
    """How many times as much as the other takes; where that doesn't tell them apart, the interval that it lies in."""
    if judgement.verdict in (Verdict.WIN, Verdict.LOSS) and judgement.ratio is not None:
        return ratio(judgement.ratio)
    words = "level" if judgement.verdict is Verdict.TIE else judgement.verdict.value
    return f"{words} ({interval(judgement.ratio)} ×)" if judgement.ratio is not None else words

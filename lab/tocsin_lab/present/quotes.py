"""The table of figures in the README. It is made from one result, so it quotes only what was measured."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin_lab.analyse.statistics import Verdict
from tocsin_lab.analyse.summary import CaseSummary, Judgement, summarise
from tocsin_lab.present.numerals import quantity, three_figures
from tocsin_lab.records import Contestant, Parameters, Result

# The reader's words, the scenario, the case, the metric. A case that the result lacks is left out.
QUOTED = (
    ("look at an event that isn't set", "polling", {"threads": "1"}, "poll"),
    ("set an event that is set already", "redundant_set", {"event": "auto", "producers": "1"}, "set"),
    ("set and take, nobody sleeps", "pairs", {"operation": "auto_set_wait"}, "time"),
    ("wake an address on which nobody waits", "address_wake", {"bytes": "4", "stranger": "none"}, "wake"),
    ("take the one of 8 events that is set", "wait_many", {"what": "ready", "events": "8"}, "time"),
    ("2 threads hand an event round", "hurdles", {"threads": "2"}, "hurdle"),
    ("16 threads hand an event round", "hurdles", {"threads": "16"}, "hurdle"),
    ("question and answer, two cores", "ping_pong", {"cores": "2"}, "trip"),
    ("question and answer, one core", "ping_pong", {"cores": "1"}, "trip"),
    ("wake a thread that has slept for 10 ms", "wake_latency", {"delay_ms": "10", "cores": "2"}, "latency"),
    ("open a gate for 1,000 threads: the opener is held", "broadcast", {"threads": "1000"}, "held"),
    ("open a gate for 1,000 threads: the last is awake", "broadcast", {"threads": "1000"}, "last"),
    ("wait for all of 8 events", "wait_many", {"what": "all", "events": "8"}, "time"),
    ("one lock, 4 threads: a turn", "locks", {"lock": "word", "bytes": "4", "threads": "4"}, "turn"),
    ("a commit, 64 threads in memory", "group_commit", {"threads": "64", "on": "memory"}, "commit"),
    ("an event's size", "memory", {"event": "auto", "events": "1000"}, "size"),
)

HEAD = ["| | tocsin | best of the others | |", "| --- | ---: | ---: | --- |"]


def table(result: Result) -> list[str]:
    """Markdown, a line each."""
    cases = {(one.scenario.name, one.parameters): one for one in summarise(result)}
    lines = list(HEAD)
    for question, scenario, parameters, metric in QUOTED:
        case = cases.get((scenario, Parameters(parameters)))
        judgement = first_of(case.judgements, metric) if case else None
        if case and judgement:
            lines.append(row(question, case, judgement, result.by_name))
    return lines


def first_of(judgements: list[Judgement], metric: str) -> Judgement | None:
    """A metric's median comes before its other statistics."""
    return next((one for one in judgements if one.column.metric == metric), None)


def row(question: str, case: CaseSummary, judgement: Judgement, contestants: Mapping[str, Contestant]) -> str:
    def median(name: str) -> str:
        return quantity(case.figures[name][judgement.column.key].value.median, judgement.column.unit)

    level = judgement.verdict is Verdict.TIE or judgement.ratio is None
    times = "level" if level else f"{three_figures(judgement.ratio.median)} ×"
    peer = f"{median(judgement.against)}, {contestants[judgement.against].label}"
    return f"| {question} | {median('tocsin')} | {peer} | {times} |"

"""The questions that people bring, and who answers each best in a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tocsin_lab.statistics import Verdict, judge
from tocsin_lab.summary import CaseSummary, Column, Figure

RANKED = ("ours", "peer")  # others are shown beside them and are no answer


@dataclass(frozen=True)
class Question:
    text: str
    scenario: str
    metric: str
    statistic: str = "value"
    where: Mapping[str, str] = field(default_factory=dict)  # a case without the parameter isn't narrowed by it

    @property
    def column(self) -> Column:
        return self.metric, self.statistic


QUESTIONS: tuple[Question, ...] = (
    Question("Fastest to wake one sleeping thread", "wake_latency", "latency", "median", {"delay_ms": "10"}),
    Question("Fastest to wake many: the last one awake", "broadcast", "last", "median"),
    Question("Quickest to let the waker of many go on", "broadcast", "held", "median"),
    Question("Cheapest to signal and consume, nobody asleep", "pairs", "time", "median",
             {"operation": "auto_set_wait"}),
    Question("Cheapest to signal again what is signalled", "redundant_set", "set", "median",
             {"event": "auto", "producers": "1"}),
    Question("Cheapest to look at", "polling", "poll", "median", {"threads": "1"}),
    Question("Cheapest to keep waiting, in CPU", "futile_wait", "cpu"),
    Question("Fastest back and forth between two cores", "ping_pong", "trip", "median", {"cores": "2"}),
    Question("Fastest back and forth on one core", "ping_pong", "trip", "median", {"cores": "1"}),
    Question("Fastest over a hurdle, two threads", "hurdles", "hurdle", "median", {"threads": "2"}),
    Question("Fastest over a hurdle, more threads than cores", "hurdles", "hurdle", "median", {"threads": "16"}),
    Question("Least CPU for an item now and then", "producer", "cpu", "value",
             {"pace": "paced", "producers": "1"}),
    Question("Least CPU for an item when items stream", "producer", "cpu", "value",
             {"pace": "balanced", "producers": "1"}),
    Question("Cheapest to wake an address where nobody waits", "address_wake", "wake", "median",
             {"bytes": "4", "stranger": "none"}),
    Question("Fastest lock under contention", "locks", "turn", "value",
             {"lock": "word", "bytes": "4", "threads": "4"}),
    Question("Fairest: the shortest long wait for a turn", "fairness", "longest", "median", {"turn": "event"}),
    Question("Fastest group commit, 64 threads, on a disk", "group_commit", "commit", "value",
             {"threads": "64", "on": "disk"}),
    Question("Quickest to let the leader of a group go on", "group_wake", "held", "median"),
    Question("Fastest to wake a group: the last one awake", "group_wake", "last", "median"),
    Question("Smallest", "memory", "size", "value", {"event": "auto"}),
)


@dataclass(frozen=True)
class Answer:
    """The figures of one question, least first; the leader and whoever can't be told from it are level."""

    question: str
    case: CaseSummary
    column: Mapping[str, Any]
    ranking: tuple[str, ...]  # contestants that count as answers
    level: tuple[str, ...]  # the first of the ranking, and those with no difference to it

    def figure(self, contestant: str) -> Figure:
        return self.case.figures[contestant][self.column["metric"], self.column["statistic"]]


def answer_all(cases: list[CaseSummary], contestants: Mapping[str, Any]) -> list[Answer]:
    """Every question that this result can answer: ours above, then one for each other judged scenario."""
    asked = {question.scenario for question in QUESTIONS}
    found = [answer(question, cases, contestants) for question in (*QUESTIONS, *further_questions(cases, asked))]
    return [one for one in found if one is not None]


def further_questions(cases: list[CaseSummary], asked: set[str]) -> Iterator[Question]:
    """A scenario that nobody wrote a question for asks its own, of its first judged column."""
    for name, scenario in {case.scenario["name"]: case.scenario for case in cases}.items():
        column = next((one for one in scenario["columns"] if one["judged"]), None)
        if name not in asked and column is not None:
            yield Question(scenario["question"], name, column["metric"], column["statistic"])


def answer(question: Question, cases: list[CaseSummary], contestants: Mapping[str, Any]) -> Answer | None:
    """From the last of the cases that fit, which is the largest; None if nobody was measured there."""
    fitting = [
        case
        for case in cases
        if case.scenario["name"] == question.scenario
        and all(dict(case.parameters).get(name, value) == value for name, value in question.where.items())
    ]
    for case in reversed(fitting):
        column = next(
            (one for one in case.scenario["columns"] if (one["metric"], one["statistic"]) == question.column), None
        )
        if column is None:
            continue
        ranking = rank(case, question.column, contestants)
        if ranking:
            return Answer(question.text, case, column, ranking, level_with_first(case, question.column, ranking))
    return None


def rank(case: CaseSummary, column: Column, contestants: Mapping[str, Any]) -> tuple[str, ...]:
    medians = {
        name: figures[column].value.median
        for name, figures in case.figures.items()
        if column in figures and contestants[name]["role"] in RANKED
    }
    return tuple(sorted(medians, key=medians.__getitem__))


def level_with_first(case: CaseSummary, column: Column, ranking: tuple[str, ...]) -> tuple[str, ...]:
    best = case.figures[ranking[0]][column].by_round
    return tuple(
        name
        for name in ranking
        if name == ranking[0] or judge(case.figures[name][column].by_round, best) is Verdict.TIE
    )

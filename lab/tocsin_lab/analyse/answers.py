# SPDX-License-Identifier: Apache-2.0
"""The questions that people ask, which contestant answers each best in a result, and where tocsin is among them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from tocsin_lab.analyse.figures import Figure
from tocsin_lab.analyse.summary import CaseSummary
from tocsin_lab.analyse.verdict import Verdict, judge
from tocsin_lab.records import Column, Contestant, Key
from tocsin_lab.scenarios import Question, questions

RANKED = ("ours", "peer")  # the other roles are shown alongside them and answer nothing


class Standing(Enum):
    AHEAD = "ahead"
    LEVEL = "level"  # with the first, or alone in the question
    OPEN = "open"  # a loss of more than a quarter is not excluded
    BEHIND = "behind"
    ABSENT = "absent"


@dataclass(frozen=True)
class Answer:
    """The figures of one question, least first."""

    question: str
    case: CaseSummary
    column: Column
    ranking: tuple[str, ...]  # contestants that count as answers
    level: tuple[str, ...]  # the first of the ranking, and those that cannot be distinguished from it

    def figure(self, contestant: str) -> Figure:
        return self.case.figures[contestant][self.column.key]


def answer_all(cases: list[CaseSummary], contestants: Mapping[str, Contestant]) -> list[Answer]:
    """Every question that this result can answer: those of scenarios.py, then one for each other judged scenario."""
    asked = list(questions())
    asked += further_questions(cases, {scenario for scenario, _ in asked})
    found = [answer(scenario, question, cases, contestants) for scenario, question in asked]
    return [one for one in found if one is not None]


def further_questions(cases: list[CaseSummary], asked: set[str]) -> Iterator[tuple[str, Question]]:
    """A scenario without a question in scenarios.py asks its own, about its first judged column."""
    for name, scenario in {case.scenario.name: case.scenario for case in cases}.items():
        column = next((one for one in scenario.columns if one.judged), None)
        if name not in asked and column is not None:
            yield name, Question(scenario.question, column.metric, column.statistic)


def answer(
    scenario: str, question: Question, cases: list[CaseSummary], contestants: Mapping[str, Contestant]
) -> Answer | None:
    """From the last of the cases that fit, which is the largest; None if nobody was measured there."""
    fitting = [case for case in cases if case.scenario.name == scenario and question.fits(case.parameters)]
    for case in reversed(fitting):
        column = case.scenario.column(question.key)
        ranking = rank(case, question.key, contestants)
        if column is not None and ranking:
            return Answer(question.text, case, column, ranking, level_with_first(case, question.key, ranking))
    return None


def rank(case: CaseSummary, key: Key, contestants: Mapping[str, Contestant]) -> tuple[str, ...]:
    medians = {
        name: figures[key].value.median
        for name, figures in case.figures.items()
        if key in figures and contestants[name].role in RANKED
    }
    return tuple(sorted(medians, key=medians.__getitem__))


def level_with_first(case: CaseSummary, key: Key, ranking: tuple[str, ...]) -> tuple[str, ...]:
    best = case.figures[ranking[0]][key].by_round
    return tuple(
        name
        for name in ranking
        if name == ranking[0] or judge(case.figures[name][key].by_round, best) is not Verdict.LOSS
    )


def standing(one: Answer, ours: str) -> Standing:
    if ours not in one.ranking:
        return Standing.ABSENT
    if ours not in one.level:
        return Standing.BEHIND
    if one.level == (ours,) and len(one.ranking) > 1:
        return Standing.AHEAD
    mine = one.figure(ours).by_round
    others = [judge(mine, one.figure(name).by_round) for name in one.level if name != ours]
    return Standing.OPEN if Verdict.OPEN in others else Standing.LEVEL


def times(one: Answer, slower: str, faster: str) -> float | None:
    """None: the faster one takes nothing, so no number says how much more the other takes."""
    least = one.figure(faster).value.median
    return one.figure(slower).value.median / least if least else None

# SPDX-License-Identifier: Apache-2.0
"""The standing of tocsin in each question, and the questions in which it is furthest ahead and furthest behind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tocsin_lab.analyse.verdict import Verdict, judge
from tocsin_lab.present.answers import Answer
from tocsin_lab.present.context import Context
from tocsin_lab.present.numerals import three_figures


class Standing(Enum):
    AHEAD = "ahead"
    LEVEL = "level"  # with the first, or alone in the question
    OPEN = "open"  # a loss of more than a quarter is not excluded
    BEHIND = "behind"
    ABSENT = "absent"


@dataclass(frozen=True)
class Extreme:
    """The question in which a standing is clearest."""

    number: int  # of the question's card
    question: str
    times: str
    peer: str


@dataclass(frozen=True)
class Findings:
    most_ahead: Extreme | None
    most_behind: Extreme | None


def standing(context: Context, one: Answer) -> Standing:
    ours = context.ours
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


def findings(context: Context, answers: list[Answer]) -> Findings:
    found: dict[Standing, list[tuple[int, Answer]]] = {each: [] for each in Standing}
    for number, one in enumerate(answers):
        found[standing(context, one)].append((number, one))
    return Findings(
        most_ahead=extreme(context, [(number, one, one.ranking[1], one.ranking[0])
                                     for number, one in found[Standing.AHEAD]], of_first=True),
        most_behind=extreme(context, [(number, one, context.ours, one.ranking[0])
                                      for number, one in found[Standing.BEHIND]]),
    )  # fmt: skip


def extreme(
    context: Context, pairs: list[tuple[int, Answer, str, str]], *, of_first: bool = False
) -> Extreme | None:
    """Among pairs of a slower and a faster contestant, the one that is furthest apart."""
    known = [(found, *one) for one in pairs if (found := times(*one[1:])) is not None]
    if not known:
        return None
    most, number, one, slower, faster = max(known, key=lambda each: each[0])
    return Extreme(number, one.question, f"{three_figures(most)} ×", context.label(slower if of_first else faster))

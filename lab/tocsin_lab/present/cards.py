"""The report's answers: a card for each question."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin_lab.present.answers import Answer, answer_all
from tocsin_lab.present.charts import answer_chart
from tocsin_lab.present.context import Context, Picture
from tocsin_lab.present.numerals import quantity, three_figures

ROWS = 7
LEVEL_NAMED = 3


@dataclass(frozen=True)
class Card:
    question: str
    winner: str
    standing: str  # of tocsin: a class of the page
    level: str
    figure: str
    runner_up: str
    scenario: str
    case: str
    hidden: int  # contestants without a row
    picture: Picture


def cards(context: Context) -> list[Card]:
    return [card(context, one) for one in answer_all(context.cases, context.contestants)]


def card(context: Context, one: Answer) -> Card:
    ranked = {*one.ranking[:ROWS], *filter(context.is_ours, one.ranking)}
    floors = {name for name in one.case.figures if context.role(name) == "floor"}
    return Card(
        question=one.question,
        winner=context.label(one.ranking[0]),
        standing=standing(context, one),
        level=level(context, one),
        figure=quantity(one.figure(one.ranking[0]).value.median, one.column.unit),
        runner_up=runner_up(context, one),
        scenario=one.case.scenario.name,
        case=one.case.title,
        hidden=len(one.ranking) - len(ranked),
        picture=context.picture(answer_chart(one, ranked | floors)),
    )


def standing(context: Context, one: Answer) -> str:
    """Of tocsin: ahead, level with the first, or behind."""
    if context.is_ours(one.ranking[0]):
        return "ours" if len(one.level) == 1 else "ours level"
    return "level" if any(context.is_ours(name) for name in one.level) else "behind"


def level(context: Context, one: Answer) -> str:
    """The contestants that can't be told from the first: tocsin by name, and a few others."""
    others = sorted(one.level[1:], key=lambda name: not context.is_ours(name))
    if len(others) <= LEVEL_NAMED:
        return ", ".join(map(context.label, others))
    return f"{context.label(others[0])} and {len(others) - 1} more"


def runner_up(context: Context, one: Answer) -> str:
    """The first of those that are certainly behind."""
    behind = [name for name in one.ranking if name not in one.level]
    best = one.figure(one.ranking[0]).value.median
    if not behind or not best:
        return ""
    return f"{context.label(behind[0])} takes {three_figures(one.figure(behind[0]).value.median / best)} × as much"

# SPDX-License-Identifier: Apache-2.0
"""The report's answers: a card for each question, and the questions in which tocsin is furthest ahead and behind."""

from dataclasses import dataclass

from tocsin_lab.analyse.answers import Answer, Standing, standing, times
from tocsin_lab.present.charts import answer_chart, ranking
from tocsin_lab.present.context import Context, Picture
from tocsin_lab.present.numerals import quantity, three_figures

ROWS = 5
NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class Card:
    question: str
    headline: str
    figure: str
    details: list[str]
    standing: Standing
    scenario: str
    case: str
    hidden: int  # contestants without a row
    picture: Picture


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


def cards(context: Context, answers: list[Answer]) -> list[Card]:
    return [card(context, one) for one in answers]


def card(context: Context, one: Answer) -> Card:
    ranked = {*one.ranking[:ROWS], *filter(context.is_ours, one.ranking)}
    floors = {name for name in one.case.figures if context.role(name) == "floor"}
    everybody = ranking(one.case, one.column)
    assert everybody is not None, "an answer has figures"
    headline, figure = headline_of(context, one)
    return Card(
        question=one.question,
        headline=headline,
        figure=figure,
        details=details_of(context, one),
        standing=standing(one, context.ours),
        scenario=one.case.scenario.name,
        case=one.case.title,
        hidden=len(one.ranking) - len(ranked),
        picture=context.picture(answer_chart(one, ranked | floors), alt=context.in_words(everybody)),
    )


def headline_of(context: Context, one: Answer) -> tuple[str, str]:
    """A contestant only if it differs clearly from every other one, or if tocsin is certainly behind it."""
    place = standing(one, context.ours)
    if len(one.level) > 1 and place is not Standing.BEHIND:
        number = NUMBERS[len(one.level)] if len(one.level) < len(NUMBERS) else str(len(one.level))
        return f"{'Not decided' if place is Standing.OPEN else 'Level'} among {number}", ""
    return context.label(one.ranking[0]), figure_of(one, one.ranking[0])


def figure_of(one: Answer, name: str) -> str:
    return quantity(one.figure(name).value.median, one.column.unit)


def details_of(context: Context, one: Answer) -> list[str]:
    found = []
    place, first = standing(one, context.ours), one.ranking[0]
    if place in (Standing.LEVEL, Standing.OPEN) and len(one.level) > 1:
        least = f"{context.label(first)} has the least median, {figure_of(one, first)}"
        ours = f"tocsin {figure_of(one, context.ours)}"
        found.append(f"{ours}, the least median" if first == context.ours else f"{ours}; {least}")
    if place is Standing.BEHIND:
        more = times(one, context.ours, first)
        takes = f"takes {three_figures(more)} × as much" if more else f"takes {figure_of(one, context.ours)}"
        found.append(f"tocsin {takes}")
        if len(one.level) > 1:
            found.append(f"level with the first: {', '.join(map(context.label, one.level[1:]))}")
    behind = next((name for name in one.ranking if name not in one.level and name != context.ours), None)
    if behind and place is not Standing.BEHIND:
        more = times(one, behind, first)
        if more and three_figures(more) != "1.00":
            found.append(f"{context.label(behind)} takes {three_figures(more)} × as much")
    return found


def findings(context: Context, answers: list[Answer]) -> Findings:
    found: dict[Standing, list[tuple[int, Answer]]] = {each: [] for each in Standing}
    for number, one in enumerate(answers):
        found[standing(one, context.ours)].append((number, one))
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

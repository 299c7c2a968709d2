# SPDX-License-Identifier: Apache-2.0
"""Whether one contestant is ahead of another, not slower, or behind it; or whether that is not decided. Whether tocsin
reaches what it is to reach (scenarios.py)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from tocsin_lab.analyse.figures import ByRound, best_peer
from tocsin_lab.analyse.statistics import Estimate, estimate, paired_ratio
from tocsin_lab.records import Column, Contestant, Key, Parameters, Scenario
from tocsin_lab.scenarios import ABSOLUTE, BEST_PEER, Target, known

NOT_SLOWER_WITHIN = 1.25  # "not slower" excludes a loss of more than a quarter


class Verdict(Enum):
    WIN = "win"
    NOT_SLOWER = "not slower"
    OPEN = "not decided"
    LOSS = "loss"


def judge(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Verdict:
    """Less is better. A difference is claimed only where the two intervals don't overlap and the interval of the paired
    ratio excludes 1. Otherwise, "not slower" is claimed only where the ratio's interval excludes a loss of more than
    a quarter. Everything else is not decided; one sample, which has no interval, decides nothing."""
    mine, other = estimate(list(ours.values())), estimate(list(theirs.values()))
    if mine is None or other is None or min(mine.count, other.count) < 2:
        return Verdict.OPEN
    ratio = paired_ratio(ours, theirs)
    if not mine.overlaps(other) and (ratio is None or not ratio.low <= 1 <= ratio.high):
        return Verdict.WIN if mine.median < other.median else Verdict.LOSS
    if ratio is None:  # theirs are all zero
        return Verdict.NOT_SLOWER if mine.median <= other.median else Verdict.OPEN
    return Verdict.NOT_SLOWER if ratio.high <= NOT_SLOWER_WITHIN else Verdict.OPEN


class Outcome(Enum):
    REACHED = "reached"
    WITHIN_ERROR = "within the error"
    MISSED = "missed"


@dataclass(frozen=True)
class TargetResult:
    target: Target
    column: Column
    against: str  # a contestant, or ABSOLUTE
    figure: Estimate
    outcome: Outcome


def results_for(
    scenario: Scenario,
    parameters: Parameters,
    rounds: Mapping[str, Mapping[Key, ByRound]],
    contestants: Mapping[str, Contestant],
) -> Iterator[TargetResult]:
    for column in scenario.columns:
        for target in known(scenario.name).targets:
            if target.key == column.key and target.applies_to(parameters):
                found = result_for(target, column, rounds, contestants)
                if found is not None:
                    yield found


def result_for(
    target: Target, column: Column, rounds: Mapping[str, Mapping[Key, ByRound]], contestants: Mapping[str, Contestant]
) -> TargetResult | None:
    """None if what is to be compared was not measured."""
    key, against = column.key, target.against
    mine = rounds.get(target.contestant, {}).get(key)
    if mine is None:
        return None
    if against == ABSOLUTE:
        figure = estimate(list(mine.values()))
    else:
        other = best_peer(rounds, key, contestants, target.contestant) if against == BEST_PEER else against
        figure = paired_ratio(mine, rounds[other][key]) if other in rounds and key in rounds[other] else None
        against = other or against
    if figure is None:
        return None
    return TargetResult(target, column, against, figure, outcome_of(figure, target.limit, target.metric == "syscalls"))


def outcome_of(figure: Estimate, limit: float, counted: bool = False) -> Outcome:
    """A count is taken once and is exact. Of anything else, one sample says nothing about its error."""
    if figure.median <= limit:
        return Outcome.REACHED
    if figure.count < 2 and not counted:
        return Outcome.WITHIN_ERROR
    return Outcome.WITHIN_ERROR if figure.low <= limit else Outcome.MISSED

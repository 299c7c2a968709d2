"""From samples to statements: medians with intervals, paired ratios, and verdicts.

A sample is one run of one worker. A round has one sample of each contestant, taken close together. What drifts from
round to round (other programs, the clock of the core) affects a round's contestants alike, so ratios are formed within
a round first and only then summarised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

CONFIDENCE = 0.95
LEVEL_WITHIN = 1.25  # "no difference" excludes a loss of more than a quarter


@dataclass(frozen=True)
class Estimate:
    """A median and the interval that holds the true one with probability `coverage`."""

    median: float
    low: float
    high: float
    coverage: float
    count: int

    @property
    def spread(self) -> float:
        """Half the interval, as a share of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0

    def overlaps(self, other: Estimate) -> bool:
        return self.low <= other.high and other.low <= self.high


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def coverage_of_ranks(count: int, rank: int) -> float:
    """The probability that the true median lies between the rank-th smallest and the rank-th largest of `count`
    independent samples. It holds for any distribution: each sample falls below the median with probability one half."""
    below = sum(math.comb(count, k) for k in range(rank))
    return 1 - 2 * below / 2**count


def estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate | None:
    """None without values. With fewer than six values the widest interval, least to greatest, covers less than was
    asked for; `coverage` says how much."""
    if not values:
        return None
    ordered = sorted(values)
    count = len(ordered)
    rank = 1
    while 2 * (rank + 1) <= count and coverage_of_ranks(count, rank + 1) >= confidence:
        rank += 1
    return Estimate(
        median(ordered), ordered[rank - 1], ordered[-rank], coverage_of_ranks(count, rank) if count > 1 else 0.0, count
    )


def paired_ratio(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Estimate | None:
    """Ours divided by theirs, round by round. Rounds that lack either, or where theirs is zero, don't count."""
    return estimate([ours[round_] / theirs[round_] for round_ in ours if theirs.get(round_)])


class Verdict(Enum):
    WIN = "win"
    TIE = "no difference"
    OPEN = "not decided"
    LOSS = "loss"


def judge(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Verdict:
    """Less is better. A difference is claimed only where the two intervals don't overlap and the interval of the paired
    ratio excludes 1. Otherwise, "no difference" is claimed only where the ratio's interval excludes a loss of more than
    a quarter. Everything else is not decided; one sample, which has no interval, decides nothing."""
    mine, other = estimate(list(ours.values())), estimate(list(theirs.values()))
    if mine is None or other is None or min(mine.count, other.count) < 2:
        return Verdict.OPEN
    ratio = paired_ratio(ours, theirs)
    if not mine.overlaps(other) and (ratio is None or not ratio.low <= 1 <= ratio.high):
        return Verdict.WIN if mine.median < other.median else Verdict.LOSS
    if ratio is None:  # theirs are all zero
        return Verdict.TIE if mine.median <= other.median else Verdict.OPEN
    return Verdict.TIE if ratio.high <= LEVEL_WITHIN else Verdict.OPEN

# SPDX-License-Identifier: Apache-2.0
"""From samples to statements: medians with intervals, and paired ratios. The verdicts are in verdict.py.

A sample is one run of one worker. A round has one sample of each contestant, taken close together. What drifts from
round to round (other programs, the clock of the core) affects a round's contestants alike, so ratios are formed within
a round first and only then summarised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


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

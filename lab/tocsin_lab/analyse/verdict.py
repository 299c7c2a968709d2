# SPDX-License-Identifier: Apache-2.0
"""Whether one contestant is ahead of another, not slower, or behind it; or whether that is not decided."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from tocsin_lab.analyse.statistics import estimate, paired_ratio

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

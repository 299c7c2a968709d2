# SPDX-License-Identifier: Apache-2.0
"""From samples to statements: medians with intervals, paired ratios, and quantiles of the distributions that workers
report (log-linear histograms of picoseconds). The verdicts are in verdict.py.

A sample is one run of one worker. A round has one sample of each contestant, taken close together. What drifts from
round to round (other programs, the clock of the core) affects a round's contestants alike, so ratios are formed within
a round first and only then summarised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tocsin_lab.records import Distribution

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


def bucket_bounds(index: int, sub_bits: int) -> tuple[int, int]:
    """The least value of a bucket, and the least value of the next one."""
    per_octave = 1 << sub_bits
    if index < per_octave:
        return index, index + 1
    octave = index // per_octave - 1
    lowest = (index % per_octave + per_octave) << octave
    return lowest, lowest + (1 << octave)


def quantile(of: Distribution, share: float) -> float | None:
    """The value below which this share of all values lies, in picoseconds; None if there are no values.

    Values are taken to lie evenly inside a bucket, which keeps the error well below its width.
    """
    total = of.total
    if total == 0:
        return None
    rank = share * (total - 1)
    before = 0
    for index, count in of.counts:
        if rank < before + count:
            low, high = bucket_bounds(index, of.sub_bits)
            inside = (rank - before + 0.5) / count
            return min(max(low + (high - low) * inside, of.least), of.most)
        before += count
    return float(of.most)


def merge(distributions: Iterable[Distribution]) -> Distribution:
    """All their values together; they must have the same buckets."""
    known = list(distributions)
    if len({one.sub_bits for one in known}) != 1:
        raise ValueError("distributions with different buckets can't be merged")
    counts: dict[int, int] = {}
    for one in known:
        for index, count in one.counts:
            counts[index] = counts.get(index, 0) + count
    filled = [one for one in known if one.counts]
    return Distribution(
        known[0].sub_bits,
        tuple(sorted(counts.items())),
        min((one.least for one in filled), default=0),
        max((one.most for one in filled), default=0),
    )

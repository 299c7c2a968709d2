# SPDX-License-Identifier: Apache-2.0
"""Quantiles of the distributions that workers report: log-linear histograms of picoseconds."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin_lab.records import Distribution


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

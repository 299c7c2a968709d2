"""The distributions that workers report: log-linear histograms of picoseconds.

The counterpart of worker/measure/histogram.hpp, which says how the buckets lie.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


def bucket_bounds(index: int, sub_bits: int) -> tuple[int, int]:
    """The least value of a bucket, and the least value of the next one."""
    per_octave = 1 << sub_bits
    if index < per_octave:
        return index, index + 1
    octave = index // per_octave - 1
    lowest = (index % per_octave + per_octave) << octave
    return lowest, lowest + (1 << octave)


@dataclass(frozen=True)
class Histogram:
    sub_bits: int
    counts: tuple[tuple[int, int], ...]  # (index, count), ascending by index
    least: int
    most: int

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Histogram:
        counts = tuple((int(index), int(count)) for index, count in data["counts"])
        return cls(int(data["sub_bits"]), counts, int(data["least"]), int(data["most"]))

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts)

    def quantile(self, share: float) -> float | None:
        """The value below which this share of all values lies, in picoseconds; None if there are none.

        Inside a bucket the values are taken to lie evenly, which keeps the error well below its width.
        """
        total = self.total
        if total == 0:
            return None
        rank = share * (total - 1)
        before = 0
        for index, count in self.counts:
            if rank < before + count:
                low, high = bucket_bounds(index, self.sub_bits)
                inside = (rank - before + 0.5) / count
                return min(max(low + (high - low) * inside, self.least), self.most)
            before += count
        return float(self.most)


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """All their values together; they must have the same buckets."""
    known = list(histograms)
    if len({one.sub_bits for one in known}) != 1:
        raise ValueError("histograms of different kinds can't be merged")
    counts: dict[int, int] = {}
    for one in known:
        for index, count in one.counts:
            counts[index] = counts.get(index, 0) + count
    filled = [one for one in known if one.counts]
    return Histogram(
        known[0].sub_bits,
        tuple(sorted(counts.items())),
        min((one.least for one in filled), default=0),
        max((one.most for one in filled), default=0),
    )

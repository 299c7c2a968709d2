# SPDX-License-Identifier: Apache-2.0
"""From samples to figures: one contestant in one column of one case, over the rounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tocsin_lab.analyse.statistics import Estimate, estimate, quantile
from tocsin_lab.records import Column, Contestant, Key, Sample

QUANTILES = {"median": 0.5, "p99": 0.99, "most": 1.0}

ByRound = Mapping[int, float]
Collected = dict[str, dict[Key, dict[int, float]]]  # by contestant


@dataclass(frozen=True)
class Figure:
    by_round: ByRound
    value: Estimate
    to_floor: Estimate | None = None
    to_best_peer: Estimate | None = None  # of all peers but itself


def figure_of(sample: Sample, metric: str, statistic: str) -> float | None:
    """A column's figure in one sample: nanoseconds, or the value as it is."""
    if statistic == "value":
        return sample.values.get(metric)
    if metric not in sample.distributions:
        return None
    found = quantile(sample.distributions[metric], QUANTILES[statistic])
    return None if found is None else found / 1e3


def collect(columns: Iterable[Column], samples: Iterable[Sample], counts: Iterable[Sample]) -> Collected:
    """Takes system calls from the counting runs, and everything else from the measured ones."""
    found: Collected = {}
    for counted, some in ((False, samples), (True, counts)):
        wanted = [one for one in columns if (one.metric == "syscalls") == counted]
        for sample in some:
            for column in wanted:
                figure = figure_of(sample, column.metric, column.statistic)
                if figure is not None:
                    found.setdefault(sample.contestant, {}).setdefault(column.key, {})[sample.round] = figure
    return found


def best_peer(
    rounds: Mapping[str, Mapping[Key, ByRound]], key: Key, contestants: Mapping[str, Contestant], besides: str
) -> str | None:
    """The peer with the least median in this column."""
    medians = {
        name: estimate(list(columns[key].values()))
        for name, columns in rounds.items()
        if contestants[name].role == "peer" and name != besides and key in columns
    }
    known = {name: one.median for name, one in medians.items() if one is not None}
    return min(known, key=known.__getitem__, default=None)

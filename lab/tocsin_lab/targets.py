"""What tocsin is to reach: ratios inside one run, each with the scenario that measures it.

A row that isn't reached stays visible; that is what the list is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FLOOR = "floor"
BEST_PEER = "best peer"
ABSOLUTE = "absolute"  # the figure itself, no ratio


@dataclass(frozen=True)
class Target:
    scenario: str
    metric: str
    against: str  # FLOOR, BEST_PEER, ABSOLUTE or a contestant's name
    limit: float
    statistic: str | None = None  # of a distribution; None: the value per operation
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # cases; empty: all
    contestant: str = "tocsin"

    def applies_to(self, scenario: str, parameters: Mapping[str, str]) -> bool:
        return self.scenario == scenario and all(parameters.get(name) in values for name, values in self.where.items())

    def describe(self) -> str:
        if self.against == ABSOLUTE:
            return f"≤ {self.limit:g}"
        return f"≤ {self.limit:.3g} × {self.against}"


def case(**values: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(value.split("|")) for name, value in values.items()}


TARGETS: tuple[Target, ...] = (
    Target("polling", "poll", FLOOR, 1.05, "median"),
    Target("pairs", "time", FLOOR, 1.10, "median", case(operation="auto_set_wait|manual_set_reset")),
    Target("pairs", "time", BEST_PEER, 1.0, "median", case(operation="auto_set_wait")),
    Target("pairs", "syscalls", ABSOLUTE, 0.001),  # not 0: the harness makes a few in each run
    Target("redundant_set", "set", FLOOR, 1.10, "median", case(producers="1")),
    Target("redundant_set", "set", "exchange", 0.5, "median", case(producers="4")),
    Target("hurdles", "hurdle", BEST_PEER, 1.0, "median", case(threads="2|4|8|16")),
    Target("hurdles", "cpu", BEST_PEER, 1.0, None, case(threads="2|4|8|16")),
    Target("broadcast", "held", FLOOR, 3.0, "median"),
    Target("broadcast", "last", BEST_PEER, 1.05, "median"),
    Target("broadcast", "cpu", BEST_PEER, 1.10),
    Target("wake_latency", "latency", "raw_futex", 1.05, "median"),
    Target("wake_latency", "latency", "raw_futex", 1.05, "p99"),
    Target("wake_latency", "latency", FLOOR, 2.0, "median", contestant="tocsin_long_spin"),
    Target("ping_pong", "trip", BEST_PEER, 1.0, "median", case(cores="2")),
    Target("ping_pong", "cpu", BEST_PEER, 1.0, None, case(cores="2")),
    Target("ping_pong", "trip", "raw_futex", 1.10, "median", case(cores="1")),
    Target("producer", "cpu", BEST_PEER, 1.05),
    Target("futile_wait", "cpu", "raw_futex", 1.3),
    Target("address_wake", "wake", FLOOR, 1.10, "median"),
    Target("address_differs", "wait", FLOOR, 1.5, "median"),
    Target("locks", "turn", BEST_PEER, 1.0),
    Target("locks", "cpu", BEST_PEER, 1.0),
    Target("locks", "syscalls", ABSOLUTE, 0.01, None, case(threads="1")),
    Target("strangers", "disturbed", ABSOLUTE, 0.0),
    Target("bystanders", "time", FLOOR, 1.10, "median"),
    Target("bystanders", "disturbed", ABSOLUTE, 0.0),
    Target("wait_many", "time", FLOOR, 1.5, "median", case(what="ready")),
    Target("wait_many", "time", BEST_PEER, 1.0, "median", case(what="ready|comes|all")),
    Target("wait_many", "syscalls", ABSOLUTE, 0.001, None, case(what="ready")),
    Target("wait_many", "switches", ABSOLUTE, 2.1, None, case(what="all_one_core")),  # each of the two sleeps once
    Target("multiplexed", "cpu", BEST_PEER, 1.0),
    Target("multiplexed", "syscalls", BEST_PEER, 1.0),
    Target("group_commit", "commit", BEST_PEER, 1 / 1.05),
    Target("group_commit", "latency", BEST_PEER, 1.0, "p99"),
    Target("group_commit", "held", "group_one_cond", 1 / 20, "median", case(on="disk")),
    Target("group_wake", "held", "group_one_cond", 1 / 20, "median"),
    Target("group_wake", "last", BEST_PEER, 1.05, "median"),
    Target("memory", "size", ABSOLUTE, 1.0),
    Target("memory", "heap", ABSOLUTE, 0.0),
    Target("memory", "waiter_heap", ABSOLUTE, 0.0),
    Target("memory", "kernel_objects", ABSOLUTE, 0.0),
)

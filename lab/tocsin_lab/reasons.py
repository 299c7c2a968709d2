"""Why tocsin loses where it does: what is known, and nothing that was not looked into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UNKNOWN = "Not known yet."


@dataclass(frozen=True)
class Loss:
    """What there is to explain."""

    scenario: str
    metric: str
    parameters: Mapping[str, str]
    against: str
    cores: int

    @property
    def is_crowded(self) -> bool:
        return int(self.parameters.get("threads", "0")) > self.cores


@dataclass(frozen=True)
class Reason:
    text: str
    scenario: str
    metrics: tuple[str, ...]
    against: tuple[str, ...] = ()  # the peers of which it is known; empty: whoever it is
    where: Mapping[str, str] = field(default_factory=dict)  # cases; empty: all
    crowded: bool = False  # only with more threads than cores

    def explains(self, loss: Loss) -> bool:
        return (
            self.scenario == loss.scenario
            and loss.metric in self.metrics
            and (not self.against or loss.against in self.against)
            and self.where.items() <= loss.parameters.items()
            and (not self.crowded or loss.is_crowded)
        )


WAKES_ALL_AT_ONCE = ("std_atomic", "std_latch", "raw_futex", "tracked_futex", "eventfd")

BARGING = (
    "std_atomic", "raw_futex", "tracked_futex", "std_binary_semaphore", "std_counting_semaphore", "posix_semaphore",
    "pthread_cond",
)  # fmt: skip

REASONS: tuple[Reason, ...] = (
    Reason(
        "A reset here is a read-modify-write that acquires: who resets and then finds nothing to do has seen what "
        "every set published. The peer's reset is a plain store, which promises nothing of the kind.",
        "pairs", ("time",), ("std_atomic",), {"operation": "manual_set_reset"},
    ),
    Reason(
        "A wait for no time at all goes the way of every wait with a deadline, out of line, and finds there that the "
        "deadline has passed. The peer's adapter tests for zero in line.",
        "pairs", ("time",), ("tracked_futex",), {"operation": "wait_for_0_unset"},
    ),
    Reason(
        "One thread waits for nobody, so a hurdle is arrival, set and reset. The peer resets by a plain store or is "
        "made anew; a reset here is a read-modify-write that acquires.",
        "hurdles", ("hurdle", "cpu"), ("std_atomic", "std_latch"), {"threads": "1"},
    ),
    Reason(
        "With more threads than cores giving the core away beats sleeping. The peer always does that before it "
        "sleeps; tocsin learns for each event whether it pays (decision 5), and tries only now and then where it seemed "
        "not to.",
        "hurdles", ("hurdle", "cpu"), ("std_atomic", "std_latch"), crowded=True,
    ),
    Reason(
        "A relay: each woken thread wakes the next, at a system call each. One call that wakes them all gets the last "
        "one up sooner where cores are few, and holds the waker all the while (decision 4).",
        "broadcast", ("last", "cpu"), WAKES_ALL_AT_ONCE,
    ),
    Reason(
        "A set hands the turn to whoever has waited longest, so most turns cost a switch of threads, and nobody waits long. "
        "With the peer the thread that has just had its turn takes the next one before the others are awake, with hardly a "
        "switch: the longest wait is thirty times as long.",
        "fairness", ("cpu",), BARGING, {"turn": "event"},
    ),
    Reason(
        "The peer's waiters give their core away again and again before they sleep (the column of switches), so few of them "
        "have to be woken when the flush ends. Here each sleeps at once: a flush is long, and others may need the "
        "processor (decision 10). On a machine that does nothing else that is a system call and a switch a commit.",
        "group_commit", ("commit", "latency", "cpu"), ("group_atomic",), {"on": "disk"},
    ),
    Reason(
        "Where a flush costs nothing, a thread commits for itself, again and again until its time slice ends: the median "
        "is a hundredth of the peer's, and the hundredth commit waits for a slice.",
        "group_commit", ("latency",), ("group_atomic",), {"on": "memory"},
    ),
    Reason(
        "A wake here orders itself after whatever store came before, by a full fence. The peer's loads a counter and "
        "leaves the ordering to the caller's store.",
        "address_wake", ("wake",), ("std_atomic",), {"bytes": "4"},
    ),
    Reason(
        "The wait that is measured takes a deadline, which the compiler puts on the stack before it looks at the "
        "value: four stores beside one load.",
        "address_differs", ("wait",),
    ),
)  # fmt: skip


def reason_for(loss: Loss) -> str:
    return next((one.text for one in REASONS if one.explains(loss)), UNKNOWN)

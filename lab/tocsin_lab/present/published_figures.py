# SPDX-License-Identifier: Apache-2.0
"""Figures that others have published about the same questions, on their machines and in their years. They are shown
alongside what is measured here, and never compared with it by statistics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from tocsin_lab.records import Key, Parameters


@dataclass(frozen=True)
class Source:
    title: str
    year: str  # if the source says
    what: str  # how its figures were taken


BARRICADE = Source(
    "Faster Windows Events, mr-edd.co.uk", "2012",
    "best of 5 runs of 100,000,000 polls or 20,000,000 hurdles a thread, Visual C++ 2010; wall time by operations",
)
MULTIPLE = Source(
    "WaitForMultipleObjects() considered expensive, unwesen.de", "year not given",
    "one thread of a real program, signalled about 30 times a second; CPU time with the program's own work",
)
BROADCAST = Source(
    "Micro-benchmarking pthread_cond_broadcast(), K. Nielsen's blog, with its comments", "year not given",
    "from the first signal until the last thread is awake; comments: median of three runs",
)
ECONOMIC = Source(
    "Reducing AutoResetEvent's Synchronization Overhead, Liran Chen's blog", "2010",
    "1,000,000 pairs of Set and WaitOne in one thread, C#; average",
)
ATOMIC_WAIT = Source(
    "Implementing atomic wait and notify", "year not given",
    "mean of 10,000 wake-ups; after 50 ms asleep where no other delay is given",
)

ATHLON = "Athlon X2 4200+, 2 cores, Windows XP"
I7_870 = "Core i7 870, 4 cores, Windows 7"
I7 = "Core i7, 4 cores"
Q6600 = "Core 2 Quad Q6600, 4 cores"
MAGNY_COURS = "Magny-Cours, 48 cores"
NEHALEM = "Nehalem EX, 32 cores"
C_SHARP = "machine not named, .NET on Windows"
WINDOWS = "machine not named, Windows"
XP = "dual core, Windows XP"
M1 = "MacBook M1, macOS"


@dataclass(frozen=True)
class Record:
    source: Source
    machine: str
    label: str
    scenario: str
    key: Key
    value: float | None  # in the unit of the column; None where the source has another unit (remark)
    where: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""

    def belongs_to(self, scenario: str, parameters: Parameters) -> bool:
        """If a record's source doesn't say the case, the record belongs to none: it is only listed."""
        return self.scenario == scenario and bool(self.where) and self.where.items() <= parameters.items()


def by_threads(scenario: str, metric: str, count: float, machine: str, label: str, *seconds: float) -> list[Record]:
    """From the times that 1, 2, 4 ... threads took for `count` operations, the time of one operation."""
    return [
        Record(BARRICADE, machine, label, scenario, (metric, "median"), total * 1e9 / count, {"threads": str(2**power)})
        for power, total in enumerate(seconds)
    ]


polls = partial(by_threads, "polling", "poll", 100e6)
hurdles = partial(by_threads, "hurdles", "hurdle", 20e6)


def last_awake(machine: str, label: str, milliseconds: float, threads: str = "") -> Record:
    where, remark = ({"threads": threads}, "") if threads else ({}, "how many threads is not said")
    return Record(BROADCAST, machine, label, "broadcast", ("last", "median"), milliseconds * 1e6, where, remark)


def latencies(machine: str, microseconds: Mapping[str, float], delay_ms: str = "50") -> list[Record]:
    where = {"delay_ms": delay_ms, "cores": "2"}
    return [
        Record(ATOMIC_WAIT, machine, label, "wake_latency", ("latency", "median"), value * 1e3, where)
        for label, value in microseconds.items()
    ]


def pair(label: str, value: float) -> Record:
    return Record(ECONOMIC, C_SHARP, label, "pairs", ("time", "median"), value, {"operation": "auto_set_wait"})


def multiplexed(machine: str, label: str, remark: str) -> Record:
    return Record(MULTIPLE, machine, label, "multiplexed_waker", ("cpu", "value"), None, {}, remark)


LIBCXX = f"{M1}, libc++"
RECORDS: tuple[Record, ...] = (
    *polls(ATHLON, "barricade", 0.250, 0.265, 0.422),
    *polls(ATHLON, "Windows event", 43.703, 98.312, 265.672),
    *polls(I7_870, "barricade", 0.177, 0.184, 0.191, 0.293, 0.550),
    *polls(I7_870, "Windows event", 30.641, 40.141, 75.123, 213.231, 529.012),
    *hurdles(ATHLON, "barricade", 12.375, 12.860, 12.687),
    *hurdles(ATHLON, "Windows event", 20.969, 38.953, 79.703),
    *hurdles(I7_870, "barricade", 8.839, 9.087, 9.285, 9.780, 10.947),
    *hurdles(I7_870, "Windows event", 14.513, 20.878, 29.691, 51.323, 88.787),
    multiplexed(XP, "WSAWaitForMultipleEvents", "about 50 % CPU: one of its two cores"),
    multiplexed(XP, "the same, woken less often", "2 to 5 % CPU"),
    multiplexed("Mac OS X, Linux; Windows Vista", "select() on a pipe; WSAWaitForMultipleEvents", "about 5 % CPU"),
    last_awake(I7, "pthread_cond_broadcast", 46.9, "5000"),
    last_awake(I7, "pthread_cond_signal, one each", 17.6, "5000"),
    last_awake(Q6600, "pthread_cond_broadcast", 7.40504, "1000"),
    last_awake(Q6600, "pthread_cond_signal, one each", 8.82006, "1000"),
    last_awake(Q6600, "futex broadcast", 3.91102, "1000"),
    last_awake(Q6600, "futex, one each", 5.43499, "1000"),
    last_awake(MAGNY_COURS, "pthread_cond_broadcast", 110.98),
    last_awake(MAGNY_COURS, "pthread_cond_signal, one each", 21.45),
    last_awake(NEHALEM, "pthread_cond_broadcast", 57.833),
    last_awake(NEHALEM, "pthread_cond_signal, one each", 17.889),
    pair("AutoResetEvent", 1035),
    pair("EconomicAutoResetEvent", 9),
    *latencies(WINDOWS, {"spin": 0.35, "WaitOnAddress": 13.10, "Win32 event": 23.50, "Sleep(1)": 997.00}),
    *latencies(M1, {"spin": 0.10, "ulock_wait": 22.70, "dispatch semaphore": 20.40, "nanosleep(1 µs)": 25.90}),
    *latencies(LIBCXX, {"spin": 0.12, "atomic wait": 327.00, "semaphore": 332.00, "sleep": 4.23}, "1"),
    *latencies(LIBCXX, {"spin": 0.14, "atomic wait": 4900.00, "semaphore": 5080.00, "sleep": 6.33}, "10"),
    *latencies(LIBCXX, {"spin": 0.33, "atomic wait": 15100.00, "semaphore": 15000.00, "sleep": 6.71}, "50"),
)

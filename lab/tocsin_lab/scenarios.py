# SPDX-License-Identifier: Apache-2.0
"""What is known of a scenario beyond what its worker says: the questions it answers, what tocsin is to reach there, and
why tocsin loses. One entry for each scenario; a scenario without one asks its own question and has no targets.

Targets are ratios inside one run. One that is missed stays visible: that is what the list is for. Reasons hold only
what somebody has looked into.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tocsin_lab.records import Key, Parameters

FLOOR = "floor"
BEST_PEER = "best peer"
ABSOLUTE = "absolute"  # the figure itself, no ratio


@dataclass(frozen=True)
class Question:
    """What people ask, and the column that answers it."""

    text: str
    metric: str
    statistic: str = "value"
    where: Mapping[str, str] = field(default_factory=dict)  # a parameter narrows only the cases that have it

    @property
    def key(self) -> Key:
        return self.metric, self.statistic

    def fits(self, parameters: Parameters) -> bool:
        return all(parameters.get(name, value) == value for name, value in self.where.items())


@dataclass(frozen=True)
class Target:
    metric: str
    against: str  # FLOOR, BEST_PEER, ABSOLUTE or a contestant's name
    limit: float
    statistic: str = "value"
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # cases; empty: all
    contestant: str = "tocsin"

    @property
    def key(self) -> Key:
        return self.metric, self.statistic

    def applies_to(self, parameters: Parameters) -> bool:
        return all(parameters.get(name) in values for name, values in self.where.items())

    def describe(self) -> str:
        if self.against == ABSOLUTE:
            return f"≤ {self.limit:g}"
        return f"≤ {self.limit:.3g} × {self.against}"


@dataclass(frozen=True)
class Loss:
    """What a reason has to explain: a contestant of tocsin takes longer than `against` in this case."""

    scenario: str
    metric: str
    parameters: Parameters
    against: str
    cores: int
    contestant: str = "tocsin"

    @property
    def is_crowded(self) -> bool:
        return int(self.parameters.get("threads", "0")) > self.cores


@dataclass(frozen=True)
class Reason:
    text: str
    metrics: tuple[str, ...]
    against: tuple[str, ...] = ()  # the peers for which it holds; empty: all
    where: Mapping[str, str] = field(default_factory=dict)  # cases; empty: all
    crowded: bool = False  # holds only with more threads than cores
    contestant: str = "tocsin"

    def explains(self, loss: Loss) -> bool:
        return (
            loss.metric in self.metrics
            and loss.contestant == self.contestant
            and (not self.against or loss.against in self.against)
            and self.where.items() <= loss.parameters.items()
            and (not self.crowded or loss.is_crowded)
        )


@dataclass(frozen=True)
class Knowledge:
    questions: tuple[Question, ...] = ()
    targets: tuple[Target, ...] = ()
    reasons: tuple[Reason, ...] = ()


def cases(**values: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(value.split("|")) for name, value in values.items()}


WAKES_ALL_AT_ONCE = ("std_atomic", "std_latch", "raw_futex", "tracked_futex", "eventfd")

# Read from the code: include/tocsin/event.hpp and worker/contestants/futex.hpp.
SET_AND_TAKE = (
    "tocsin's set loads the event's byte before its compare-and-exchange: the byte also says whether a thread is queued, "
    "and a producer that sets the event again needs only the load (decision 41). The peer's set is one exchange."
)

OWN_LIST = ("list_of_waits", "coroutine_event")

# Read from the code: src/pending.cpp, and listed_event.hpp and resumed_event.hpp in worker/contestants.
SHARED_QUEUE = (
    "The peer keeps the waits for one event in that event's own list. No thread can wait in this list, and no deadline "
    "or stop ends a wait there. tocsin finds the queue of an event by a hash, threads and coroutines share it, and "
    "whoever ends a wait claims it first (decisions 16 and 33)."
)

BARGING = (
    "std_atomic", "raw_futex", "tracked_futex", "std_binary_semaphore", "std_counting_semaphore", "posix_semaphore",
    "pthread_cond", "nsync_cond",
)  # fmt: skip

# In the order in which the report asks the questions.
KNOWN: Mapping[str, Knowledge] = {
    "wake_latency": Knowledge(
        (Question("Fastest to wake one sleeping thread", "latency", "median", {"delay_ms": "10"}),),
        (
            Target("latency", "raw_futex", 1.05, "median"),
            Target("latency", "raw_futex", 1.05, "p99"),
            Target("latency", FLOOR, 2.0, "median", contestant="tocsin_long_spin"),
        ),
        (
            *(
                Reason(
                    "The setter has slept for the whole delay, so its caches are cold when it calls set(). The floor's "
                    "setter stores one word; tocsin's walks a queue. With a setter that keeps its core busy instead, "
                    "the variant takes as long after 10 ms as after 1 ms (0.2 us).",
                    ("latency",), ("floor",), {"delay_ms": delay}, contestant="tocsin_long_spin",
                )
                for delay in ("10", "50")
            ),
        ),
    ),
    "broadcast": Knowledge(
        (
            Question("Fastest to wake many: the last one awake", "last", "median"),
            Question("Quickest to let the waker of many go on", "held", "median"),
        ),
        (
            Target("held", FLOOR, 3.0, "median"),
            Target("last", BEST_PEER, 1.05, "median"),
            Target("cpu", BEST_PEER, 1.10),
            Target("last", "pthread_cond", 0.5, "median", cases(threads="1000"), contestant="tocsin_condition"),
        ),
        (
            Reason(
                "Each woken thread needs the mutex before it can do anything. The condition wakes two threads at a "
                "time, by a system call each. glibc wakes all by one call, and then two processors seldom contend for "
                "a mutex that is held so briefly (decision 30).",
                ("last",), ("pthread_cond",), contestant="tocsin_condition",
            ),
            Reason(
                "tocsin's waker wakes one thread. That thread wakes up to 63 others by one call, and another thread "
                "does the same for the next 64 (decision 4). One call by the waker saves these steps, but holds the "
                "waker until nearly all are awake.",
                ("last", "cpu"), WAKES_ALL_AT_ONCE,
            ),
            Reason(
                "The peer's waker wakes one thread, and that thread wakes one more. The thread that tocsin's waker "
                "wakes then wakes up to 63 others, which compete with the waker for its core.",
                ("held",), ("futex_relay",),
            ),
        ),
    ),
    "pairs": Knowledge(
        (Question("Cheapest to signal and consume, nobody asleep", "time", "median", {"operation": "auto_set_wait"}),),
        (
            Target("time", FLOOR, 1.10, "median", cases(operation="auto_set_wait|manual_set_reset")),
            Target("time", BEST_PEER, 1.0, "median", cases(operation="auto_set_wait")),
            Target("syscalls", ABSOLUTE, 0.001),  # not 0: the harness makes a few in each run
            Target("time", FLOOR, 1.10, "median", cases(operation="auto_set_wait"), contestant="tocsin_semaphore"),
        ),
        (
            Reason(
                "tocsin's reset is a read-modify-write with acquire order: a thread that resets and then finds "
                "nothing to do has seen what every set published. The peer's reset is a plain store, which promises "
                "nothing of the kind.",
                ("time",), ("std_atomic",), {"operation": "manual_set_reset"},
            ),
            Reason(
                "In tocsin a wait for no time takes the path of every wait with a deadline, out of line, and finds "
                "there that the deadline has passed. The peer's adapter tests for zero inline.",
                ("time",), ("tracked_futex",), {"operation": "wait_for_0_unset"},
            ),
            Reason(SET_AND_TAKE, ("time",), ("tracked_futex",), {"operation": "auto_set_wait"}),
            # Read from the code: include/tocsin/event.hpp and worker/contestants/atomics.hpp.
            Reason(
                "tocsin's set is a load and a compare-and-exchange, because one byte also says whether a thread is "
                "queued. The peer's is one exchange: the standard library counts waiters in a table of its own.",
                ("time",), ("std_atomic",), {"operation": "auto_set_wait"},
            ),
        ),
    ),
    "events": Knowledge(reasons=(Reason(SET_AND_TAKE, ("time",), ("tracked_futex",)),)),
    "redundant_set": Knowledge(
        (
            Question("Cheapest to signal again what is signalled", "set", "median",
                     {"event": "auto", "producers": "1"}),
        ),
        (
            Target("set", FLOOR, 1.10, "median", cases(producers="1")),
            Target("set", "exchange", 0.5, "median", cases(producers="4")),
        ),
    ),
    "polling": Knowledge(
        (Question("Cheapest to look at", "poll", "median", {"threads": "1"}),),
        (Target("poll", FLOOR, 1.05, "median"),),
    ),
    "futile_wait": Knowledge(
        (Question("Cheapest to keep waiting, in CPU", "cpu"),),
        (Target("cpu", "raw_futex", 1.3),),
        (
            Reason(
                "Some waits try again whether yielding the core pays before they sleep (decision 5): 17 yields in 193 "
                "waits, counted. The peer always sleeps at once.",
                ("cpu",), ("posix_semaphore",),
            ),
        ),
    ),
    "ping_pong": Knowledge(
        (
            Question("Fastest back and forth between two cores", "trip", "median", {"cores": "2"}),
            Question("Fastest back and forth on one core", "trip", "median", {"cores": "1"}),
        ),
        (
            Target("trip", BEST_PEER, 1.0, "median", cases(cores="2")),
            Target("cpu", BEST_PEER, 1.0, where=cases(cores="2")),
            Target("trip", "raw_futex", 1.10, "median", cases(cores="1")),
        ),
    ),
    "disturbed": Knowledge(
        (Question("Fast again soonest after a disturbance", "soon", "median"),),
        (Target("later", "tocsin_long_spin", 2.0, "median"),),
    ),
    "hurdles": Knowledge(
        (
            Question("Fastest over a hurdle, two threads", "hurdle", "median", {"threads": "2"}),
            Question("Fastest over a hurdle, more threads than cores", "hurdle", "median", {"threads": "16"}),
        ),
        (
            Target("hurdle", BEST_PEER, 1.0, "median", cases(threads="2|4|8|16")),
            Target("cpu", BEST_PEER, 1.0, where=cases(threads="2|4|8|16")),
        ),
        (
            Reason(
                "A single thread waits for nobody, so a hurdle is arrival, set and reset. The peer resets with a "
                "plain store or is created again; tocsin's reset is a read-modify-write with acquire order.",
                ("hurdle", "cpu"), ("std_atomic", "std_latch"), {"threads": "1"},
            ),
            Reason(
                "With more threads than cores, yielding the core beats sleeping. The peer always yields before it "
                "sleeps. tocsin learns for each event whether yielding pays (decision 5), and tries it only now and "
                "then where it seemed not to.",
                ("hurdle", "cpu"), ("std_atomic", "std_latch"), crowded=True,
            ),
        ),
    ),
    "producer": Knowledge(
        (
            Question("Least CPU for an item now and then", "cpu", "value", {"pace": "paced", "producers": "1"}),
            Question("Least CPU for an item when items stream", "cpu", "value", {"pace": "balanced", "producers": "1"}),
        ),
        (Target("cpu", BEST_PEER, 1.05),),
    ),
    "channels": Knowledge(
        (
            Question("Cheapest to send an item to another thread, 4 threads on each side", "item", "median",
                     {"capacity": "1024", "senders": "4"}),
        ),
        (
            Target("item", "moodycamel_queue", 1.2, "median", cases(capacity="1024")),
            Target("item", "go_runtime", 1.0, "median", cases(capacity="1024")),
        ),
    ),
    "select": Knowledge(
        (
            Question("Cheapest to receive from whichever of eight channels has an item", "time", "median",
                     {"what": "streams", "order": "random"}),
        ),
        (Target("time", "tocsin_one_channel", 1.5, "median"),),
    ),
    "address_wake": Knowledge(
        (
            Question("Cheapest to wake an address where nobody waits", "wake", "median",
                     {"bytes": "4", "stranger": "none"}),
        ),
        (Target("wake", FLOOR, 1.10, "median"),),
        (
            Reason(
                "tocsin's wake orders itself after any earlier store by a full fence. The peer's wake loads a counter "
                "and leaves the ordering to the caller's store. A change that wakes (address_change) needs no fence.",
                ("wake",), ("std_atomic",), {"bytes": "4"},
            ),
            *(
                Reason(
                    "Both make a full fence. tocsin also hashes the address for its look into the table of waiters, "
                    "which takes half a nanosecond.",
                    ("wake",), ("std_atomic",), {"bytes": width},
                )
                for width in ("1", "2", "8")
            ),
        ),
    ),
    "address_change": Knowledge(
        (Question("Cheapest to change a word where nobody waits, and wake", "change", "median", {"bytes": "4"}),),
        (Target("change", FLOOR, 1.05, "median"),),
    ),
    "address_differs": Knowledge(
        targets=(Target("wait", FLOOR, 1.5, "median"),),
    ),
    "locks": Knowledge(
        (
            Question("Fastest lock under contention", "use", "value",
                     {"lock": "word", "bytes": "4", "threads": "4", "hold_us": "none"}),
            Question("Fastest lock that is held for 10 µs at a time, 16 threads", "use", "value",
                     {"hold_us": "10", "threads": "16"}),
        ),
        (
            Target("use", BEST_PEER, 1.0),
            Target("cpu", BEST_PEER, 1.0),
            Target("syscalls", ABSOLUTE, 0.01, where=cases(threads="1")),
            # The only other semaphore that is sure to wake its waiters (contestants/semaphores.hpp).
            Target("use", "posix_semaphore", 1.0, where=cases(bytes="4", threads="2|4|8|16"),
                   contestant="tocsin_semaphore"),
        ),
        (
            Reason(
                "A release of tocsin's semaphore hands its permit to the thread that has waited longest. Once a thread "
                "sleeps in the queue, no running thread can take the permit first (decision 28). With the peer it can, "
                "and the shares of the threads are uneven.",
                ("use",), ("posix_semaphore",), contestant="tocsin_semaphore",
            ),
            # Read from the code: include/tocsin/bit_lock.hpp and worker/contestants/atomics.hpp.
            Reason(
                "tocsin's lock is a load and a compare-and-exchange, on a word and a bit that its handle refers to. "
                "The peer's adapter sets a constant bit of its own word by one fetch_or.",
                ("use", "cpu"), ("std_atomic", "libcxx_atomic"), {"lock": "bit"},
            ),
            *(
                Reason(
                    "A thread that is woken while another holds the lock for long mostly finds it taken again. Until "
                    "decision 40, tocsin's then stayed first in the queue, and the next unlock woke it once more. So "
                    "wakes reached the other processor 3 to 7 times as often as with the peer (rescheduling "
                    "interrupts counted), and each cost the unlocking thread about 4 us, in which nobody held the "
                    "lock. Now such a thread goes to the end of the queue, and both locks take the same time.",
                    ("use", "cpu"), ("std_mutex", "pthread_mutex", "tracked_futex"), {"hold_us": held}, crowded=True,
                )
                for held in ("10", "100")
            ),
        ),
    ),
    "fairness": Knowledge(
        (Question("Fairest: the shortest long wait for a lock", "longest", "median", {"lock": "event"}),),
        reasons=(
            Reason(
                "tocsin's set hands the event to the thread that has waited longest, so most uses cost a switch of "
                "threads, and nobody waits long. With the peer, the thread that has just had it takes it again "
                "before the others are awake, with hardly a switch: the longest wait is 16 to 80 times as long.",
                ("cpu",), BARGING, {"lock": "event"},
            ),
        ),
    ),
    "group_commit": Knowledge(
        (
            Question("Fastest group commit, 64 threads, on a disk", "commit", "value",
                     {"threads": "64", "on": "disk"}),
        ),
        (
            Target("commit", BEST_PEER, 1 / 1.05),
            Target("latency", BEST_PEER, 1.0, "p99"),
            Target("held", "group_one_cond", 1 / 20, "median", cases(on="disk")),
        ),
        (
            Reason(
                "The peer's waiters always yield before they sleep. tocsin's yield only as long as that has paid "
                "lately (decision 10), so some sleep, and have to be woken by a system call.",
                ("commit", "latency", "cpu"), ("group_atomic",), {"on": "disk"},
            ),
            Reason(
                "More of the peer's followers have yielded instead of sleeping, so its leader has fewer to wake. "
                "tocsin's leader wakes one, the delegate of a batch. Where that thread runs on the leader's processor, "
                "it wakes its batch before the leader can go on.",
                ("held",), ("group_atomic",), {"on": "disk"},
            ),
            # Read from the code: settle() in src/group_commit.cpp.
            Reason(
                "Where a flush costs nothing, most groups have one member, and the figure is the leader's way out: 80 "
                "ns against 40. tocsin's leader also looks for members that the flush left, and hands on a list.",
                ("held",), ("group_atomic",), {"on": "memory"},
            ),
            Reason(
                "Where a flush costs nothing, a thread commits alone, again and again until its time slice ends. The "
                "median is a hundredth of the peer's, but the hundredth commit waits for a slice.",
                ("latency",), ("group_atomic",), {"on": "memory"},
            ),
        ),
    ),
    "group_wake": Knowledge(
        (
            Question("Quickest to let the leader of a group go on", "held", "median"),
            Question("Fastest to wake a group: the last one awake", "last", "median"),
        ),
        (
            Target("held", "group_one_cond", 1 / 20, "median"),
            Target("last", BEST_PEER, 1.05, "median"),
        ),
        (
            Reason(
                "tocsin's leader wakes one member. That member wakes up to 63 others by one call, and another does the "
                "same for the next 64 (decision 10). One call by the leader saves these steps, but holds the leader "
                "until nearly all are awake.",
                ("last", "cpu"), ("group_futex", "group_atomic"),
            ),
        ),
    ),
    "memory": Knowledge(
        (Question("Smallest", "size", "value", {"event": "auto"}),),
        (
            Target("size", ABSOLUTE, 1.0),
            Target("heap", ABSOLUTE, 0.0),
            Target("waiter_heap", ABSOLUTE, 0.0),
            Target("kernel_objects", ABSOLUTE, 0.0),
        ),
    ),
    "strangers": Knowledge(targets=(Target("disturbed", ABSOLUTE, 0.0),)),
    "idle_sleepers": Knowledge(
        (Question("Fastest while a thousand threads sleep elsewhere", "trip", "median", {"sleepers": "1000"}),),
        (Target("trip", FLOOR, 1.25, "median"),),
    ),
    "bystanders": Knowledge(
        targets=(Target("time", FLOOR, 1.10, "median"), Target("disturbed", ABSOLUTE, 0.0)),
    ),
    "wait_many": Knowledge(
        targets=(
            Target("time", FLOOR, 1.5, "median", cases(what="ready")),
            Target("time", BEST_PEER, 1.0, "median", cases(what="ready|comes|comes_one_core|all")),
            Target("syscalls", ABSOLUTE, 0.001, where=cases(what="ready")),
            Target("switches", ABSOLUTE, 2.1, where=cases(what="all_one_core")),  # each of the two sleeps once
        ),
        reasons=tuple(
            Reason(
                "The peer keeps all its flags under one lock. tocsin's events share none: a wait for several locks the "
                "bucket of each to queue, and again to take or to leave. A wait_set keeps its events queued.",
                ("time", "cpu"), ("std_cond_flags",), {"what": what},
            )
            for what in ("comes_one_core", "all_one_core")
        ),
    ),
    "async_wait": Knowledge(
        (Question("Cheapest wait that blocks no thread", "time", "median", {"outcome": "comes"}),),
        (
            Target("time", "tocsin_try_wait", 1.2, "median", cases(outcome="ready")),
            Target("time", "tocsin_co_await_one", 1.1, "median", cases(outcome="comes")),
            Target("allocations", ABSOLUTE, 0.0),
            Target("syscalls", ABSOLUTE, 0.001),
        ),
        tuple(
            Reason(SHARED_QUEUE, ("time",), OWN_LIST, {"outcome": outcome})
            for outcome in ("comes", "cancelled")
        ),
    ),
    "pending_operations": Knowledge(
        reasons=(
            Reason(SHARED_QUEUE, ("start", "cancel"), OWN_LIST),
            Reason(
                "An operation holds its waiter, a node in the queue of its source, its function, its result and a "
                "count of threads that cancel it: 608 bytes for one event (decision 33). The peer's wait holds two "
                "links, a function, its event and a count.",
                ("bytes",), ("list_of_waits",),
            ),
        ),
    ),
    "multiplexed": Knowledge(
        targets=(Target("cpu", BEST_PEER, 1.0), Target("syscalls", BEST_PEER, 1.0)),
    ),
    "between_processes": Knowledge(
        targets=tuple(
            Target("time", against, limit, "median", cases(work=work), contestant="tocsin_shared")
            for work, against, limit in (
                ("set_take", "tocsin_in_threads", 1.15),
                ("set_take", "inherited_eventfd", 0.05),
                ("ping_pong_2_cores", "tocsin_in_threads", 1.05),
                ("ping_pong_1_core", "shared_futex", 1.05),
                ("broadcast_100", "shared_futex", 1.2),
                ("after_kill", ABSOLUTE, 20e6),
            )
        ),
        reasons=(
            # Read from the code: src/shared_source.cpp.
            Reason(
                "A wait for several shared events is kept by a thread of the library, which owns the slots. So a wait "
                "that queues takes two changes of threads more than poll() does (decision 64).",
                ("time",), where={"work": "any_of_8"}, contestant="tocsin_shared",
            ),
        ),
    ),
    "python_calls": Knowledge(
        targets=(
            *(
                Target("time", ABSOLUTE, limit, "median", cases(operation=operations))
                for operations, limit in (
                    ("create", 300),
                    ("is_set|set|set_clear|wait_set|wait_unset", 100),
                    ("lock|rlock|semaphore|condition|queue", 200),  # two operations
                )
            ),
            Target("time", "threading", 1.0, "median"),
        ),
    ),
    "python_ping_pong": Knowledge(targets=(Target("trip", "threading", 0.5, "median"),)),
    "python_dialogue": Knowledge(targets=(Target("trip", "threading", 1.0, "median"),)),
    "python_broadcast": Knowledge(
        targets=(
            Target("held", ABSOLUTE, 0.3e6, "median"),
            Target("last", "threading", 0.6, "median", cases(threads="1000")),
            Target("last", "threading", 1.0, "median"),
        ),
    ),
    "python_contended": Knowledge(targets=(Target("time", "threading", 1.0, "median"),)),
    "python_busy_lock": Knowledge(targets=(Target("wait", "threading", 1.0, "median"),)),
    "python_many": Knowledge(targets=(Target("to_one", ABSOLUTE, 1.2),)),
    "python_coroutine": Knowledge(targets=(Target("trip", "threading", 1.0, "median"),)),
    "python_memory": Knowledge(
        targets=(
            Target("bytes", ABSOLUTE, 64, where=cases(what="event")),
            Target("bytes", ABSOLUTE, 1024, where=cases(what="waiting_task")),
            Target("descriptors", ABSOLUTE, 1),
        ),
    ),
    "python_import": Knowledge(targets=(Target("time", ABSOLUTE, 5e6, "median"),)),
}  # fmt: skip

NOTHING = Knowledge()


def known(scenario: str) -> Knowledge:
    return KNOWN.get(scenario, NOTHING)


def reason_for(loss: Loss) -> str | None:
    """None: nobody has looked into it."""
    return next((one.text for one in known(loss.scenario).reasons if one.explains(loss)), None)


def questions() -> Iterator[tuple[str, Question]]:
    """Each with the name of its scenario."""
    return ((name, question) for name, one in KNOWN.items() for question in one.questions)

# SPDX-License-Identifier: Apache-2.0
"""Defects of other libraries that the lab reproduces, those that it only tells of, and what a run found, as types.

The texts are ours; `sources` says where a defect was reported. A reproduction is a program of lab/defects/. It ends on
its own, with a wrong or a late result. There is no program that leaves other software hanging, deadlocked or crashed:
such a defect is told in words (`told`), and tocsin's program does the same job.
"""

from dataclasses import dataclass, field

from tocsin_lab.records import Machine, Project

FORMAT = 1


@dataclass(frozen=True)
class Defect:
    id: str
    peer: str
    title: str
    cause: str
    load: str  # what one try does
    tries: str  # the plural noun for what is counted as a try
    program: str | None  # of the peer, in lab/defects/; None: the defect is told in words
    ours: str | None  # tocsin's program, if it has a counterpart
    counterpart: str  # the type of tocsin, or why there is none
    sources: tuple[str, ...]
    before: str  # what we saw on other days, by other programs, and in which versions
    needs: str = ""  # what must be installed to build the program

    @property
    def told(self) -> bool:
        """Whether the peer's side is told in words, because its program would not end on its own."""
        return self.program is None


DEFECTS = (
    Defect(
        id="std-semaphore",
        peer="libstdc++ std::counting_semaphore",
        title="acquire() sleeps although a permit is free",
        cause="A thread that is about to sleep in acquire() saw the count at 1, then lost the permit to another "
        "thread. That thread's release() takes the count from 0 to 1 and wakes nobody, since nobody sleeps yet. The "
        "first thread then sleeps on the old count of 1, and later releases see a count above 0 and stay silent.",
        load="Two threads acquire and release one permit in phases. A watcher sees no phase for 0.5 s, proves that a "
        "thread sleeps, takes the permit that the thread waits for, and gives it back, which wakes the thread.",
        tries="phases",
        program="semaphore_sleeps.cpp",
        ours="semaphore_sleeps.cpp",
        counterpart="counting_semaphore",
        sources=("GCC 104928", "GCC 98033", "arangodb/arangodb#16642", "arangodb/arangodb#16643",
                 "randombit/botan#3207", "pytorch/pytorch#177884"),
        before="7 times in 2.76 million phases (12.2); once in 0.90 million (14.2)",
    ),
    Defect(
        id="multiprocessing",
        peer="CPython multiprocessing",
        title="Event.set() and Condition.notify_all() did not return after a waiter had been killed",
        cause="The notifier waits until each sleeper that it counted has confirmed its waking, and a killed sleeper "
        "stays counted.",
        load="",
        tries="killed waiters",
        program=None,
        ours=None,
        counterpart="tocsin's shared events: tests kill a waiter after each of its instructions, and each set() "
        "returns.",
        sources=("python/cpython#75158",),
        before="12 of 12 times, with 3.11.7, 3.12.1 and 3.13.0",
    ),
    Defect(
        id="glibc-condition",
        peer="glibc process-shared pthread_cond_t",
        title="A signal was spent on a waiter that had been killed",
        cause="A killed waiter stays in its group's count. So a later signal is counted for it, and a live waiter sleeps "
        "on.",
        load="",
        tries="rounds",
        program=None,
        ours=None,
        counterpart="tocsin has no condition variable between processes.",
        sources=("boostorg/interprocess#109", "boostorg/interprocess#65"),
        before="11 of 20 rounds with 2.36; 3 of 5 with 2.41",
    ),
    Defect(
        id="threading-handler",
        peer="CPython threading.Event",
        title="set() in a signal handler did not return",
        cause="set() and clear() take a lock that one thread can't take twice, and the handler runs in the thread that "
        "holds it.",
        load="A thread sets and resets an event in a loop. Every 0.1 ms, a timer's signal runs a handler that sets the "
        "same event.",
        tries="signals",
        program=None,
        ours="set_in_handler.cpp",
        counterpart="manual_reset_event",
        sources=("python/cpython#126434 (the same in multiprocessing)",),
        before="at 9 of 15 signals, with 3.11.7",
    ),
    Defect(
        id="rsevents-time-out",
        peer="rsevents ManualResetEvent (Rust)",
        title="A wait that times out erases a set()",
        cause="set() has two steps. A wait whose time ends between them clears the whole state word, and the set with "
        "it, though nobody has reset the event.",
        load="A timed wait meets one set(), then the event must be set.",
        tries="races",
        program="rsevents_time_out.cpp",
        ours="rsevents_time_out.cpp",
        counterpart="manual_reset_event",
        sources=("no report known to us",),
        before="383, 346 and 260 times in 60,000 races",
        needs="cargo 1.71 or newer: ./dev lab defects --all",
    ),
    Defect(
        id="winpr-auto-reset",
        peer="WinPR",
        title="An auto-reset event satisfies every wait",
        cause="A wait only polls the event's descriptor, and nothing resets an auto-reset event.",
        load="An auto-reset event is set once and waited for twice, for no time. The second wait must time out.",
        tries="events",
        program="winpr_auto_reset.cpp",
        ours="winpr_auto_reset.cpp",
        counterpart="auto_reset_event",
        sources=("FreeRDP/FreeRDP#1910", "FreeRDP/FreeRDP#1869"),
        before="every time, with 2.11.7",
        needs="libwinpr2-dev: ./dev lab defects --all",
    ),
    Defect(
        id="atomic-bystanders",
        peer="libstdc++ std::atomic<uint64_t>::wait",
        title="Threads that wait on other atomics are woken",
        cause="An atomic that is not 4 bytes wide waits on one of 16 shared counters, chosen by its address, and a "
        "notify_one() wakes all threads of that counter. Words aligned to cache lines all share one counter.",
        load="64 threads wait on 64 words, each on a cache line of its own. A 65th word, on which nobody waits, is "
        "notified. What is counted is each time that one of the 64 threads runs.",
        tries="notifications",
        program="atomic_bystanders.cpp",
        ours="atomic_bystanders.cpp",
        counterpart="wait_until_changed and wake_by_address_one",
        sources=("libstdc++'s source",),
        before="44,248 context switches in 1,000 notifications (12.2)",
    ),
    Defect(
        id="libcxx-idle-wait",
        peer="libc++ std::atomic::wait",
        title="A thread that waits without a deadline wakes every two seconds",
        cause="wait() sleeps in the kernel for 2 s at most, then looks again. So idle threads keep a processor from "
        "resting, and a lost wake-up would look like a delay.",
        load="16 threads wait on 16 words, and nobody changes a word. What is counted is each time that one of these "
        "threads runs.",
        tries="waits",
        program="idle_wait_libcxx.cpp",
        ours="idle_wait.cpp",
        counterpart="wait_until_changed",
        sources=("llvm/llvm-project#57677",),
        before="in its source only",
        needs="clang 19 and libc++: ./dev lab defects --all",
    ),
    Defect(
        id="windows-atomic-wait",
        peer="libstdc++ std::atomic::wait of MinGW-w64",
        title="A thread slept on although the value had changed",
        cause="For Windows, libstdc++ uses no futex. A wait compares the value, then locks a mutex and sleeps on a "
        "condition variable. notify_one() does not lock this mutex, so a notification between these two steps wakes "
        "nobody.",
        load="Four pairs of threads pass turns to and fro: each thread changes a word, notifies, and waits for the "
        "next change. A watcher looks whether a thread sleeps although its turn has come.",
        tries="turns",
        program=None,
        ours="turns.cpp",
        counterpart="wait_until_changed and wake_by_address_one",
        sources=("libstdc++'s source", "randombit/botan#3207"),
        before="in 20 of 79 runs, with GCC 12.2 under Wine 8.0",
    ),
)  # fmt: skip
BY_ID = {one.id: one for one in DEFECTS}


@dataclass(frozen=True)
class LeftOut:
    """Reproduced by hand on other days, but not by this command."""

    peer: str
    defect: str
    seen: str
    reason: str
    sources: tuple[str, ...] = ()


LEFT_OUT = (
    LeftOut("pevents (d6afcbc)", "A wait for all consumes its members one after the other, and keeps them when the "
            "time is over. It can also end although its members were never set at the same time.", "every time",
            "no package in Debian", ("neosmart/pevents#9", "neosmart/pevents#20")),
    LeftOut("pevents (d6afcbc)", "A signal that meets a time-out is lost.", "86 of 4,002 tokens",
            "no package in Debian", ("neosmart/pevents#2",)),
    LeftOut("folly SaturatingSemaphore (ff98381)", "After a missed pulse the waiter never sleeps again: it calls the "
            "kernel in a loop.", "1 of 3 runs: 3.0 million calls a second", "no package in Debian 12"),
    LeftOut("Boost.Sync auto_reset_event (15b4079)", "Posts are counted in a field of ten bits, which can overflow "
            "while no waiter runs.", "1,500 posts to 1,500 waiters released 476",
            "not part of Boost's releases; needs root"),
    LeftOut("marl Event::any (b8406ab)", "A signal of an event that is still signalled does not reach the event "
            "derived from it.", "every time", "no package in Debian"),
    LeftOut("nsync nsync_wait_n (5b420ef)", "The waker reads the waiter's record after the waiter may have freed it.",
            "AddressSanitizer reports it within 30 s", "needs nsync built with AddressSanitizer; Debian's is not"),
    LeftOut("pevents (d6afcbc)", "A condition variable is signalled after the unlock, when its event may be gone.",
            "ThreadSanitizer reports it", "no package in Debian"),
    LeftOut("Abseil Notification (926f1d0)", "Each woken thread takes the same mutex in turn, so the last of many is "
            "late.", "the last of 1,000 after 27.6 ms", "a cost, not an error: the report's scenario broadcast has it"),
)  # fmt: skip


@dataclass(frozen=True)
class Read:
    """Found in source or in reports; never run here."""

    peer: str
    defect: str
    sources: tuple[str, ...]


READ = (
    Read("glibc condition variable, one process", "A signal wakes nobody though somebody waits. Which release mended "
         "it we don't know.", ("glibc 25847", "MinaProtocol/mina#18654", "oxcaml/oxcaml#787", "ocurrent/ocaml-ci#963")),
    Read("libc++ atomics", "Timed waits polled, with sleeps of up to 64 ms, until 2025-12.",
         ("llvm/llvm-project#123855", "llvm/llvm-project#172214 (mends it)")),
    Read("libc++ semaphore and atomics", "Lost wake-ups, mended; memory orders that a proof tool found too weak.",
         ("llvm/llvm-project#46357", "llvm/llvm-project#77659", "llvm/llvm-project#109290")),
    Read("Microsoft's STL", "try_acquire_for(800us) returns false after 0 to 200 ns: the time is rounded down to whole "
         "milliseconds.", ("microsoft/STL#5574",)),
    Read("Windows' SRWLOCK under Microsoft's STL", "A shared request may be granted exclusively, and readers deadlock.",
         ("microsoft/STL#4448",)),
    Read("the C++ standard", "std::atomic::wait has no time-out and does not return the value. A notify after the "
         "waiter may have freed the atomic is undefined.", ("ogiroux/atomic_wait#4", "cplusplus/papers#1309",
                                                            "cplusplus/papers#1279", "NVIDIA/stdexec#2051")),
    Read("WinPR", "WaitOnAddress always returns TRUE. A wait for all is not atomic.", ("its source",)),
    Read("Boost.Sync", "A relative wait begins its whole time again after each interruption.", ("its source",)),
    Read("macOS condition variable", "A race, for which .NET has a workaround.", ("dotnet/runtime#82709",)),
    Read("Chromium on macOS", "Two waits for several events can both return for one signal of an auto-reset event (by "
         "reasoning).", ("its source",)),
    Read("event-listener (Rust)", "Two early returns lost notifications. loom found them; mended 2024-05.",
         ("smol-rs/event-listener#138", "smol-rs/event-listener#139")),
    Read("Wine's esync and fsync", "Pulses are missed, and a wait for all is visible while it takes its members.",
         ("zfigura/wine#10", "zfigura/wine#11")),
    Read("io_uring's futex wait, Linux 6.17", "Private waits lose wakes after the kernel's hash table has grown.",
         ("lalinsky/zio#402", "lalinsky/zio#503")),
)  # fmt: skip

NOT_FOUND = (
    "glibc's condition variable within one process (glibc 25847): not seen in 200 s with 6 threads.",
    "Boost.Interprocess 1.74: a single killed waiter did no harm in one round. One round proves nothing: the condition "
    "variable of glibc below it fails from the second round on.",
)


# What a run found


@dataclass(frozen=True)
class Trial:
    """What a program reports."""

    seen: int
    tries: int
    seconds: float
    version: str = ""
    note: str = ""


@dataclass(frozen=True)
class Side:
    """One of three: a trial; a failure, if the program broke or gave no answer; why the program did not run."""

    trial: Trial | None = None
    failure: str | None = None
    absent: str | None = None


@dataclass(frozen=True)
class Row:
    defect: str
    peer: Side
    ours: Side

    @property
    def ours_fails(self) -> bool:
        """tocsin shows the defect, or its program broke. What a peer does never counts."""
        return self.ours.failure is not None or (self.ours.trial is not None and self.ours.trial.seen > 0)


@dataclass(kw_only=True)
class Findings:
    """What a run of the reproductions found, and where."""

    format: int = FORMAT
    started: str
    finished: str
    interrupted: bool
    budget_s: float
    project: Project
    machine: Machine
    compiler: str = ""
    rows: list[Row] = field(default_factory=list)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the Promela models with Spin: every model must hold, every mutant and witness must fail.

A case is a model with its bounds. A mutant breaks one step of the protocol; it must violate the property
it is listed with. A witness asserts that a race of interest never happens; it must turn out wrong, or the
bounds are too small to show anything. Exit code: 0 if all came out so, 1 if not, 2 if Spin or a C compiler
is missing.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).resolve().parent.parent / "proofs" / "promela"
MEMORY_LIMIT = 4096  # megabytes
TIME_LIMIT = 900     # seconds, for one case
DEPTH = 200_000
STUCK = "C8"  # an invalid end state: a process is blocked where none may be

PLAIN, TIMED, STOPPABLE, BOTH, POLLING = 1, 2, 4, 8, 16
EVERY_KIND = PLAIN + TIMED + STOPPABLE + BOTH + POLLING


@dataclass(frozen=True)
class Case:
    """One run of Spin. `violates` names the property that must fail; None: all must hold."""

    model: str
    name: str
    bounds: dict
    violates: str | None = None
    large: bool = False  # not for a bounded run

    def definitions(self):
        return [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in self.bounds.items()]


def event_cases():
    for auto, reset in ((1, "auto"), (0, "manual")):
        for name, bounds in (
                ("plain and timed", {"KINDS": PLAIN + TIMED}),
                ("every kind of wait", {"KINDS": EVERY_KIND}),
                ("every kind of wait, one setter", {"KINDS": EVERY_KIND, "SETTERS": 1}),
                ("three waiters", {"KINDS": PLAIN + TIMED, "WAITERS": 3}),
                ("three waiters, relay of two", {"KINDS": PLAIN + TIMED, "WAITERS": 3, "SETTERS": 1, "SETS": 2,
                                                 "WIDTH": 2}),
                ("three waiters, stop", {"KINDS": STOPPABLE, "WAITERS": 3, "SETTERS": 1}),
                ("two waits each, a reset", {"KINDS": PLAIN + TIMED, "WAITS": 2, "RESETS": 1}),
                ("two waits, stop, a reset", {"KINDS": BOTH, "WAITS": 2, "SETTERS": 1, "SETS": 2, "RESETS": 1}),
                ("lock as a futex word", {"KINDS": PLAIN + TIMED, "FUTEX_LOCK": None}),
        ):
            small = name in ("plain and timed", "every kind of wait, one setter", "three waiters, relay of two")
            yield Case("event_lot", f"{reset}: {name}", {"AUTO": auto, **bounds}, large=not small)


def event_mutants():
    manual = {"AUTO": 0}
    for name, violates, bounds in (
            ("SIGNAL_WITHOUT_DEQUEUE", "C2", {"KINDS": PLAIN}),
            ("TAKE_WITHOUT_CLAIM", "C3", {"KINDS": TIMED}),
            ("TAKE_ALL_WITHOUT_CLAIMS", "C3", {"KINDS": TIMED, **manual}),
            ("TIMEOUT_IGNORES_CLAIM", "C3", {"KINDS": TIMED}),
            ("STOP_IGNORES_CLAIM", "C3", {"KINDS": STOPPABLE}),
            ("LOSER_DOES_NOT_WAIT", "C6", {"KINDS": TIMED}),
            ("LEAVES_WITHOUT_DELISTING", "C6", {"KINDS": TIMED}),
            ("CALLBACK_NOT_AWAITED", "C6", {"KINDS": STOPPABLE}),
            ("TOKEN_DROPPED_WITH_DEAD_NODES", "C2", {"KINDS": TIMED}),
            ("SET_BEFORE_LOCK", "C5", {"KINDS": PLAIN, "WAITS": 2, "RESETS": 1, **manual}),
            ("GATE_TAKES_ONE", "C4", {"KINDS": PLAIN, **manual}),
            ("RELAY_DROPPED", "C1", {"KINDS": PLAIN, **manual}),
            ("NO_PARKED_RECHECK", "C1", {"KINDS": PLAIN}),
            ("APPEND_AFTER_UNLOCK", "C1", {"KINDS": PLAIN}),
            ("UNPARK_CLEARS_ALWAYS", "C1", {"KINDS": PLAIN + TIMED}),
            ("SLEEPING_STORED", "C1", {"KINDS": PLAIN}),
            ("FUTEX_SLEEPS_WITHOUT_LOOK", "C1", {"KINDS": PLAIN}),
            ("WAKE_BEFORE_RELEASE", "C1", {"KINDS": PLAIN}),
            ("NEXT_READ_AFTER_RELEASE", "C6", {"KINDS": PLAIN}),
            ("PARKED_CLEARED_AFTER_RELEASE", "C6", {"KINDS": PLAIN}),
            ("UNLOCK_WITHOUT_WAKE", "C8", {"KINDS": PLAIN, "FUTEX_LOCK": None}),
            ("LOCK_RETAKEN_AS_HELD", "C8", {"KINDS": PLAIN, "FUTEX_LOCK": None}),
    ):
        yield Case("event_lot", f"MUTANT_{name}", {f"MUTANT_{name}": None, "CONTRACT_ONLY": None, **bounds}, violates)
    # The contract survives this mutant, because the next set only takes the lock for nothing. The invariant fails.
    yield Case("event_lot", "MUTANT_PARKED_LEFT_ON", {"MUTANT_PARKED_LEFT_ON": None, "KINDS": PLAIN}, "C7")


def event_witnesses():
    for name, bounds in (
            ("TIMEOUT_LOSES", {"KINDS": TIMED}),
            ("STOP_LOSES", {"KINDS": STOPPABLE}),
            ("DEAD_NODE_DROPPED", {"KINDS": TIMED}),
            ("RELAY", {"KINDS": PLAIN, "AUTO": 0}),
            ("WAKE_IN_THE_NEXT_LIFE", {"KINDS": PLAIN, "WAITS": 2}),
            ("DESTROYED_DURING_SET", {"KINDS": PLAIN}),
            ("DESTROYED_BY_A_POLLER", {"KINDS": POLLING, "SETTERS": 1}),
    ):
        yield Case("event_lot", f"WITNESS_{name}", {f"WITNESS_{name}": None, **bounds}, "witness")


def all_cases():
    for buckets, where in ((1, "one bucket"), (2, "two buckets")):
        for name, bounds in (
                ("two waits for both", {}),
                ("one may time out", {"TIMED": 1, "SETS_A": 2, "WAITERS": 1}),
                ("one may time out, a thief", {"TIMED": 1, "WAITERS": 1, "THIEF": 2}),
                ("a single wait beside it", {"WAITERS": 1, "SINGLES": 1, "SETS_A": 2}),
                ("an observer", {"WAITERS": 1, "INITIAL": 1, "OBSERVER": 1, "SETS_A": 0, "SETS_B": 0}),
        ):
            yield Case("wait_all", f"{where}: {name}", {"BUCKETS": buckets, **bounds},
                       large=name == "two waits for both")


def all_mutants():
    one = {"WAITERS": 1}
    timed = {"WAITERS": 1, "TIMED": 1}
    ready = {"WAITERS": 1, "INITIAL": 1, "SETS_A": 0, "SETS_B": 0}
    for name, violates, bounds in (
            ("HOLDS_NOTHING", "C2", {**one, "THIEF": 1}),
            ("CLAIMS_BEFORE_ALL_ARE_HELD", "C1", {**one, "THIEF": 1}),
            ("TAKES_WITHOUT_CLAIM", "C3", timed),
            ("LOCKS_IN_ANY_ORDER", "C8", {}),
            ("USED_WITHOUT_ACQUIRE", "C6", timed),
            ("RETURNS_WHILE_USED", "C6", timed),
            ("OFFER_DROPPED", "C2", {**one, "THIEF": 1}),
            ("PARKED_TURNED_OFF", "C1", {**one, "THIEF": 2}),
            ("NO_LOOK_AFTER_SHOW", "C1", one),
            ("NO_LOOK_AFTER_QUEUEING", "C1", ready),
            ("QUEUES_THOUGH_COMMITTED", "C6", {**one, "SETS_B": 2}),
            ("TAKES_WHAT_IS_HELD", "C2", {**one, "THIEF": 1}),
            ("TELLS_WHAT_IS_HELD", "C4", {**ready, "OBSERVER": 1}),
    ):
        yield Case("wait_all", f"MUTANT_{name}", {f"MUTANT_{name}": None, "CONTRACT_ONLY": None, **bounds}, violates)
    yield Case("wait_all", "WITNESS_TAKEN_BETWEEN_TWO_LOOKS",
               {"WITNESS_TAKEN_BETWEEN_TWO_LOOKS": None, **ready, "OBSERVER": 1}, "witness")


AT_ONCE, FOR_A_TIME, FOR_EVER = 0, 1, 2


def commit_cases():
    for name, bounds in (
            ("three, one flush fails", {"FAILURES": 1}),
            ("three, two with deadlines, one flush fails", {"TIMED": 2, "FAILURES": 1}),
            ("three, groups of two, one with a deadline", {"LARGEST": 2, "TIMED": 1}),
            ("three, one by one, two with deadlines", {"LARGEST": 1, "TIMED": 2}),
            ("three, gathering, groups of two, deadlines", {"LARGEST": 2, "TIMED": 2, "GATHERING": FOR_A_TIME}),
            ("four, gathering for ever", {"SUBMITTERS": 4, "GATHERING": FOR_EVER}),
            ("four, gathering for ever, groups of two", {"SUBMITTERS": 4, "LARGEST": 2, "GATHERING": FOR_EVER}),
            ("two, two rounds, gathering, deadlines", {"SUBMITTERS": 2, "ROUNDS": 2, "TIMED": 2,
                                                       "GATHERING": FOR_A_TIME}),
            ("three, two rounds, one with a deadline", {"ROUNDS": 2, "TIMED": 1, "FAILURES": 1}),
            ("three, two rounds, groups of two", {"ROUNDS": 2, "LARGEST": 2, "TIMED": 1, "GATHERING": FOR_A_TIME}),
            ("four, two with deadlines", {"SUBMITTERS": 4, "TIMED": 2}),
            ("four, gathering, one with a deadline", {"SUBMITTERS": 4, "TIMED": 1, "GATHERING": FOR_A_TIME}),
    ):
        yield Case("group_commit", name, bounds, large="two rounds, " in name or "four, two" in name
                   or name == "four, gathering, one with a deadline")


def commit_mutants():
    two = {"SUBMITTERS": 2}
    four = {"SUBMITTERS": 4}
    full = {"SUBMITTERS": 2, "GATHERING": FOR_EVER}
    stays = {"MEMORY_STAYS": None}
    for name, violates, bounds in (
            ("LEADS_BESIDE_ANOTHER", "C4", two),
            ("LEAD_GIVEN_UP_IN_A_SECOND_STEP", "C1", two),
            ("LEAD_KEPT", "C1", {**two, "TIMED": 1, "GATHERING": FOR_A_TIME}),
            ("TAKES_WITHOUT_CLAIM", "C2", {**stays, "TIMED": 1, "LARGEST": 2}),
            ("TAKES_ALL_WITHOUT_CLAIMS", "C2", {**stays, "TIMED": 1}),
            ("LARGEST_IGNORED", "C5", {"LARGEST": 1}),
            ("WITHDRAWS_WITHOUT_CLAIM", "C2", {**stays, "TIMED": 1}),
            ("WITHDRAWS_WITHOUT_UNLINKING", "C6", {**two, "TIMED": 1}),
            ("GATHERER_LEFT_BEHIND", "C6", {**two, "GATHERING": FOR_A_TIME}),
            ("FULL_WITHOUT_CLAIM", "C6", {**two, "GATHERING": FOR_A_TIME}),
            ("GATHERS_WITHOUT_LOOKING", "C1", full),
            ("LEADER_NOT_COUNTED", "C1", full),
            ("RELEASED_BEFORE_THE_END", "C2", stays),
            ("RESULT_AFTER_RELEASE", "C3", {**stays, "FAILURES": 1}),
            ("SUCCESSOR_FORGOTTEN", "C1", four),
            ("SUCCESSOR_IN_BOTH_PLACES", "C5", four),
            ("RELAY_DROPPED", "C1", {}),
            ("NEXT_READ_AFTER_RELEASE", "C6", {}),
    ):
        yield Case("group_commit", f"MUTANT_{name}", {f"MUTANT_{name}": None, "CONTRACT_ONLY": None, **bounds}, violates)


def commit_witnesses():
    for name, bounds in (
            ("TIMEOUT_LOSES", {"TIMED": 1}),
            ("WITHDRAWN_IS_DROPPED", {"TIMED": 1}),
            ("LEADER_WITHDRAWS", {"TIMED": 1, "GATHERING": FOR_A_TIME}),
            ("GROUP_BECAME_FULL", {"GATHERING": FOR_A_TIME}),
            ("SUCCESSOR_BEHIND_THE_GROUP", {"SUBMITTERS": 4}),
    ):
        yield Case("group_commit", f"WITNESS_{name}", {f"WITNESS_{name}": None, **bounds}, "witness")


CASES = [*event_cases(), *event_mutants(), *event_witnesses(), *all_cases(), *all_mutants(), *commit_cases(),
         *commit_mutants(), *commit_witnesses()]


@dataclass
class Outcome:
    violated: str | None  # a property, or None if all hold
    states: int
    megabytes: float
    seconds: float


class Broken(Exception):
    """The check itself did not work, so nothing is known about the case."""


def run(command, directory, limit=TIME_LIMIT):
    try:
        return subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        raise Broken(f"not finished after {limit} s") from error


def number(pattern, text):
    found = re.search(pattern, text)
    if found is None:
        raise Broken(f"no '{pattern}' in what Spin printed:\n{text[-2000:]}")
    return float(found[1])


def violated_property(text):
    """The first term of an assertion is the number of its property; 9 is a witness."""
    if "pan:1: invalid end state" in text:
        return STUCK
    found = re.search(r"pan:1: assertion violated \(*(\d)&&", text)
    if found is None:
        raise Broken(text[-2000:])
    return "witness" if found[1] == "9" else f"C{found[1]}"


def check(case, compiler):
    model = MODELS / f"{case.model}.pml"
    with tempfile.TemporaryDirectory() as directory:
        made = run(["spin", *case.definitions(), "-a", model], directory)
        if made.returncode != 0:
            raise Broken(made.stdout)
        optimize = "-O2" if case.violates is None else "-O0"  # a mutant fails too early for -O2 to pay
        made = run([compiler, optimize, "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_LIMIT}",
                    "-o", "pan", "pan.c"], directory)
        if made.returncode != 0:
            raise Broken(made.stdout)
        begin = time.monotonic()
        text = run(["./pan", f"-m{DEPTH}", "-w22"], directory).stdout
        seconds = time.monotonic() - begin
        errors = number(r"errors: (\d+)", text)
        if "max search depth too small" in text or (errors == 0 and "Search not completed" in text):
            raise Broken(f"the search was not exhaustive:\n{text[-2000:]}")
        violated = violated_property(text) if errors else None
        return Outcome(violated, int(number(r"(\d+) states, stored", text)),
                       number(r"([\d.]+)\s+total actual memory", text), seconds)


def verdict(case, outcome):
    if outcome.violated is None:
        return "holds" if case.violates is None else "SURVIVES"
    found = "seen" if outcome.violated == "witness" else f"fails {outcome.violated}"
    return found if outcome.violated == case.violates else f"{found.upper()}, expected {case.violates or 'to hold'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="?", default="", help="run the cases whose model or name contains this")
    parser.add_argument("--bounded", action="store_true", help="without the large cases")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help=f"cases at once, each with up to {MEMORY_LIMIT} MB of memory; %(default)s")
    given = parser.parse_args()
    cases = [case for case in CASES
             if given.only in f"{case.model} {case.name}" and not (given.bounded and case.large)]

    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    for found, what in ((shutil.which("spin"), "Spin is not installed (in Debian: apt-get install spin)"),
                        (compiler, "no C compiler is installed (in Debian: apt-get install gcc)")):
        if not found:
            print(f"spin_check: {what}; no model was checked", file=sys.stderr)
            return 2
    if not cases:
        print("spin_check: no such case", file=sys.stderr)
        return 2

    def attempt(case):
        try:
            return check(case, compiler)
        except Broken as error:
            return error

    wrong = 0
    begin = time.monotonic()
    print(f"{'model':<12} {'case':<42} {'outcome':<10} {'states':>11} {'MB':>6} {'s':>6}")
    with ThreadPoolExecutor(given.jobs) as pool:
        for case, outcome in zip(cases, pool.map(attempt, cases)):
            if isinstance(outcome, Broken):
                wrong += 1
                print(f"{case.model:<12} {case.name:<42} NOT CHECKED: {outcome}", flush=True)
                continue
            wrong += outcome.violated != case.violates
            print(f"{case.model:<12} {case.name:<42} {verdict(case, outcome):<10} {outcome.states:>11,} "
                  f"{outcome.megabytes:>6.0f} {outcome.seconds:>6.1f}", flush=True)
    print(f"{len(cases) - wrong} passed, {wrong} failed, in {time.monotonic() - begin:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

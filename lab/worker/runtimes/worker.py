# SPDX-License-Identifier: Apache-2.0
"""A worker for the runtimes of other languages. It speaks the lab's protocol (lab/README.md); one small program for
each language does the measuring, in a process of its own.

    PROGRAM SCENARIO BUDGET_MS [PARAMETER=VALUE ...]

The program prepares, writes `ready` and waits for a line; measures; writes `done` and waits for a line. Then it writes
what it found, one line for each:

    batch METRIC COUNT NS NS ...    each NS is the time of COUNT operations
    value METRIC NUMBER
    operations N
    note TEXT
    wrong TEXT

This worker reads the CPU time and the switches of the program's threads at `ready` and at `done`. If the program is
killed, the processes that it has started must end by themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

SUB_BITS = 8

# For each language: the label, what its contestant is made of, and the kinds of case it takes part in.
PAIR, RESET, PONG, CROWD = "auto_set_wait", "manual_set_reset", "ping_pong", "broadcast"
ITEMS, SELECT = "channels", "select"
BETWEEN, ANY = "between_processes", "any_of_8"
LANGUAGES: dict[str, tuple[str, str, set[str]]] = {
    "python": (
        "Python Event",
        "threading.Event, between processes multiprocessing.Event; cleared by its one waiter",
        {RESET, PONG, CROWD, BETWEEN},
    ),
    "go": (
        "Go channel",
        "a channel with room for one as auto event; to wake all, close()",
        {PAIR, PONG, CROWD, ITEMS, SELECT},
    ),
    "java": ("Java LockSupport", "a volatile flag, park() and unpark(); to wake all, unpark() of each", {PONG, CROWD}),
    "mono": (".NET events (Mono)", "AutoResetEvent; ManualResetEventSlim", {PAIR, RESET, PONG, CROWD}),
    "iceoryx2": ("iceoryx2 event", "a notifier and a listener of an event service", {BETWEEN}),
    "wine": ("Named events (Wine)", "CreateEvent with a name; WaitForMultipleObjects for several", {BETWEEN, ANY}),
}
LIMITS = "threads are the runtime's, and not pinned; CPU time includes the runtime's; sleep is not verified"
LIMITS_BETWEEN = "; between processes, they are pinned, and CPU time and switches are those of the first process alone"

CASES: list[tuple[str, dict[str, str], str, str]] = [  # scenario, parameters, tier, the kind of case in LANGUAGES
    ("pairs", {"operation": "auto_set_wait"}, "quick", PAIR),
    ("pairs", {"operation": "manual_set_reset"}, "quick", RESET),
    ("ping_pong", {"cores": "2"}, "quick", PONG),
    ("broadcast", {"threads": "100"}, "quick", CROWD),
    ("broadcast", {"threads": "1000"}, "quick", CROWD),
    ("broadcast", {"threads": "5000"}, "standard", CROWD),
    *(
        ("channels", {"capacity": capacity, "senders": threads, "receivers": threads}, tier, ITEMS)
        for capacity, tier in (("1024", "quick"), ("1", "standard"), ("0", "standard"))
        for threads in ("1", "4")
    ),
    *(
        ("select", {"what": what, "order": order}, tier, SELECT)
        for what in ("ready", "comes", "streams")
        for order, tier in (("turn", "quick"), ("random", "standard"))
    ),
    *(
        ("between_processes", {"work": work}, "quick", BETWEEN)
        for work in ("set_take", "look", "ping_pong_2_cores", "ping_pong_1_core")
    ),
    ("between_processes", {"work": "any_of_8"}, "quick", ANY),
]


def refusal(language: str, parameters: dict[str, str], need: str) -> str:
    """Why the language takes no part in the case, or an empty string."""
    if need not in LANGUAGES[language][2]:
        return "has no equivalent"
    takes_two = parameters.get("cores") == "2" or parameters.get("work") == "ping_pong_2_cores"
    return "needs two cores" if takes_two and len(os.sched_getaffinity(0)) < 2 else ""


def describe(programs: dict[str, list[str]]) -> dict[str, Any]:
    contestants = [
        {
            "name": f"{name}_runtime",
            "label": LANGUAGES[name][0],
            "role": "reference",
            "about": LANGUAGES[name][1],
            "limits": LIMITS + (LIMITS_BETWEEN if BETWEEN in LANGUAGES[name][2] else ""),
            "tier": "full",
        }
        for name in programs
    ]
    scenarios: dict[str, dict[str, Any]] = {}
    for scenario, parameters, tier, need in CASES:
        reasons = {f"{name}_runtime": refusal(name, parameters, need) for name in programs}
        refusals = {name: reason for name, reason in reasons.items() if reason}
        known = scenarios.setdefault(scenario, {"name": scenario, "cases": []})
        known["cases"].append({"parameters": parameters, "tier": tier, "refusals": refusals})
    build = {"compiler": "by language", "flags": "", "standard_library": ", ".join(programs)}
    return {"protocol": 1, "build": build, "contestants": contestants, "scenarios": list(scenarios.values())}


def threads_of(process: int) -> tuple[int, int]:
    """Nanoseconds of CPU time and context switches of all threads that are alive."""
    cpu = switches = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            cpu += int((task / "schedstat").read_text().split()[0])
            for line in (task / "status").read_text().splitlines():
                if "ctxt_switches" in line:
                    switches += int(line.split()[1])
        except OSError:  # the thread has just ended
            continue
    return cpu, switches


def bucket(picoseconds: int) -> int:
    if picoseconds < 1 << SUB_BITS:
        return picoseconds
    octave = picoseconds.bit_length() - SUB_BITS - 1
    return ((octave + 1) << SUB_BITS) + (picoseconds >> octave) - (1 << SUB_BITS)


def distribution(values: list[int]) -> dict[str, Any]:
    counts: dict[int, int] = {}
    for value in values:
        counts[bucket(value)] = counts.get(bucket(value), 0) + 1
    return {
        "unit": "ps",
        "sub_bits": SUB_BITS,
        "total": len(values),
        "least": min(values, default=0),
        "most": max(values, default=0),
        "sum": sum(values),
        "counts": sorted(counts.items()),
    }


def measure(command: list[str], watchdog_s: float) -> dict[str, Any]:
    """What the program measured, as the fields of a sample."""
    # Its complaints go to a file, because a server of Wine, which stays for a while, would keep a pipe open.
    with tempfile.TemporaryFile("w+") as complaints:
        try:
            return measure_with(command, watchdog_s, complaints)
        finally:
            complaints.seek(0)
            sys.stderr.write(complaints.read())


def measure_with(command: list[str], watchdog_s: float, complaints: IO[str]) -> dict[str, Any]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True)
    killed = threading.Event()

    def kill() -> None:
        killed.set()
        process.kill()

    def give_up(what: str) -> NoReturn:
        watchdog.cancel()
        with contextlib.suppress(BrokenPipeError), process:  # closes the pipes and waits
            process.kill()
        print(f"{command[0]} {what}" + (f" within {watchdog_s:g} s" if killed.is_set() else ""), file=sys.stderr)
        sys.exit(3 if killed.is_set() else 1)

    watchdog = threading.Timer(watchdog_s, kill)
    watchdog.start()
    assert process.stdin and process.stdout
    readings = []
    for expected in ("ready", "done"):
        if process.stdout.readline().strip() != expected:
            give_up(f"did not reach `{expected}`")
        try:
            readings.append(threads_of(process.pid))
            process.stdin.write("\n")
            process.stdin.flush()
        except OSError:  # it has just ended
            give_up(f"ended at `{expected}`")
    sample: dict[str, Any] = {"operations": 1, "values": {}, "distributions": {}, "notes": [], "failures": []}
    for line in process.stdout:
        kind, *words = line.split()
        if kind == "batch":
            count = int(words[1])
            sample["distributions"][words[0]] = distribution([int(one) * 1000 // count for one in words[2:]])
        elif kind == "value":
            sample["values"][words[0]] = float(words[1])
        elif kind == "operations":
            sample["operations"] = int(words[0])
        elif kind == "note":
            sample["notes"].append(" ".join(words))
        elif kind == "wrong":
            sample["failures"].append(" ".join(words))
    if process.wait() != 0:
        give_up("did not end well")
    watchdog.cancel()
    process.stdin.close()
    process.stdout.close()
    (cpu, switches), (cpu_after, switches_after) = readings
    sample["values"]["cpu"] = (cpu_after - cpu) / sample["operations"]
    sample["values"]["switches"] = (switches_after - switches) / sample["operations"]
    return sample


def serve(
    arguments: list[str],
    describe: Callable[[], dict[str, Any]],
    command_for: Callable[[str, str, dict[str, str]], list[str] | None],
) -> int:
    """Answers as the protocol says. `command_for` returns the program of a case and its first arguments."""
    if arguments == ["--list"]:
        print(json.dumps(describe()))
        return 0
    if len(arguments) < 3 or arguments[0] not in ("--check", "--run"):
        print("usage: --list, or --check or --run SCENARIO CONTESTANT [PARAMETER=VALUE ...]", file=sys.stderr)
        return 2
    scenario, contestant = arguments[1:3]
    given = dict(word.split("=", 1) for word in arguments[3:] if "=" in word)
    rest = iter([word for word in arguments[3:] if "=" not in word and word != "--count-syscalls"])
    options = dict(zip(rest, rest))
    budget_ms = float(options.get("--budget-ms", 100))
    command = command_for(scenario, contestant, given)
    if command is None:
        print(f"{contestant} has no such case of {scenario}", file=sys.stderr)
        return 2
    words = [f"{name}={value}" for name, value in given.items()]
    sample = measure([*command, f"{budget_ms:g}", *words], float(options.get("--watchdog-s", 120)))
    head = {"protocol": 1, "scenario": scenario, "contestant": contestant, "parameters": given}
    head |= {"seed": int(options.get("--seed", 1)), "budget_ms": budget_ms, "ok": not sample["failures"]}
    print(json.dumps({**head, **sample}))
    return 0 if head["ok"] else 1


def main(programs: dict[str, list[str]], arguments: list[str]) -> int:
    def command_for(scenario: str, contestant: str, given: dict[str, str]) -> list[str] | None:
        language = contestant.removesuffix("_runtime")
        need = next((need for name, parameters, _, need in CASES if (name, parameters) == (scenario, given)), None)
        if language not in programs or need is None or refusal(language, given, need):
            return None
        return [*programs[language], scenario]

    return serve(arguments, lambda: describe(programs), command_for)

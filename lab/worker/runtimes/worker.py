# SPDX-License-Identifier: Apache-2.0
"""A worker for the runtimes of other languages. It speaks the lab's protocol (lab/README.md); one small program for
each language does the measuring, in a process of its own.

    PROGRAM SCENARIO BUDGET_MS [PARAMETER=VALUE ...]

The program prepares, writes `ready` and waits for a line; measures; writes `done` and waits for a line. Then it writes
what it found, one line for each:

    batch METRIC COUNT NS NS ...    each NS is the time of COUNT operations
    value METRIC NUMBER
    operations N
    wrong TEXT

This worker reads the CPU time and the switches of the program's threads at `ready` and at `done`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
LIMITS = "threads are the runtime's, none is pinned except between processes; CPU time includes the runtime's; sleep is not verified"

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


def describe(programs: dict[str, list[str]]) -> dict[str, Any]:
    contestants = [
        {
            "name": f"{name}_runtime",
            "label": LANGUAGES[name][0],
            "role": "reference",
            "about": LANGUAGES[name][1],
            "limits": LIMITS,
            "tier": "full",
        }
        for name in programs
    ]
    scenarios: dict[str, dict[str, Any]] = {}
    for scenario, parameters, tier, need in CASES:
        refusals = {f"{name}_runtime": "has no equivalent" for name in programs if need not in LANGUAGES[name][2]}
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
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(watchdog_s, process.kill)
    watchdog.start()
    assert process.stdin and process.stdout
    readings = []
    for expected in ("ready", "done"):
        if process.stdout.readline().strip() != expected:
            watchdog.cancel()
            process.kill()
            sys.exit(f"{command[0]} did not reach `{expected}`")
        readings.append(threads_of(process.pid))
        process.stdin.write("\n")
        process.stdin.flush()
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
        elif kind == "wrong":
            sample["failures"].append(" ".join(words))
    process.wait()
    process.stdin.close()
    process.stdout.close()
    watchdog.cancel()
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
        return [*programs[language], scenario] if language in programs and need in LANGUAGES[language][2] else None

    return serve(arguments, lambda: describe(programs), command_for)

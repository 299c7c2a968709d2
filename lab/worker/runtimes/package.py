# SPDX-License-Identifier: Apache-2.0
"""A worker for the Python package (python/) alongside what else Python has. It speaks the lab's protocol, and
package_waits.py measures, in each interpreter that `./dev lab --python` has made ready."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import worker

WAITS = Path(__file__).with_name("package_waits.py")

CONTESTANTS: dict[str, tuple[str, str, str]] = {  # name: label, role, what it is made of
    "call": ("an empty call", "floor", "a method of str that has nothing to do"),
    "tocsin": ("tocsin", "ours", "the package's types; over several events, wait_any()"),
    "tocsin_wait_set": ("tocsin WaitSet", "variant", "a WaitSet in which the events are members"),
    "threading": ("threading", "peer", "its types, and queue.Queue; for a coroutine, run_in_executor(event.wait)"),
    "aiologic": ("aiologic", "peer", "aiologic.REvent"),
    "multiprocessing": ("multiprocessing", "peer", "its types, in one process"),
    "eventfd": ("os.eventfd", "peer", "a descriptor; epoll over several, add_reader() for a coroutine"),
    "asyncio": ("asyncio", "peer", "asyncio.Event, set by call_soon_threadsafe()"),
    "gevent": ("gevent", "reference", "gevent.event.Event between two greenlets of one thread"),
}
INSTALLED = ("aiologic", "gevent")  # those that may be missing

EVENTS = ("call", "tocsin", "threading", "aiologic", "multiprocessing", "gevent")
TYPES = ("tocsin", "threading")
CALLS = {
    **dict.fromkeys(("create", "is_set", "set", "set_clear", "wait_set", "wait_unset"), EVENTS),
    **dict.fromkeys(("lock", "rlock", "semaphore", "condition"), ("call", *TYPES, "multiprocessing")),
    "queue": ("call", *TYPES),
    "set_clear": (*EVENTS, "eventfd"),
}


def column(metric: str, label: str, unit: str = "ns", statistic: str = "median", judged: bool = True) -> dict[str, Any]:
    return {"metric": metric, "statistic": statistic, "label": label, "unit": unit, "judged": judged}


CPU = column("cpu", "CPU", statistic="value", judged=False)
SWITCHES = column("switches", "switches", "count", "value", judged=False)
TRIP = (column("trip", "round trip"), CPU, SWITCHES)

# For each scenario: the question, the method, its columns, and its cases with those that take part.
SCENARIOS: dict[str, tuple[str, str, tuple[dict[str, Any], ...], list[tuple[dict[str, str], tuple[str, ...]]]]] = {
    "python_calls": (
        "Python: what does a call cost when nobody waits?",
        "One thread calls 1,000 times in a loop that does nothing else; its cost is included. A case of two calls (set "
        "and clear, acquire and release, put and get) times both.",
        (column("time", "time"),),
        [({"operation": operation}, taking_part) for operation, taking_part in CALLS.items()],
    ),
    "python_ping_pong": (
        "Python: how long do two threads take to answer each other?",
        "Each of two threads sets an event and waits for the other's, which it then clears. gevent has greenlets instead.",
        TRIP,
        [({"cores": cores, "threads": threads},
          ("tocsin", "threading", "aiologic", "multiprocessing", "eventfd", *(["gevent"] if threads == "main" else [])))
         for cores in ("2", "1") for threads in ("other", "main")],
    ),
    "python_dialogue": (
        "Python: how long do two threads take to answer each other by other types?",
        "Two queues, two semaphores, a condition, or a barrier of two.",
        TRIP,
        [({"what": what}, (*TYPES, "multiprocessing") if what == "semaphore" else TYPES)
         for what in ("queue", "semaphore", "condition", "barrier")],
    ),
    "python_broadcast": (
        "Python: how fast are many threads woken?",
        "Threads sleep in wait(), which is verified; another one calls set().",
        (column("held", "set() takes"), column("last", "last awake")),
        [({"threads": threads}, ("tocsin", "threading", "aiologic")) for threads in ("100", "1000")],
    ),
    "python_contended": (
        "Python: what does a lock cost that four threads want?",
        "Four threads take and free one lock 2,000 times each.",
        (column("time", "time"),),
        [({"kind": kind}, TYPES) for kind in ("Lock", "RLock", "Semaphore")],
    ),
    "python_busy_lock": (
        "Python: how long does one wait for a lock that another thread takes again and again?",
        "The other thread runs an empty loop of so many rounds while it has the lock.",
        (column("wait", "the wait"),),
        [({"kind": kind, "held": held}, TYPES) for kind in ("Lock", "RLock") for held in ("500", "5000")],
    ),
    "python_many": (
        "Python: what does a wait over many events cost?",
        "A thread waits for any of the events; another sets the last of them, and waits for the answer. In turn with "
        "the same over one event.",
        (column("trip", "round trip"), column("to_one", "to one event", "count", "value", judged=False)),
        [({"events": events}, ("tocsin", "tocsin_wait_set", "eventfd")) for events in ("8", "64")],
    ),
    "python_coroutine": (
        "Python: how long do a thread and a coroutine take to answer each other?",
        "The coroutine puts an item into a queue.SimpleQueue, and waits for the thread's answer.",
        TRIP,
        [({}, ("tocsin", "threading", "aiologic", "eventfd", "asyncio"))],
    ),
    "python_memory": (
        "Python: how much memory do an event and a waiting task take?",
        "10,000 of them, as malloc counts. Of a task of asyncio, only what it takes beyond one that awaits a future.",
        (column("bytes", "each", "bytes", "value"), column("descriptors", "descriptors", "count", "value", judged=False)),
        [({"what": "event"}, ("tocsin", "threading", "aiologic", "gevent")),
         ({"what": "waiting_task"}, ("tocsin", "aiologic", "asyncio"))],
    ),
    "python_import": (
        "Python: how long does the import take?",
        "A fresh process that has imported threading, queue and asyncio imports the module.",
        (column("time", "time"),),
        [({}, ("tocsin", "aiologic", "gevent"))],
    ),
}


class Interpreters:
    """Those that are ready: for each version, its program, and the folder that has the package."""

    def __init__(self, programs: dict[str, tuple[str, str]]) -> None:
        self.programs = programs

    @staticmethod
    @cache
    def missing_in(program: str) -> list[str]:
        asked = f"import importlib.util as u; print(*(n for n in {INSTALLED} if u.find_spec(n) is None))"
        return subprocess.run([program, "-c", asked], capture_output=True, text=True, check=True).stdout.split()

    def refusals(self, interpreter: str, taking_part: tuple[str, ...]) -> dict[str, str]:
        """Why each of the others takes no part."""
        found = dict.fromkeys((name for name in CONTESTANTS if name not in taking_part), "has no equivalent")
        return found | dict.fromkeys(self.missing_in(self.programs[interpreter][0]), "is not installed")

    def describe(self) -> dict[str, Any]:
        contestants = [{"name": name, "label": label, "role": role, "about": about, "limits": "", "tier": "quick"}
                       for name, (label, role, about) in CONTESTANTS.items()]
        scenarios = [
            {"name": name, "question": question, "method": method, "columns": columns,
             "floor": CONTESTANTS["call"][0] if name == "python_calls" else "",
             "cases": [{"parameters": {"python": interpreter, **parameters}, "tier": "quick",
                        "refusals": self.refusals(interpreter, taking_part)}
                       for interpreter in self.programs for parameters, taking_part in cases]}
            for name, (question, method, columns, cases) in SCENARIOS.items()]
        build = {"compiler": "the Python package", "flags": "", "standard_library": "CPython " + ", ".join(self.programs)}
        return {"protocol": 1, "build": build, "contestants": contestants, "scenarios": scenarios}

    def command(self, scenario: str, contestant: str, given: dict[str, str]) -> list[str] | None:
        """What measures; None if there is no such case."""
        parameters = {name: value for name, value in given.items() if name != "python"}
        interpreter = given.get("python", "")
        cases = SCENARIOS[scenario][3] if scenario in SCENARIOS and interpreter in self.programs else []
        taking_part = next((taking_part for known, taking_part in cases if known == parameters), ())
        if contestant not in taking_part:
            return None
        program, site = self.programs[interpreter]
        environment = [f"PYTHONPATH={site}", *(["PYTHONMALLOC=malloc"] if scenario == "python_memory" else [])]
        return ["env", *environment, program, str(WAITS), scenario, contestant]


def main(programs: dict[str, tuple[str, str]], arguments: list[str]) -> int:
    interpreters = Interpreters(programs)
    return worker.serve(arguments, interpreters.describe, interpreters.command)

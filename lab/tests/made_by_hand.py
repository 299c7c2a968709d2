# SPDX-License-Identifier: Apache-2.0
"""Catalogues and results for the tests, small enough to know every figure."""

from typing import Any

from tocsin_lab.parsing import parse
from tocsin_lab.records import Column, Contestant, Description, Result, Sample

COLUMNS = [
    {"metric": "time", "statistic": "value", "label": "time", "unit": "ns", "judged": True},
    {"metric": "syscalls", "statistic": "value", "label": "system calls", "unit": "count", "judged": False},
]


def contestant(name: str, role: str, tier: str = "quick") -> dict[str, str]:
    """As JSON, like all that has no type."""
    return {"name": name, "label": name, "role": role, "about": "", "limits": "", "tier": tier}


CONTESTANTS = [
    contestant("floor", "floor"),
    contestant("tocsin", "ours"),
    contestant("fast", "peer"),
    contestant("slow", "peer"),
    contestant("wrong_way", "reference"),
]


def description(**changes: Any) -> dict[str, Any]:
    """What a worker's --list says, as JSON."""
    case = {"parameters": {"threads": "1"}, "tier": "quick", "refusals": {"wrong_way": "can't be waited for"}}
    full = {"parameters": {"threads": "2"}, "tier": "full", "refusals": {}}
    scenario = {
        "name": "sprint",
        "question": "How fast?",
        "method": "run",
        "floor": "nothing",
        "columns": COLUMNS,
        "cases": [case, full],
    }
    other = {**scenario, "name": "rest", "cases": [{"parameters": {}, "tier": "quick", "refusals": {}}]}
    build = {"compiler": "c", "flags": "f", "standard_library": "s"}
    return {"protocol": 1, "build": build, "contestants": CONTESTANTS, "scenarios": [scenario, other], **changes}


def sample(contestant_name: str, round_: int, **values: float) -> dict[str, Any]:
    return {
        "round": round_,
        "order": 0,
        "scenario": "sprint",
        "contestant": contestant_name,
        "parameters": {"threads": "1"},
        "ok": True,
        "values": values,
        "distributions": {},
        "notes": [],
        "failures": [],
    }


def read_description(**changes: Any) -> Description:
    return parse(Description, description(**changes))


def read_samples(*samples: dict[str, Any]) -> list[Sample]:
    return parse(list[Sample], list(samples))


def result(samples: list[dict[str, Any]], **changes: Any) -> Result:
    return parse(Result, stored(samples, **changes))


def read_contestants() -> dict[str, Contestant]:
    return {one.name: one for one in parse(list[Contestant], CONTESTANTS)}


def read_columns() -> list[Column]:
    return parse(list[Column], COLUMNS)


def stored(samples: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """A result file, as JSON."""
    return {
        "format": 1,
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T03:14:05+00:00",
        "interrupted": False,
        "project": {"commit": "0123456789", "changed": False},
        "machine": {
            "processor": "Abacus",
            "architecture": "wood",
            "cores": 2,
            "usable_cores": [0, 1],
            "hypervisor": False,
            "memory_mb": 1,
            "kernel": "1.0",
            "system": "System",
            "governor": None,
            "idle_driver": None,
            "clock": None,
            "root": False,
        },
        "workers": {"tocsin_lab_worker": description()["build"]},
        "plan": {"mode": "test", "rounds": 6, "budget_ms": 1, "seed": 7},
        "quietness": {"before": {"others": 0.0, "stolen": 0.0}, "rounds": []},
        "contestants": CONTESTANTS,
        "scenarios": description()["scenarios"],
        "rounds_finished": 6,
        "samples": samples,
        "counts": [],
        "failures": [],
        **changes,
    }


def rounds_of(name: str, *times: float) -> list[dict[str, Any]]:
    return [sample(name, round_, time=time) for round_, time in enumerate(times, 1)]

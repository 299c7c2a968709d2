# SPDX-License-Identifier: Apache-2.0
"""The machine that is measured on, and whether other programs are using it."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tocsin_lab.records import Disturbance, Machine, Project

ON_WINDOWS = os.name == "nt"
if ON_WINDOWS:
    from tocsin_lab.measure import windows


def read_text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def describe_machine() -> Machine:
    return Machine(
        architecture=platform.machine(),
        cores=os.cpu_count() or 1,
        kernel=platform.release(),
        system=platform.platform(),
        governor=read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or None,
        idle_driver=read_text("/sys/devices/system/cpu/cpuidle/current_driver") or None,
        clock=read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource") or None,
        **(windows.describe() if ON_WINDOWS else describe_linux()),
    )


def describe_linux() -> dict[str, object]:
    cpuinfo = read_text("/proc/cpuinfo")
    fields = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    memory_kb = next((line.split()[1] for line in read_text("/proc/meminfo").splitlines() if "MemTotal" in line), "0")
    return {
        "processor": fields.get("model name", platform.machine()),
        "usable_cores": tuple(sorted(os.sched_getaffinity(0))),
        "hypervisor": "hypervisor" in fields.get("flags", "").split(),
        "memory_mb": int(memory_kb) // 1024,
        "root": os.geteuid() == 0,
    }


def describe_project(root: Path) -> Project:
    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    changes = git("status", "--porcelain")
    return Project(git("rev-parse", "HEAD"), None if changes is None else bool(changes))


@dataclass(frozen=True)
class CpuTimes:
    """Seconds since the machine started, over all cores. `own`: those of this process and of the children it has waited
    for."""

    at: float
    busy: float
    stolen: float
    own: float

    @classmethod
    def now(cls) -> CpuTimes:
        if ON_WINDOWS:
            # Windows keeps no times of children that have ended, so the share of other programs can't be told.
            return cls(time.monotonic(), windows.busy_seconds(), 0.0, windows.busy_seconds())
        ticks = os.sysconf("SC_CLK_TCK")
        values = [int(text) / ticks for text in read_text("/proc/stat").splitlines()[0].split()[1:]]
        user, nice, system, _idle, _wait, irq, softirq, stolen = values[:8]
        used = os.times()
        own = used.user + used.system + used.children_user + used.children_system
        return cls(time.monotonic(), user + nice + system + irq + softirq, stolen, own)


def disturbance_between(before: CpuTimes, after: CpuTimes) -> Disturbance:
    available = max(after.at - before.at, 1e-9) * (os.cpu_count() or 1)
    others = (after.busy - before.busy - (after.own - before.own)) / available
    return Disturbance(min(max(others, 0.0), 1.0), min(max((after.stolen - before.stolen) / available, 0.0), 1.0))


def observe_quietness(seconds: float = 1.0) -> Disturbance:
    before = CpuTimes.now()
    time.sleep(seconds)
    return disturbance_between(before, CpuTimes.now())

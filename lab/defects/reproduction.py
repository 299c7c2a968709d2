# SPDX-License-Identifier: Apache-2.0
"""What the reproductions in Python share: `SCRIPT peer SECONDS` prints one line of JSON, as the programs in C++ do."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Outcome:
    seen: int = 0
    tries: int = 0
    version: str = ""
    note: str = ""


def sleeps(stat: str) -> bool:
    """Whether the system says so (state S) in the thread's file `stat`."""
    try:
        return Path(stat).read_text().rpartition(")")[2].split()[0] == "S"
    except OSError:
        return False


def proven_to_hang(stat: str, stuck: Callable[[], bool]) -> bool:
    """30 looks over 3 s: always asleep, and nothing has moved."""
    for _ in range(30):
        if not sleeps(stat) or not stuck():
            return False
        time.sleep(0.1)
    return sleeps(stat) and stuck()


def run(arguments: list[str], peer: Callable[[float], Outcome]) -> None:
    """Ends the process at once, since a thread may hang for ever."""
    if len(arguments) != 3 or arguments[1] != "peer":
        sys.exit(f"usage: {arguments[0]} peer SECONDS")
    began = time.monotonic()
    found = peer(float(arguments[2]))
    print(json.dumps({**asdict(found), "seconds": round(time.monotonic() - began, 2)}), flush=True)
    os._exit(0)

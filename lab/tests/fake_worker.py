#!/usr/bin/env -S python3 -I -S
# SPDX-License-Identifier: Apache-2.0
"""A worker that measures nothing, for tests of the code that runs workers. Two contestants misbehave on purpose: `slow`
gives a wrong result when it is checked, `fast` dies when it is measured."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.made_by_hand import description, sample  # noqa: E402

arguments = sys.argv[1:]
if arguments == ["--list"]:
    print(json.dumps(description()))
    sys.exit()

mode, scenario, contestant = arguments[:3]
parameters = dict(word.split("=") for word in arguments[3:] if "=" in word)
answer = {**sample(contestant, 0, time=5.0), "scenario": scenario, "parameters": parameters}
del answer["round"], answer["order"]
time.sleep(float(arguments[arguments.index("--budget-ms") + 1]) / 1000)
if "--count-syscalls" in arguments:
    answer["values"]["syscalls"] = 1.0
if mode == "--check" and contestant == "slow":
    answer.update(ok=False, failures=["2 and 2 is 4"])
if mode == "--run" and contestant == "fast" and "--count-syscalls" not in arguments:
    print("watchdog: did not finish", file=sys.stderr)
    sys.exit(3)
print(json.dumps(answer))
sys.exit(0 if answer["ok"] else 1)

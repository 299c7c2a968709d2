#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions the paths take on which nobody sleeps, by compiler; a table of Markdown.

A count is of one round of a loop that calls the path, the loop included: what a compiler makes of the loop itself
depends on what is in it, so it can't be taken off.

    tools/instructions/count.py g++-12 clang++-19    compiles paths.cpp with each, and counts by valgrind
    tools/instructions/count.py --sources FOLDER     writes what to compile on another system (c++ -std=c++20 -O2
                                                     -DNDEBUG -static -pthread paths.cpp -o NAME)
    tools/instructions/count.py ./NAME               counts a program that was compiled elsewhere
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATHS = {"nothing": "nothing: the loop alone", "poll": "look at an event that isn't set", "set_again": "set an event that is set",
         "set_and_try_wait": "set, and `try_wait()`", "set_and_wait": "set, and `wait()`",
         "lock_and_unlock": "lock and unlock, nobody waits", "wake_nobody": "wake an address, nobody waits"}
FEW, MANY = 100_000, 300_000


def write_sources(folder):
    subprocess.run([sys.executable, HERE.parent / "amalgamate.py", folder], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(HERE / "paths.cpp", folder)


def instructions(program, path):
    """For one round of the loop."""
    def run(rounds):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, path, str(rounds)]
        said = subprocess.run(command, text=True, capture_output=True, check=True).stderr
        return int(re.search(r"Collected : (\d+)", said)[1])

    return (run(MANY) - run(FEW)) / (MANY - FEW)


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__)
    if arguments[0] == "--sources":
        write_sources(Path(arguments[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for each in arguments:
            if "/" in each:
                programs[Path(each).name] = Path(each).resolve()
                continue
            write_sources(folder)
            programs[each] = Path(folder) / f"paths-{each}"
            subprocess.run([each, "-std=c++20", "-O2", "-DNDEBUG", "-pthread", Path(folder) / "paths.cpp", "-o",
                            programs[each]], check=True)
        counts = {path: [instructions(program, path) for program in programs.values()] for path in PATHS}
    print(f"| instructions | {' | '.join(programs)} |\n| --- |{' ---: |' * len(programs)}")
    for path, row in counts.items():
        # A compiler may unroll a loop by two.
        print(f"| {PATHS[path]} | {' | '.join(f'{round(count * 2) / 2:g}' for count in row)} |")


if __name__ == "__main__":
    main(sys.argv[1:])

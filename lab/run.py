#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the laboratory: `./dev lab` builds the workers and calls this. `--help` lists the arguments."""

import importlib
import os
import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit("lab: needs Python 3.11 or newer")

sys.path.insert(0, str(Path(__file__).resolve().parent))

from tocsin_lab.arguments import parse  # noqa: E402
from tocsin_lab.errors import BAD_REQUEST, INTERRUPTED, LabError, complain  # noqa: E402


def main(arguments: list[str]) -> int:
    """The exit code. A reader that has seen enough, as `head` has, is no error."""
    try:
        try:
            return answer(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
        return 0


def answer(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        # Only the command that was asked for, since most need packages; help, wrong arguments and --smoke need none.
        command = importlib.import_module(f"tocsin_lab.commands.{options.command}")
        return command.run(options)
    except ModuleNotFoundError as error:
        needs = f"needs the Python package {error.name} (lab/requirements.txt); ./dev lab installs it"
        complain(needs)
    except LabError as error:
        complain(str(error))
    except KeyboardInterrupt:  # before or after the measuring, which handles its own
        complain("interrupted")
        return INTERRUPTED
    return BAD_REQUEST


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Runs the laboratory: `./dev lab` builds the workers and calls this. `--help` says the rest."""

import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit("lab: needs Python 3.11 or newer")

sys.path.insert(0, str(Path(__file__).resolve().parent))

from tocsin_lab.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

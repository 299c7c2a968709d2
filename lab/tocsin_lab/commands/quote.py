# SPDX-License-Identifier: Apache-2.0
"""`./dev lab quote`: prints the README's table of figures."""

from __future__ import annotations

import argparse

from tocsin_lab.measure.results import load
from tocsin_lab.present.quotes import table


def run(options: argparse.Namespace) -> int:
    print("\n".join(table(load(options.result))))
    return 0

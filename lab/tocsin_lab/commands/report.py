# SPDX-License-Identifier: Apache-2.0
"""`./dev lab report`: makes the page of a result again."""

import argparse
from pathlib import Path

from tocsin_lab.errors import NOT_SAVED
from tocsin_lab.measure.results import load
from tocsin_lab.present.report import save_report


def run(options: argparse.Namespace) -> int:
    path = options.out or page_beside(options.result)
    if not save_report(load(options.result), path):
        return NOT_SAVED
    print(f"Report: {path}")
    return 0


def page_beside(result: Path) -> Path:
    return result.with_name(result.name.removesuffix(".xz").removesuffix(".json") + ".html")

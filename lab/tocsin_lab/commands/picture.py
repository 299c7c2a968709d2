# SPDX-License-Identifier: Apache-2.0
"""`./dev lab picture`: draws the README's picture from a result, for light and for dark pages."""

from __future__ import annotations

import argparse
from pathlib import Path

from tocsin_lab.measure.results import load
from tocsin_lab.present.picture import THEMES, svg


def run(options: argparse.Namespace) -> int:
    result = load(options.result)
    for theme in THEMES:
        path = picture_of(options.result, theme.name)
        path.write_text(svg(result, theme), encoding="utf-8")
        print(f"Picture: {path}")
    return 0


def picture_of(result: Path, theme: str) -> Path:
    return result.with_name(f"{result.name.removesuffix('.xz').removesuffix('.json')}-{theme}.svg")

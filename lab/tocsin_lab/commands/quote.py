# SPDX-License-Identifier: Apache-2.0
"""`./dev lab quote`: prints the README's table of figures. With `--keep`, writes the tree's figures and pictures."""

import argparse
from pathlib import Path

from tocsin_lab.arguments import FIGURES
from tocsin_lab.files import write_whole
from tocsin_lab.measure.results import ResultError, load, read_json
from tocsin_lab.parsing import Malformed, parse
from tocsin_lab.present.picture import THEMES, svg
from tocsin_lab.present.quotes import FORMAT, Figures, as_text, figures_of, table

QUOTED = FIGURES / "quoted.json"


def run(options: argparse.Namespace) -> int:
    figures = figures_of(load(options.result)) if options.result else load_figures(QUOTED)
    print("\n".join(table(figures)))
    if options.keep:
        made = {QUOTED: as_text(figures), **{FIGURES / f"gate-{one.name}.svg": svg(figures, one) for one in THEMES}}
        for path, text in made.items():
            write_whole(path, lambda file, text=text: file.write(text))
            print(f"Written: {path}")
    return 0


def load_figures(path: Path) -> Figures:
    try:
        figures = parse(Figures, read_json(path))
    except Malformed as error:
        raise ResultError(f"{path} does not hold the README's figures: {error}") from None
    if figures.format != FORMAT:
        raise ResultError(f"{path} holds figures of format {figures.format}, not {FORMAT}")
    return figures

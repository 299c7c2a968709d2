# SPDX-License-Identifier: Apache-2.0
"""The README's table of figures and its picture are those that the committed result makes."""

import importlib.util
import io
import re
import unittest
from pathlib import Path

from tests.made_by_hand import result, rounds_of
from tocsin_lab.analyse.summary import summarise
from tocsin_lab.errors import LabError
from tocsin_lab.measure.results import load
from tocsin_lab.present.quotes import in_words, quoted, table

if importlib.util.find_spec("rich"):
    from rich.console import Console

    from tocsin_lab.present.tables import print_answers

HAS_PICTURES = importlib.util.find_spec("vl_convert") is not None
if HAS_PICTURES:
    from tocsin_lab.commands.picture import picture_of
    from tocsin_lab.present.picture import THEMES, specification, svg

ROOT = Path(__file__).resolve().parents[2]
RESULT = "lab/results/two-cores.json.xz"


class ReadmeTest(unittest.TestCase):
    def test_quotes_the_committed_result(self) -> None:
        readme = (ROOT / "README.md").read_text()
        quoted = re.search(r"<!-- ./dev lab quote (\S+) -->\n((?:\|.*\n)+)", readme)
        assert quoted, "the table and the command that made it"
        self.assertEqual(quoted[2].splitlines(), table(load(ROOT / quoted[1])))


@unittest.skipUnless(HAS_PICTURES, "needs the Python package vl_convert")
class PictureTest(unittest.TestCase):
    def test_shows_the_committed_result(self) -> None:
        shown = load(ROOT / RESULT)
        for theme in THEMES:
            picture = picture_of(ROOT / RESULT, theme.name)
            self.assertEqual(picture.read_text(), svg(shown, theme), f"./dev lab picture {RESULT}")
            self.assertIn(str(picture.relative_to(ROOT)), (ROOT / "README.md").read_text())

    def test_says_what_a_result_lacks(self) -> None:
        with self.assertRaisesRegex(LabError, "the result lacks wake_latency"):
            specification(result(rounds_of("tocsin", 1.0)), THEMES[0])


@unittest.skipUnless(importlib.util.find_spec("rich"), "needs the Python package rich")
class LastScreenTest(unittest.TestCase):
    def test_has_each_figure_of_the_readme(self) -> None:
        shown = load(ROOT / RESULT)
        console = Console(width=160, record=True, file=io.StringIO())
        print_answers(console, shown)
        lines = console.export_text().splitlines()
        self.assertLess(len(lines), 25, "a terminal shows it whole")
        for one in quoted(shown):
            (line,) = (each for each in lines if each.startswith(one.question + "  "))
            for part in (one.ours, one.best, one.who, one.comparison):
                self.assertIn(part, line)


class WordsTest(unittest.TestCase):
    def words(self, *ours: float) -> str:
        (case,) = summarise(result(rounds_of("tocsin", *ours) + rounds_of("fast", *[10] * 6)))
        return in_words(case.judgements[0])

    def test_a_difference_is_a_ratio(self) -> None:
        self.assertEqual(self.words(*[5] * 6), "0.50 ×")

    def test_everything_else_shows_its_interval(self) -> None:
        self.assertEqual(self.words(9, 10, 11, 9, 10, 11), "level (0.90–1.10 ×)")
        self.assertEqual(self.words(9, 10, 19, 9, 10, 19), "not decided (0.90–1.90 ×)")

    def test_an_end_is_not_rounded_to_the_bound_of_level(self) -> None:
        self.assertEqual(self.words(9, 10, 12.5, 9, 10, 12.5), "level (0.90–1.25 ×)")
        self.assertEqual(self.words(9, 10, 12.52, 9, 10, 12.52), "not decided (0.90–1.26 ×)")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""The README's figures and its picture are those that the tree keeps, and a run's table is made of the same rows."""

import importlib.util
import io
import re
import tempfile
import unittest
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path
from unittest import mock

from tests.made_by_hand import contestant, result, rounds_of, sample
from tests.outcome import outcome
from tests.test_histogram import SUB_BITS, index_of
from tocsin_lab.analyse.summary import summarise
from tocsin_lab.commands import quote
from tocsin_lab.errors import LabError
from tocsin_lab.measure.results import save
from tocsin_lab.present.picture import THEMES, svg
from tocsin_lab.present.quotes import QUOTED, WIDEST, figures_of, in_figures, table
from tocsin_lab.records import Result

if importlib.util.find_spec("rich"):
    from rich.console import Console

    from tocsin_lab.present.tables import print_answers, print_circumstances

ROOT = Path(__file__).resolve().parents[2]
CONTESTANTS = [contestant("tocsin", "ours"), contestant("tocsin_wait_any", "variant"),
               {**contestant("peer", "peer"), "label": "std::counting_semaphore"}]  # fmt: skip


def everything(tocsin: float = 20.0, peer: float = 10.0) -> Result:
    """A small result with every case that is quoted."""
    scenarios: dict[str, dict] = {}
    samples = []
    for one in QUOTED:
        column = {"metric": one.metric, "statistic": "value", "label": one.metric, "unit": "ns", "judged": True}
        found = scenarios.setdefault(one.scenario, {"name": one.scenario, "question": "?", "columns": [], "cases": []})
        if column not in found["columns"]:
            found["columns"].append(column)
        case = {"parameters": dict(one.where), "tier": "quick", "refusals": {}}
        if case not in found["cases"]:
            found["cases"].append(case)
    scenarios["broadcast"]["columns"][0]["statistic"] = "median"
    for one in scenarios.values():
        for case in one["cases"]:
            for who, speed in (("tocsin", tocsin), ("tocsin_wait_any", tocsin), ("peer", peer)):
                for number in range(1, 7):
                    values = {each["metric"]: speed + number / 100 for each in one["columns"]}
                    at = int(speed * 1000)
                    held = {"sub_bits": SUB_BITS, "least": at, "most": at, "counts": [[index_of(at), 1]]}
                    samples.append({**sample(who, number, **values), "scenario": one["name"],
                                    "parameters": case["parameters"],
                                    "distributions": {"held": held} if "held" in values else {}})  # fmt: skip
    return result(samples, contestants=CONTESTANTS, scenarios=list(scenarios.values()))


class ReadmeTest(unittest.TestCase):
    def test_quotes_figures_that_the_tree_keeps_and_the_page_on_measuring_quotes_all(self) -> None:
        figures = quote.load_figures(quote.QUOTED)
        for page in ("README.md", "docs/benchmarking.md"):
            text = (ROOT / page).read_text()
            found = re.search(r"<!-- ./dev lab quote -->\n((?:\|.*\n)+)", text)
            assert found, "the table and the command that made it"
            quoted, whole = found[1].splitlines(), table(figures)
            self.assertEqual(quoted, whole if page != "README.md" else [row for row in whole if row in quoted])
            self.assertTrue(f"commit {figures.commit}" in text, "it says which commit was measured")

    def test_shows_the_picture_of_these_figures(self) -> None:
        figures = quote.load_figures(quote.QUOTED)
        for theme in THEMES:
            path = quote.QUOTED.with_name(f"gate-{theme.name}.svg")
            self.assertEqual(path.read_text(), svg(figures, theme))
            self.assertTrue(f"lab/figures/{path.name}" in (ROOT / "README.md").read_text(), path)

    def test_the_tree_keeps_no_whole_result(self) -> None:
        kept = [path for path in (ROOT / "lab").rglob("*.json*") if "node_modules" not in path.parts]
        self.assertEqual(kept, [quote.QUOTED])


class KeepTest(unittest.TestCase):
    def test_writes_figures_and_pictures_that_can_be_read_again(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            save(everything(), folder / "result.json")
            with mock.patch.multiple(quote, QUOTED=folder / "quoted.json", FIGURES=folder):
                code, first, _ = outcome("quote", folder / "result.json", "--keep")
                self.assertEqual(code, 0)
                self.assertEqual(outcome("quote")[1], first.partition("Written")[0])
            kept = quote.load_figures(folder / "quoted.json").rows
            self.assertEqual(len(kept), sum(1 for one in QUOTED if one.readme))
            self.assertEqual(sorted(one.name for one in folder.glob("*.svg")), ["gate-dark.svg", "gate-light.svg"])

    def test_a_file_of_something_else_is_refused_by_name(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "quoted.json"
            path.write_text("[]")
            with self.assertRaisesRegex(LabError, "quoted.json does not hold the README's figures"):
                quote.load_figures(path)


class PictureTest(unittest.TestCase):
    def test_each_bar_has_its_name_and_its_figure_inside_the_picture(self) -> None:
        figures = figures_of(everything())
        drawn = xml.fromstring(svg(figures, THEMES[0]))
        texts = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
        for one in figures.bars:
            self.assertIn(one.who, texts)
        width = float(drawn.get("width"))
        for one in drawn.iter("{http://www.w3.org/2000/svg}text"):
            # No letter of any usual font is wider than its size.
            self.assertLess(float(one.get("x")) + 0.65 * float(one.get("font-size")) * len(one.text), width, one.text)

    def test_says_what_a_result_lacks(self) -> None:
        with self.assertRaisesRegex(LabError, "the result lacks the scenario broadcast"):
            svg(figures_of(result(rounds_of("tocsin", 1.0))), THEMES[0])


@unittest.skipUnless(importlib.util.find_spec("rich"), "needs the Python package rich")
class TableTest(unittest.TestCase):
    def test_has_a_row_for_each_question_and_fits_into_80_columns(self) -> None:
        console = Console(width=80, record=True, file=io.StringIO())
        print_answers(console, everything())
        lines = console.export_text().splitlines()
        self.assertLess(len(lines), 25, "a terminal shows it whole")
        self.assertEqual(len(lines), 1 + len(QUOTED))
        for one in QUOTED:
            self.assertLessEqual(len(one.question), WIDEST)
            (line,) = (each for each in lines if each.startswith(one.question.ljust(WIDEST) + " "))
            self.assertLessEqual(len(line.rstrip()), 80)
            self.assertRegex(line, r" (\S+ ×|not slower)\s*$")

    def test_no_line_about_the_circumstances_is_wider_than_80_columns(self) -> None:
        made = everything()
        made = replace(made, machine=replace(made.machine, processor="Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz"),
                       plan=replace(made.plan, seed=18_446_744_073_709_551_615))  # fmt: skip
        console = Console(width=200, record=True, file=io.StringIO())
        print_circumstances(console, made)
        for line in console.export_text().splitlines():
            self.assertLessEqual(len(line.rstrip()), 80, line)


class WordsTest(unittest.TestCase):
    def words(self, *ours: float) -> str:
        made = result(rounds_of("tocsin", *ours) + rounds_of("fast", *[10] * 6))
        (case,) = summarise(made)
        return in_figures(QUOTED[0], case, case.judgements[0], made.by_name).words

    def test_a_difference_is_a_ratio(self) -> None:
        self.assertEqual(self.words(*[5] * 6), "0.50 ×")

    def test_everything_else_shows_its_interval(self) -> None:
        self.assertEqual(self.words(9, 10, 11, 9, 10, 11), "not slower (0.90–1.10 ×)")
        self.assertEqual(self.words(9, 10, 19, 9, 10, 19), "not decided (0.90–1.90 ×)")

    def test_an_end_is_not_rounded_to_the_bound(self) -> None:
        self.assertEqual(self.words(9, 10, 12.5, 9, 10, 12.5), "not slower (0.90–1.25 ×)")
        self.assertEqual(self.words(9, 10, 12.52, 9, 10, 12.52), "not decided (0.90–1.26 ×)")


if __name__ == "__main__":
    unittest.main()

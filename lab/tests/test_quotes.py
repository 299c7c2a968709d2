"""The README's table of figures is the one that the committed result makes."""

import re
import unittest
from pathlib import Path

from tests.made_by_hand import result, rounds_of
from tocsin_lab.analyse.summary import summarise
from tocsin_lab.measure.results import load
from tocsin_lab.present.quotes import in_words, table

ROOT = Path(__file__).resolve().parents[2]


class ReadmeTest(unittest.TestCase):
    def test_quotes_the_committed_result(self) -> None:
        readme = (ROOT / "README.md").read_text()
        quoted = re.search(r"<!-- ./dev lab quote (\S+) -->\n((?:\|.*\n)+)", readme)
        assert quoted, "the table and the command that made it"
        self.assertEqual(quoted[2].splitlines(), table(load(ROOT / quoted[1])))


class WordsTest(unittest.TestCase):
    def words(self, *ours: float) -> str:
        (case,) = summarise(result(rounds_of("tocsin", *ours) + rounds_of("fast", *[10] * 6)))
        return in_words(case.judgements[0])

    def test_a_difference_is_a_ratio(self) -> None:
        self.assertEqual(self.words(*[5] * 6), "0.50 ×")

    def test_everything_else_shows_its_interval(self) -> None:
        self.assertEqual(self.words(9, 10, 11, 9, 10, 11), "level (0.90–1.10 ×)")
        self.assertEqual(self.words(9, 10, 19, 9, 10, 19), "not decided (0.90–1.90 ×)")


if __name__ == "__main__":
    unittest.main()

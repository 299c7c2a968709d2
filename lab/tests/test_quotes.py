"""The README's table of figures is the one that the committed result makes."""

import re
import unittest
from pathlib import Path

from tocsin_lab.measure.results import load
from tocsin_lab.present.quotes import table

ROOT = Path(__file__).resolve().parents[2]


class ReadmeTest(unittest.TestCase):
    def test_quotes_the_committed_result(self) -> None:
        readme = (ROOT / "README.md").read_text()
        quoted = re.search(r"<!-- ./dev lab quote (\S+) -->\n((?:\|.*\n)+)", readme)
        assert quoted, "the table and the command that made it"
        self.assertEqual(quoted[2].splitlines(), table(load(ROOT / quoted[1])))


if __name__ == "__main__":
    unittest.main()

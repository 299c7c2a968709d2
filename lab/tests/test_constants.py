# SPDX-License-Identifier: Apache-2.0
"""The simulation has the same constants as the C++ source."""

import re
import unittest
from pathlib import Path

from tocsin_lab.analyse.simulation import BATCH, BUCKETS, RELAY_ABOVE, RELAY_WAKES, waker_wakes

CORE = Path(__file__).resolve().parents[2] / "src" / "core"
RULE = re.compile(
    r"processors <= (?P<few>\d+) \? (?P<least>\d+) : "
    r"processors >= (?P<many>\d+) \? (?P<most>\d+) : processors / (?P<part>\d+)"
)


class ConstantTest(unittest.TestCase):
    def in_source(self, pattern: str) -> re.Match[str]:
        """The one place in src/core that matches."""
        texts = (path.read_text() for path in sorted(CORE.rglob("*")) if path.suffix in (".cpp", ".hpp"))
        found = [match for text in texts for match in re.finditer(pattern, text)]
        self.assertEqual(len(found), 1, pattern)
        return found[0]

    def test_relay(self) -> None:
        self.assertEqual(int(self.in_source(r"#define TOCSIN_RELAY_ABOVE (\d+)")[1]), RELAY_ABOVE)
        self.assertEqual(int(self.in_source(r"#define TOCSIN_RELAY_WAKES (\d+)")[1]), RELAY_WAKES)

    def test_batch(self) -> None:
        self.assertEqual(int(self.in_source(r"#define TOCSIN_WAITERS_PER_BATCH (\d+)")[1]), BATCH)

    def test_waker(self) -> None:
        rule = {name: int(value) for name, value in self.in_source(RULE.pattern).groupdict().items()}
        for cores in range(1, 65):
            expected = (
                rule["least"] if cores <= rule["few"]
                else rule["most"] if cores >= rule["many"] else cores // rule["part"]
            )  # fmt: skip
            self.assertEqual(waker_wakes(cores), expected, cores)

    def test_buckets(self) -> None:
        self.assertEqual(1 << int(self.in_source(r"#define TOCSIN_BUCKET_BITS (\d+)")[1]), BUCKETS)


if __name__ == "__main__":
    unittest.main()

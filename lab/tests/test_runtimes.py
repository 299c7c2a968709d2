# SPDX-License-Identifier: Apache-2.0
"""The worker for the runtimes of other languages, without any of them."""

import sys
import unittest
from pathlib import Path

from tocsin_lab.analyse.statistics import bucket_bounds, quantile
from tocsin_lab.measure.workers import Catalogue
from tocsin_lab.parsing import parse
from tocsin_lab.records import Description, Distribution

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "worker" / "runtimes"))
import worker  # noqa: E402


class DistributionTest(unittest.TestCase):
    def test_values_fall_into_the_buckets_that_readers_expect(self) -> None:
        for value in (0, 1, 255, 256, 257, 511, 512, 1_000_003, 1 << 40):
            low, high = bucket_bounds(worker.bucket(value), worker.SUB_BITS)
            self.assertTrue(low <= value < high, value)

    def test_a_distribution_can_be_read(self) -> None:
        read = Distribution.from_json(worker.distribution([3_000, 1_000, 2_000]))
        self.assertEqual((read.total, read.least, read.most), (3, 1_000, 3_000))
        self.assertAlmostEqual(quantile(read, 0.5) or 0, 2_000, delta=8)


class DescriptionTest(unittest.TestCase):
    def test_everybody_takes_part_in_what_they_have(self) -> None:
        catalogue = Catalogue()
        catalogue.add(Path("worker"), parse(Description, worker.describe({"java": [], "go": []})))
        taking_part = {tuple(case.parameters.values()): case.contestants for case in catalogue.scenarios["pairs"].cases}
        self.assertEqual(taking_part, {("auto_set_wait",): ["go_runtime"], ("manual_set_reset",): []})

    def test_every_language_has_a_case(self) -> None:
        needs = {need for *_, need in worker.CASES}
        for name, (_, _, has) in worker.LANGUAGES.items():
            self.assertTrue(has and has <= needs, name)


if __name__ == "__main__":
    unittest.main()

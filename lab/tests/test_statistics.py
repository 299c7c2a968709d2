# SPDX-License-Identifier: Apache-2.0
"""Statistics on data made by hand, where the right answer is known."""

import unittest

from tocsin_lab.analyse.statistics import Estimate, coverage_of_ranks, estimate, median, paired_ratio
from tocsin_lab.analyse.verdict import Verdict, judge


def rounds(*values: float) -> dict[int, float]:
    return dict(enumerate(values, 1))


class MedianTest(unittest.TestCase):
    def test_odd_and_even_counts(self) -> None:
        self.assertEqual(median([3, 1, 2]), 2)
        self.assertEqual(median([4, 1, 3, 2]), 2.5)
        self.assertEqual(median([7]), 7)


class IntervalTest(unittest.TestCase):
    def test_coverage_of_the_whole_range_is_one_minus_all_on_one_side(self) -> None:
        self.assertAlmostEqual(coverage_of_ranks(5, 1), 1 - 2 / 32)
        self.assertAlmostEqual(coverage_of_ranks(6, 1), 1 - 2 / 64)

    def test_known_ranks(self) -> None:
        # Tables of the sign test: of 15 values the 4th smallest and the 4th largest give 96.5 %.
        self.assertAlmostEqual(coverage_of_ranks(15, 4), 0.9648, places=4)
        values = [float(value) for value in range(1, 16)]
        found = estimate(values)
        self.assertEqual((found.median, found.low, found.high), (8, 4, 12))
        self.assertAlmostEqual(found.coverage, 0.9648, places=4)

    def test_an_outlier_moves_neither_median_nor_interval(self) -> None:
        calm = estimate([float(value) for value in range(1, 16)])
        wild = estimate([float(value) for value in range(1, 15)] + [1e9])
        self.assertEqual((calm.median, calm.low, calm.high), (wild.median, wild.low, wild.high))

    def test_few_values_give_their_range_and_say_how_little_it_covers(self) -> None:
        found = estimate([5.0, 1.0, 3.0])
        self.assertEqual((found.median, found.low, found.high), (3, 1, 5))
        self.assertAlmostEqual(found.coverage, 0.75)
        self.assertEqual(estimate([2.0]), Estimate(2.0, 2.0, 2.0, 0.0, 1))

    def test_nothing_gives_nothing(self) -> None:
        self.assertIsNone(estimate([]))

    def test_order_of_the_samples_does_not_matter(self) -> None:
        self.assertEqual(estimate([3.0, 1.0, 2.0, 5.0, 4.0, 6.0]), estimate([6.0, 5.0, 4.0, 3.0, 2.0, 1.0]))

    def test_spread_is_half_the_interval_by_the_median(self) -> None:
        self.assertAlmostEqual(Estimate(10, 9, 12, 0.95, 9).spread, 0.15)
        self.assertEqual(Estimate(0, 0, 0, 0.95, 9).spread, 0)


class PairedRatioTest(unittest.TestCase):
    def test_drift_that_hits_a_round_alike_cancels(self) -> None:
        ours = rounds(10, 20, 40, 80, 160, 320)
        theirs = rounds(5, 10, 20, 40, 80, 160)
        found = paired_ratio(ours, theirs)
        self.assertEqual((found.median, found.low, found.high), (2, 2, 2))

    def test_only_rounds_that_have_both_count(self) -> None:
        found = paired_ratio({1: 10.0, 2: 30.0, 4: 8.0}, {1: 5.0, 3: 1.0, 4: 2.0})
        self.assertEqual((found.median, found.count), (3.0, 2))

    def test_nothing_to_compare_with(self) -> None:
        self.assertIsNone(paired_ratio({1: 1.0}, {}))
        self.assertIsNone(paired_ratio({1: 1.0}, {1: 0.0}))


class JudgeTest(unittest.TestCase):
    def test_less_is_better(self) -> None:
        low, high = rounds(10, 11, 10, 11, 10, 11), rounds(20, 21, 20, 21, 20, 21)
        self.assertEqual(judge(low, high), Verdict.WIN)
        self.assertEqual(judge(high, low), Verdict.LOSS)

    def test_overlapping_intervals_are_no_difference(self) -> None:
        self.assertEqual(judge(rounds(10, 12, 14, 11, 13, 12), rounds(11, 13, 15, 12, 14, 13)), Verdict.NOT_SLOWER)

    def test_the_same_is_no_difference(self) -> None:
        same = rounds(1, 2, 3, 4, 5, 6)
        self.assertEqual(judge(same, same), Verdict.NOT_SLOWER)

    def test_no_difference_excludes_a_loss_of_more_than_a_quarter(self) -> None:
        theirs = rounds(10, 10, 10, 10, 10, 10)
        self.assertEqual(judge(rounds(8, 9, 10, 11, 12, 12.5), theirs), Verdict.NOT_SLOWER)
        self.assertEqual(judge(rounds(8, 9, 10, 11, 12, 12.6), theirs), Verdict.OPEN)
        self.assertEqual(judge(rounds(1, 1, 10, 10, 12, 12), theirs), Verdict.NOT_SLOWER)

    def test_against_nothing_only_nothing_is_level(self) -> None:
        nothing = rounds(0, 0, 0, 0, 0, 0)
        self.assertEqual(judge(nothing, nothing), Verdict.NOT_SLOWER)
        self.assertEqual(judge(rounds(0, 0, 1, 1, 1, 1), nothing), Verdict.OPEN)

    def test_one_sample_each_decides_nothing(self) -> None:
        self.assertEqual(judge(rounds(1), rounds(2)), Verdict.OPEN)
        self.assertEqual(judge(rounds(1, 1), rounds(2, 2)), Verdict.WIN)

    def test_without_samples_nothing_is_decided(self) -> None:
        self.assertEqual(judge({}, rounds(1, 2)), Verdict.OPEN)


if __name__ == "__main__":
    unittest.main()

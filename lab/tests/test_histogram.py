# SPDX-License-Identifier: Apache-2.0
"""Distributions as the workers write them."""

import unittest

from tocsin_lab.analyse.statistics import bucket_bounds, merge, quantile
from tocsin_lab.records import Distribution

SUB_BITS = 8


def index_of(value: int) -> int:
    """The same as in worker/measure/histogram.hpp."""
    if value < 1 << SUB_BITS:
        return value
    octave = value.bit_length() - SUB_BITS - 1
    return (octave + 1) * (1 << SUB_BITS) + (value >> octave) - (1 << SUB_BITS)


def distribution(values: list[int]) -> Distribution:
    counts: dict[int, int] = {}
    for value in values:
        counts[index_of(value)] = counts.get(index_of(value), 0) + 1
    data = {"sub_bits": SUB_BITS, "least": min(values), "most": max(values), "counts": sorted(counts.items())}
    return Distribution.from_json(data)


class BucketTest(unittest.TestCase):
    def test_every_value_lies_in_its_bucket(self) -> None:
        for value in [0, 1, 255, 256, 257, 511, 512, 513, 1023, 1024, 1_000_003, 2**40 + 12345]:
            low, high = bucket_bounds(index_of(value), SUB_BITS)
            self.assertLessEqual(low, value)
            self.assertLess(value, high)

    def test_buckets_follow_each_other(self) -> None:
        for index in range(5_000):
            self.assertEqual(bucket_bounds(index, SUB_BITS)[1], bucket_bounds(index + 1, SUB_BITS)[0])


class QuantileTest(unittest.TestCase):
    def test_of_small_values_is_exact_to_half_a_bucket(self) -> None:
        values = distribution(list(range(1, 102)))
        self.assertAlmostEqual(quantile(values, 0.5), 51, delta=0.5)
        self.assertEqual(quantile(values, 0), 1.5)
        self.assertEqual(quantile(values, 1), 101)

    def test_of_large_values_is_within_the_width_of_a_bucket(self) -> None:
        values = distribution([value * 1_000_000 for value in range(1, 1_002)])
        self.assertAlmostEqual(quantile(values, 0.5) / 501e6, 1, delta=0.004)
        self.assertAlmostEqual(quantile(values, 0.99) / 991e6, 1, delta=0.004)

    def test_never_leaves_the_range_that_was_seen(self) -> None:
        values = distribution([1_000_001] * 10)
        self.assertEqual(quantile(values, 0.0), 1_000_001)
        self.assertEqual(quantile(values, 1.0), 1_000_001)

    def test_without_values(self) -> None:
        self.assertIsNone(quantile(Distribution(SUB_BITS, (), 0, 0), 0.5))


class MergeTest(unittest.TestCase):
    def test_adds_counts_and_widens_the_range(self) -> None:
        both = merge([distribution([10, 20]), distribution([20, 3000])])
        self.assertEqual((both.total, both.least, both.most), (4, 10, 3000))
        self.assertEqual(dict(both.counts)[20], 2)

    def test_an_empty_one_changes_nothing(self) -> None:
        both = merge([Distribution(SUB_BITS, (), 0, 0), distribution([7])])
        self.assertEqual((both.least, both.most), (7, 7))

    def test_different_buckets_are_refused(self) -> None:
        with self.assertRaises(ValueError):
            merge([Distribution(8, (), 0, 0), Distribution(7, (), 0, 0)])


if __name__ == "__main__":
    unittest.main()

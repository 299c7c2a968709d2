"""Histograms as the workers write them."""

import unittest

from tocsin_lab.histogram import Histogram, bucket_bounds, merge

SUB_BITS = 8


def index_of(value: int) -> int:
    """As worker/measure/histogram.hpp has it."""
    if value < 1 << SUB_BITS:
        return value
    octave = value.bit_length() - SUB_BITS - 1
    return (octave + 1) * (1 << SUB_BITS) + (value >> octave) - (1 << SUB_BITS)


def histogram(values: list[int]) -> Histogram:
    counts: dict[int, int] = {}
    for value in values:
        counts[index_of(value)] = counts.get(index_of(value), 0) + 1
    data = {"sub_bits": SUB_BITS, "least": min(values), "most": max(values), "counts": sorted(counts.items())}
    return Histogram.from_json(data)


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
        values = histogram(list(range(1, 102)))
        self.assertAlmostEqual(values.quantile(0.5), 51, delta=0.5)
        self.assertEqual(values.quantile(0), 1.5)
        self.assertEqual(values.quantile(1), 101)

    def test_of_large_values_is_within_the_width_of_a_bucket(self) -> None:
        values = histogram([value * 1_000_000 for value in range(1, 1_002)])
        self.assertAlmostEqual(values.quantile(0.5) / 501e6, 1, delta=0.004)
        self.assertAlmostEqual(values.quantile(0.99) / 991e6, 1, delta=0.004)

    def test_never_leaves_the_range_that_was_seen(self) -> None:
        values = histogram([1_000_001] * 10)
        self.assertEqual(values.quantile(0.0), 1_000_001)
        self.assertEqual(values.quantile(1.0), 1_000_001)

    def test_without_values(self) -> None:
        self.assertIsNone(Histogram(SUB_BITS, (), 0, 0).quantile(0.5))


class MergeTest(unittest.TestCase):
    def test_adds_counts_and_widens_the_range(self) -> None:
        both = merge([histogram([10, 20]), histogram([20, 3000])])
        self.assertEqual((both.total, both.least, both.most), (4, 10, 3000))
        self.assertEqual(dict(both.counts)[20], 2)

    def test_an_empty_one_changes_nothing(self) -> None:
        both = merge([Histogram(SUB_BITS, (), 0, 0), histogram([7])])
        self.assertEqual((both.least, both.most), (7, 7))

    def test_different_buckets_are_refused(self) -> None:
        with self.assertRaises(ValueError):
            merge([Histogram(8, (), 0, 0), Histogram(7, (), 0, 0)])


if __name__ == "__main__":
    unittest.main()

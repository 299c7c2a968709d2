// SPDX-License-Identifier: Apache-2.0
#include "measure/histogram.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using lab::histogram;

TEST(histogram, small_values_have_a_bucket_each) {
    for (std::uint64_t value = 0; value < histogram::per_octave; ++value) {
        EXPECT_EQ(histogram::lowest_of(histogram::index_of(value)), value);
        EXPECT_EQ(histogram::width_of(histogram::index_of(value)), 1u);
    }
}

TEST(histogram, every_value_lies_in_its_bucket_and_buckets_are_narrow) {
    for (std::uint64_t value = 1; value < histogram::largest / 3; value = value * 3 / 2 + 1) {
        const std::size_t index = histogram::index_of(value);
        EXPECT_LE(histogram::lowest_of(index), value);
        EXPECT_LT(value, histogram::lowest_of(index) + histogram::width_of(index));
        EXPECT_LE(histogram::width_of(index) * histogram::per_octave, std::max(value, histogram::per_octave));
    }
}

TEST(histogram, buckets_follow_each_other_without_a_gap) {
    const std::size_t last = histogram::index_of(histogram::largest);
    for (std::size_t index = 0; index < last; ++index) {
        EXPECT_EQ(histogram::lowest_of(index) + histogram::width_of(index), histogram::lowest_of(index + 1));
    }
}

TEST(histogram, values_beyond_its_range_saturate) {
    EXPECT_EQ(histogram::index_of(~std::uint64_t{0}), histogram::index_of(histogram::largest));
}

TEST(histogram, quantiles_of_known_data) {
    histogram values;
    for (std::uint64_t value = 1; value <= 100; ++value) values.record(value);
    EXPECT_EQ(values.quantile(0), 1u);
    EXPECT_EQ(values.quantile(0.5), 50u);
    EXPECT_EQ(values.quantile(0.99), 99u);
    EXPECT_EQ(values.quantile(1), 100u);
}

TEST(histogram, quantiles_of_large_values_are_within_a_bucket) {
    histogram values;
    for (std::uint64_t value = 1; value <= 1'000; ++value) values.record(value * 1'000'000);
    EXPECT_NEAR(static_cast<double>(values.quantile(0.5)), 500e6, 500e6 * 0.004);
    EXPECT_EQ(values.least(), 1'000'000u);
    EXPECT_EQ(values.most(), 1'000'000'000u);
}

TEST(histogram, a_batch_counts_as_its_mean) {
    histogram values;
    values.record_batch(100, 400);  // 100 ns for 400 operations: 250 ps each
    EXPECT_EQ(values.total(), 1u);
    EXPECT_EQ(values.quantile(0.5), 250u);
}

TEST(histogram, merging_adds) {
    histogram one, other;
    one.record(10);
    other.record(20);
    other.record(30);
    one.merge(other);
    EXPECT_EQ(one.total(), 3u);
    EXPECT_EQ(one.least(), 10u);
    EXPECT_EQ(one.most(), 30u);
    EXPECT_EQ(one.sum(), 60.0);
}

TEST(histogram, an_empty_one_has_no_quantiles) {
    const histogram values;
    EXPECT_EQ(values.quantile(0.5), 0u);
    EXPECT_EQ(values.least(), 0u);
}

}  // namespace

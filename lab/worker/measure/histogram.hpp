// SPDX-License-Identifier: Apache-2.0
// A log-linear histogram: each power of two is cut into the same number of equal buckets, so that it keeps every value
// within 0.4 %, whether a nanosecond or a minute (the idea of HdrHistogram).
//
// Values are picoseconds, because an operation can take less than a nanosecond. Recording increments counters and
// neither allocates nor locks. Each thread records into its own histogram; they are merged afterwards.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lab {

class histogram {
public:
    static constexpr unsigned sub_bits = 8;
    static constexpr std::uint64_t per_octave = std::uint64_t{1} << sub_bits;
    static constexpr unsigned value_bits = 52;  // more than an hour in picoseconds; larger ones saturate
    static constexpr std::uint64_t largest = (std::uint64_t{1} << value_bits) - 1;

    histogram() : counts_((value_bits - sub_bits + 1) * per_octave) {}

    // Values below `per_octave` have a bucket each; above, `octave` bits are dropped.
    static constexpr std::size_t index_of(std::uint64_t value) noexcept {
        value = std::min(value, largest);
        if (value < per_octave) return value;
        const unsigned octave = static_cast<unsigned>(std::bit_width(value)) - sub_bits - 1;
        return static_cast<std::size_t>((octave + 1) * per_octave + ((value >> octave) - per_octave));
    }

    // The lowest value in the bucket, and how many different values it holds.
    static constexpr std::uint64_t lowest_of(std::size_t index) noexcept {
        if (index < per_octave) return index;
        const std::uint64_t octave = index / per_octave - 1;
        return (index % per_octave + per_octave) << octave;
    }
    static constexpr std::uint64_t width_of(std::size_t index) noexcept {
        return index < per_octave ? 1 : std::uint64_t{1} << (index / per_octave - 1);
    }

    void record(std::uint64_t picoseconds) noexcept {
        ++counts_[index_of(picoseconds)];
        ++total_;
        sum_ += static_cast<double>(picoseconds);
        least_ = std::min(least_, picoseconds);
        most_ = std::max(most_, picoseconds);
    }

    // Counts `operations` that took `nanoseconds` in total as one value, their mean.
    void record_batch(std::int64_t nanoseconds, std::uint64_t operations) noexcept {
        const double mean = static_cast<double>(std::max<std::int64_t>(nanoseconds, 0)) * 1e3 /
                            static_cast<double>(operations);
        record(static_cast<std::uint64_t>(mean + 0.5));
    }
    void record_nanoseconds(std::int64_t nanoseconds) noexcept { record_batch(nanoseconds, 1); }

    void merge(const histogram& other) noexcept {
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
        total_ += other.total_;
        sum_ += other.sum_;
        least_ = std::min(least_, other.least_);
        most_ = std::max(most_, other.most_);
    }

    std::uint64_t total() const noexcept { return total_; }
    std::uint64_t least() const noexcept { return total_ == 0 ? 0 : least_; }
    std::uint64_t most() const noexcept { return most_; }
    double sum() const noexcept { return sum_; }

    // The value below which the share `q` of all values lies, to within a bucket's width; 0 if there are none.
    std::uint64_t quantile(double q) const noexcept {
        if (total_ == 0) return 0;
        const auto rank = static_cast<std::uint64_t>(q * static_cast<double>(total_ - 1));
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (seen > rank) return std::clamp(lowest_of(i) + width_of(i) / 2, least_, most_);
        }
        return most_;
    }

    // f(index, count) for every bucket that holds something, in order.
    template <class F>
    void for_each(F&& f) const {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] != 0) f(i, counts_[i]);
        }
    }

private:
    std::vector<std::uint64_t> counts_;
    std::uint64_t total_ = 0;
    std::uint64_t least_ = ~std::uint64_t{0};
    std::uint64_t most_ = 0;
    double sum_ = 0;
};

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// What a thread, a message or the global order of sequentially consistent operations knows about memory. A view holds,
// for every location, the newest message that has been seen. It also says how much of every thread's past it includes
// (happens-before, for the race checks).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tocsin::model {

// A message's position in its location's modification order. It is not an index, because a store may be put between two
// older ones. Its type is small because almost every step joins views.
using timestamp = std::int32_t;

inline constexpr int max_threads = 12;
using thread_mask = std::uint32_t;
using thread_clock = std::array<std::uint32_t, max_threads>;

constexpr thread_mask mask_of(int thread) noexcept { return thread_mask{1} << thread; }

class view {
public:
    void clear() noexcept {
        seen_.clear();
        clock.fill(0);
    }

    timestamp at(std::size_t location) const noexcept {
        return location < seen_.size() ? seen_[location] : 0;
    }

    void raise(std::size_t location, timestamp to) {
        if (location >= seen_.size()) seen_.resize((location / grows_by + 1) * grows_by, 0);
        seen_[location] = std::max(seen_[location], to);
    }

    // Knowledge of memory alone, which a sequentially consistent fence passes on. It does not order the threads'
    // plain accesses.
    void join_seen(const view& other) {
        if (other.seen_.size() > seen_.size()) seen_.resize(other.seen_.size(), 0);
        for (std::size_t i = 0; i < other.seen_.size(); ++i) seen_[i] = std::max(seen_[i], other.seen_[i]);
    }

    // Everything: what synchronizes-with passes on.
    void join(const view& other) {
        join_seen(other);
        for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other.clock[i]);
    }

    bool includes(int thread, std::uint32_t epoch) const noexcept {
        return clock[static_cast<std::size_t>(thread)] >= epoch;
    }

    // Whether this view includes, of each thread, all that the clock `other` includes. A loop without an early end
    // takes several at a time.
    bool includes(const thread_clock& other) const noexcept {
        std::uint32_t missing = 0;
        for (std::size_t i = 0; i < clock.size(); ++i) missing |= other[i] > clock[i] ? 1 : 0;
        return missing == 0;
    }

    thread_clock clock{};

private:
    static constexpr std::size_t grows_by = 16;  // locations at a time

    std::vector<timestamp> seen_;
};

}  // namespace tocsin::model

// SPDX-License-Identifier: Apache-2.0
// What a thread remembers of its urgency (system.hpp), so that it asks the system once a second at most.
#pragma once

#include "platform/system/system.hpp"

#include <cstdint>

namespace tocsin::platform {

class cached_urgency {
public:
    // The urgency at `now`, a time of the steady clock in ticks. Calls `ask()` if the thread has not asked in this
    // second.
    template <class Ask>
    unsigned at(std::int64_t now, Ask ask) noexcept {
        const auto second = static_cast<std::uint32_t>(static_cast<std::uint64_t>(now) >> 30) << answer_bits;
        if (word_ == 0 || ((word_ ^ second) >> answer_bits) != 0) word_ = second | (ask() + 1);
        return known();
    }
    unsigned known() const noexcept {
        const std::uint32_t answer = word_ & ((1u << answer_bits) - 1);
        return answer != 0 ? answer - 1 : ordinary_urgency;
    }
    void forget() noexcept { word_ = 0; }

private:
    static constexpr unsigned answer_bits = urgency_bits + 1;

    // The upper bits hold when the thread last asked, the lower ones the answer plus 1. 0: it has not asked.
    std::uint32_t word_ = 0;
};

}  // namespace tocsin::platform

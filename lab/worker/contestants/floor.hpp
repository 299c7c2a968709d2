// SPDX-License-Identifier: Apache-2.0
// The floor is not a primitive: in each scenario it runs the operation that the machine needs at least. Each scenario
// says what that is; the scenario `floors` measures all of them alone.
#pragma once

#include "../contestant.hpp"

#include <atomic>
#include <cstdint>

namespace lab {

struct floor_contestant {
    static constexpr contestant_info info{
        .name = "floor",
        .label = "floor",
        .role = role::floor,
        .about = "what the machine needs at least for this operation",
    };
};

// An unconditional exchange on every set: shows what a cheap check before it saves.
struct exchange_contestant {
    static constexpr contestant_info info{
        .name = "exchange",
        .label = "unconditional exchange",
        .role = role::reference,
        .about = "set() is one exchange, whatever the state",
        .limits = "nobody can wait for it",
    };

    class manual_event {
    public:
        void set() noexcept { (void)state_.exchange(1, std::memory_order_acq_rel); }
        bool is_set() const noexcept { return state_.load(std::memory_order_acquire) != 0; }

    private:
        std::atomic<std::uint8_t> state_{0};
    };
    using auto_event = manual_event;
};

}  // namespace lab

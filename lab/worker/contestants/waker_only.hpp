// SPDX-License-Identifier: Apache-2.0
// The `info` of a contestant that only wakes loops.
#pragma once

#include "../contestant.hpp"

#include <string_view>

namespace lab {

struct waker_only : contestant_info {
    constexpr waker_only(std::string_view its_name, std::string_view its_label, std::string_view its_about,
                         std::string_view its_limits, lab::role its_role = role::peer,
                         tier from = tier::quick) noexcept
        : contestant_info{.name = its_name,
                          .label = its_label,
                          .role = its_role,
                          .about = its_about,
                          .limits = its_limits,
                          .no_manual_event = "wakes a loop",
                          .no_auto_event = "wakes a loop",
                          .no_lock = "wakes a loop",
                          .no_address_wait = "wakes a loop",
                          .included_from = from} {}
};

}  // namespace lab

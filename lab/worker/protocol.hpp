// SPDX-License-Identifier: Apache-2.0
// What a worker prints; lab/README.md describes it in the section "The protocol".
#pragma once

#include "registry.hpp"

#include <string>

namespace lab {

inline constexpr int protocol_version = 1;

std::string describe(const registry& all);

std::string report(const registered_scenario& scenario, const contestant_info& contestant, const context& run,
                   double budget_seconds);

std::string_view name_of(role which);
std::string_view name_of(tier which);

}  // namespace lab

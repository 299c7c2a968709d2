// SPDX-License-Identifier: Apache-2.0
// What an event is part of. Only diagnose.hpp and tracers show it.
#pragma once

#include <cstdint>

namespace tocsin::detail {

enum class event_use : std::uint8_t { event, latch, barrier };

}  // namespace tocsin::detail

// SPDX-License-Identifier: Apache-2.0
// How often this thread has called operator new, which allocations.cpp replaces.
#pragma once

#include <cstdint>

namespace lab {

std::uint64_t allocations() noexcept;

}  // namespace lab

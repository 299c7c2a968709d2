// SPDX-License-Identifier: Apache-2.0
// The setting of platform/futex/table_growth.hpp.
#include "platform/futex/sleeper_table.hpp"

#include <tocsin/futex_table.hpp>

namespace tocsin {

void set_futex_table_growth(bool allowed) noexcept { platform::allow_table_growth(allowed); }
bool futex_table_growth() noexcept { return platform::may_table_grow(); }

}  // namespace tocsin

// SPDX-License-Identifier: Apache-2.0
// The clock that also runs while the machine is suspended, as the system has it.
//
// Checked by: tests/unit/clock_jump_test.cpp.
#include "platform/system/system.hpp"

#include <tocsin/boot_clock.hpp>

namespace tocsin {

boot_clock::time_point boot_clock::now() noexcept { return time_point(duration(platform::boot_time())); }

}  // namespace tocsin

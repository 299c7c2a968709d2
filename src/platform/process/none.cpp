// SPDX-License-Identifier: Apache-2.0
// Systems without a descriptor for the end of a process.
#include "platform/process/process.hpp"

#include <cerrno>
#include <optional>

namespace tocsin::platform {

int open_process(process_number, int&) noexcept { return ENOSYS; }

std::optional<process_ending> how_process_ended(int, process_number) noexcept { return std::nullopt; }

}  // namespace tocsin::platform

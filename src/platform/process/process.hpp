// SPDX-License-Identifier: Apache-2.0
// A descriptor that is readable once a process has ended; on Windows a HANDLE that is signaled.
#pragma once

#include <optional>

namespace tocsin::platform {

#if defined(_WIN32)
using process_number = unsigned long;
#else
using process_number = int;
#endif

struct process_ending {
    unsigned code;
    bool by_signal;
};

// Opens the descriptor and returns 0, or returns the system's error.
int open_process(process_number id, int& descriptor) noexcept;
#if defined(_WIN32)
int duplicate_process(void* handle, int& descriptor) noexcept;
#endif

// How the process ended, if the system tells the caller without reaping the process.
std::optional<process_ending> how_process_ended(int descriptor, process_number id) noexcept;

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// The processes that scenes start. A process with many threads must not fork a child that allocates memory:
// an allocator that forgets to prepare for fork (AddressSanitizer's, before GCC 13) leaves its locks in the child as
// other threads held them. So the soak forks one process before it starts its first thread, and that one, which has no
// other thread, forks all the others.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace soak {

// Call before the first thread is started. What the processes are to share must be mapped by then.
void prepare_processes();

// Starts a process that calls `body(memory, number)` and ends. Returns a number at most 0 if that fails.
pid_t start_process(void (*body)(void* memory, std::uint32_t number), void* memory, std::uint32_t number);

// Kills the process, and returns when the system has forgotten it.
void kill_process(pid_t id);

// Waits until the process has ended. Returns whether its body has returned.
bool has_ended_well(pid_t id);

}  // namespace soak

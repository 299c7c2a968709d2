// SPDX-License-Identifier: Apache-2.0
// Whether the library may enlarge the kernel's table of the process's sleeping threads.
#pragma once

#include <tocsin/detail/config.hpp>

namespace tocsin {

// Linux 6.16 and later keep the sleeping threads of a process in a table, which the kernel makes for a few threads (16
// slots on a machine with 4 processors or fewer). With thousands of threads, every wake in the process becomes slower.
// So the library enlarges the table by prctl(PR_FUTEX_HASH), unless the program forbids that here.
//
// When: a thread sleeps in a wait of the library, and the process has at least 16 threads for each slot of the table.
// The table then gets 1,024 slots for 256 threads, and 65,536 slots, which is the most, for 16,384 threads. The caller
// is a thread that is about to sleep, whose deadline is not within 100 ms, and which has no real-time policy. A wait of
// this thread may return late by the time that the kernel needs: 20 to 45 ms measured, up to 200 ms on a busy machine.
// Other threads are not delayed. Cost: 64 bytes of the kernel's memory for each slot, and otherwise two system calls in
// some 16,000 sleeps, or in 64 first sleeps of threads. The library never makes the table smaller. It leaves the table
// alone if the program has set more slots than the kernel chooses on its own (4 for each processor, at least 16), if
// the program has frozen the table or has chosen the table of the whole system, if /proc/self/task can't be looked at,
// and for good after a call has failed. A child process, and a program started by exec, begin again with the kernel's
// usual table.
//
// Any thread may call this at any time; a call of another thread to the kernel may be under way. Call it before the
// process has 64 threads if a seccomp filter ends programs that call prctl() with options that the filter doesn't know.
// Each copy of the library in the process has a setting of its own. On other systems, and on older kernels, this does
// nothing. Never fails, blocks or allocates.
TOCSIN_API void set_futex_table_growth(bool allowed) noexcept;
// What was set last, true at first. On systems other than Linux always false.
[[nodiscard]] TOCSIN_API bool futex_table_growth() noexcept;

}  // namespace tocsin

// SPDX-License-Identifier: Apache-2.0
// Whether the library may enlarge the kernel's table of the process's sleeping threads.
#pragma once

#include <tocsin/detail/config.hpp>

namespace tocsin {

// Says whether the library may enlarge the kernel's table of this process's sleeping threads. Linux 6.16 and later make
// that table for a few threads, and with thousands every wake in the process becomes slower. The library enlarges it by
// prctl(PR_FUTEX_HASH), at most twice in a process, before a thread sleeps in one of its waits. That wait may return 20
// to 200 ms late; other threads are not delayed. Each slot costs 64 bytes of the kernel's memory. A table that the
// program has enlarged or frozen is left alone. docs/decisions/0054-futex-table.md says more.
//
// Any thread may call this at any time; a call of another thread to the kernel may be under way. Call it before the
// process has 64 threads if a seccomp filter ends programs that call prctl() with options that the filter doesn't know.
// Each copy of the library in the process has a setting of its own. On other systems, and on older kernels, this does
// nothing. Never fails, blocks or allocates.
TOCSIN_API void set_futex_table_growth(bool allowed) noexcept;
// What was set last, true at first. On systems other than Linux always false.
[[nodiscard]] TOCSIN_API bool futex_table_growth() noexcept;

}  // namespace tocsin

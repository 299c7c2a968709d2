// SPDX-License-Identifier: Apache-2.0
// The contestants of the worker for Windows. std::atomic's wait and what is made of it (semaphores, std::latch) are
// left out: they hang now and then with MinGW-w64 (docs/platforms.md).
#pragma once

#include "../contestants/channels.hpp"
#include "../contestants/flags.hpp"
#include "../contestants/floor.hpp"
#include "../contestants/futex.hpp"
#include "../contestants/group_commit.hpp"
#include "../contestants/standard.hpp"
#include "../contestants/tocsin.hpp"
#include "../contestants/windows.hpp"
#include "../registry.hpp"

namespace lab {

using lineup =
    contestants<floor_contestant, exchange_contestant, tocsin_default, tocsin_long_spin, tocsin_handler,
                tocsin_gathering, raw_futex, tracked_futex, futex_relay, windows_event, windows_semaphore,
                windows_interlocked, srw_cond, critical_section_cond, std_cond, srw_lock,
                critical_section_lock, std_mutex, group_one_cond, group_cond_each, group_futex,
                std_cond_flags, std_cond_queue, std_cond_queues, tocsin_one_channel>;

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// The contestants of plain `./dev lab`: tocsin, and what people use today. They are a part of those of main.hpp, so
// that a first run waits for little to be built.
#pragma once

#include "../contestants/descriptors.hpp"
#include "../contestants/flags.hpp"
#include "../contestants/floor.hpp"
#include "../contestants/futex.hpp"
#include "../contestants/group_commit.hpp"
#include "../contestants/many.hpp"
#include "../contestants/pthread.hpp"
#include "../contestants/semaphores.hpp"
#include "../contestants/standard.hpp"
#include "../contestants/tocsin.hpp"
#include "../contestants/wakers.hpp"
#include "../registry.hpp"

namespace lab {

using lineup =
    contestants<floor_contestant, tocsin_default, raw_futex, tracked_futex, futex_relay, pthread_cond,
                eventfd_event, posix_semaphore, std_atomic, std_binary_semaphore, std_counting_semaphore,
                std_latch, std_mutex, pthread_mutex, group_one_cond, group_cond_each, group_futex,
                group_atomic, std_cond_flags, eventfd_poll, eventfd_epoll, tocsin_wait_any>;

}  // namespace lab

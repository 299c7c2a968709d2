// SPDX-License-Identifier: Apache-2.0
// The contestants of the main worker.
#pragma once

#include "../contestants/async_waits.hpp"
#include "../contestants/between.hpp"
#include "../contestants/c.hpp"
#include "../contestants/channels.hpp"
#include "../contestants/descriptors.hpp"
#include "../contestants/flags.hpp"
#include "../contestants/floor.hpp"
#include "../contestants/futex.hpp"
#include "../contestants/group_commit.hpp"
#include "../contestants/listed_event.hpp"
#include "../contestants/many.hpp"
#include "../contestants/pthread.hpp"
#include "../contestants/rejected.hpp"
#include "../contestants/resumed_event.hpp"
#include "../contestants/semaphores.hpp"
#include "../contestants/senders.hpp"
#include "../contestants/standard.hpp"
#include "../contestants/tocsin.hpp"
#include "../contestants/tocsin_semaphore.hpp"
#include "../contestants/uring.hpp"
#include "../contestants/wakers.hpp"
#include "../contestants/win32.hpp"
#include "../registry.hpp"

namespace lab {

using lineup =
    contestants<floor_contestant, exchange_contestant, tocsin_default, tocsin_latch, tocsin_condition,
                tocsin_long_spin, tocsin_handler, tocsin_gathering, raw_futex, tracked_futex, futex_relay,
                uring_futex, pthread_cond, eventfd_event, pipe_event, posix_semaphore, std_atomic,
                std_binary_semaphore, std_counting_semaphore, std_latch, std_mutex, pthread_mutex,
                group_one_cond, group_cond_each, group_futex, group_atomic, std_cond_flags, std_cond_queue,
                std_cond_queues, tocsin_one_channel, eventfd_poll, pipe_poll, pipe_select, eventfd_epoll,
                tocsin_wait_any, tocsin_coalesced, tocsin_semaphore, tocsin_co_await, tocsin_co_await_one,
                tocsin_sender, tocsin_c, tocsin_win32, tocsin_win32_semaphore, tocsin_interlocked,
                tocsin_try_wait, hand_made_async, hand_made_resumed, rejected_futex_word, rejected_one_by_one,
                rejected_no_spin, tocsin_shared, tocsin_in_threads, shared_futex, shared_posix_semaphore,
                shared_pthread_cond, inherited_eventfd, inherited_pipe, system_v_semaphore>;

}  // namespace lab

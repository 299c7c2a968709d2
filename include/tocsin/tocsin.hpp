// SPDX-License-Identifier: Apache-2.0
// All of tocsin. Each header can also be included alone. Missing here are sender.hpp (with execution.hpp), asio.hpp,
// uv.hpp and glib.hpp. They are for users of other libraries, and include headers of those libraries.
#pragma once

#include <tocsin/address.hpp>
#include <tocsin/await.hpp>
#include <tocsin/barrier.hpp>
#include <tocsin/bit_lock.hpp>
#include <tocsin/boot_clock.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/coalescer.hpp>
#include <tocsin/condition.hpp>
#include <tocsin/deadline.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/futex_table.hpp>
#include <tocsin/group_commit.hpp>
#include <tocsin/handler_thread.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/pollable.hpp>
#include <tocsin/process.hpp>
#include <tocsin/queue_order.hpp>
#include <tocsin/readiness.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_memory.hpp>
#include <tocsin/shared_semaphore.hpp>
#include <tocsin/signal.hpp>
#include <tocsin/source.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/status.hpp>
#include <tocsin/stop_token.hpp>
#include <tocsin/task.hpp>
#include <tocsin/ticker.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_group.hpp>
#include <tocsin/wait_set.hpp>
#include <tocsin/watchdog.hpp>
#include <tocsin/word_lock.hpp>

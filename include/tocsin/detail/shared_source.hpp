// SPDX-License-Identifier: Apache-2.0
// The shared events and the shared semaphore as sources (source.hpp). Why it is correct: src/shared_source.cpp.
//
// A wait for several sources looks at a shared object as it looks at others, without a system call. If the wait must
// queue, threads of the library keep its place at the shared objects. So, unlike the waits of the objects themselves,
// it goes to another thread and back when it queues for a token, and when it ends without the token; and a release goes
// through two threads. The first such wait of a process starts these two threads, and each 32 more that wait at one
// time a further one.
//
// A token (an auto-reset event, or a permit) that is handed to a wait which another source, a deadline or a stop has
// ended at the same moment is handed to the next wait, or back to the object, before the wait returns. To others that
// looks as if it had been given a moment later: the event may be set again after a reset() that came in between.
//
// If all slots of an object are taken, such a wait looks at the object every 10 ms, until it gets a slot. In that time
// it is in no order with others.
//
// The conversion to a source throws std::system_error: function_not_supported on systems other than Linux,
// invalid_argument if the memory holds an object of another kind or version, or what the system says if it can't start
// a thread. wait_all() and wait_set::add() refuse such a source with std::invalid_argument.
// (docs/between_processes.md says why.)
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/detail/shared_layout.hpp>
#include <tocsin/source.hpp>

namespace tocsin::detail {

// `header` is that of an object of this kind.
TOCSIN_API source shared_source(shared_header& header TOCSIN_LIFETIMEBOUND, shared_kind kind);

}  // namespace tocsin::detail

// SPDX-License-Identifier: Apache-2.0
// One table of waiters for the process, even if the process holds several copies of the library. For example, two
// plug-ins each link it statically, or the program links it statically and a plug-in as a shared library.
#pragma once

#include <cstdint>

namespace tocsin::platform {

// Each copy calls this once while it is being loaded, before any thread can use the copy. `own` is the copy's own
// table. `layout` is a number for everything of the core that copies share (core/lot/shared_layout.hpp).
//
// If copies with the same layout, futex and poller were loaded before, the caller adopts the first of them: the
// function returns that copy's table and keeps that copy loaded. From that copy the caller also gets the table of
// sleepers (if the futex has one), the doorbells of the poller, and the slots of threads (thread_slots.hpp). Otherwise
// the function returns `own`, as it always does where copies do not find each other (alone.cpp).
//
// Warns on the standard error stream if it finds a copy with another layout, futex or poller, because events shared
// between the two copies would not work.
void* adopt_first_copy(void* own, std::uint64_t layout) noexcept;

}  // namespace tocsin::platform

// One table of waiters for the process, even if the process holds several copies of the library. For example, two
// plug-ins each link it statically, or the program links it statically and a plug-in as a shared library.
#pragma once

#include <cstdint>

namespace tocsin::platform {

// Each copy calls this once while it is being loaded, before any thread can use the copy. `own` is the copy's own
// table. `layout` is a number for everything of the core that copies share (core/lot/shared_layout.hpp).
//
// If a copy with the same layout, futex and poller was loaded before, the caller adopts the first such copy: the
// function returns that copy's table and keeps that copy loaded. The caller also gets that copy's table of sleepers (if
// the futex has one), the doorbells of its poller, and its slots of threads (thread_slots.hpp). Otherwise the function
// returns `own`.
//
// Warns on the standard error stream if the process has a copy with another layout, futex or poller, because events
// shared between the two copies would not work.
void* adopt_first_copy(void* own, std::uint64_t layout) noexcept;

}  // namespace tocsin::platform

// One table of waiters for the process, even if it holds several copies of the library: linked statically into two
// plug-ins, or once statically and once as a shared library.
#pragma once

#include <cstdint>

namespace tocsin::platform {

// Each copy calls this once while it is loaded, before any thread can use it. Returns the table of the copy loaded
// first whose `layout` is the same, and keeps that copy loaded; or `own`, if this is the first. Also adopts that copy's
// table of sleepers, where the futex has one, its poller's doorbells, and its slots of threads (thread_slots.hpp).
// `layout` stands for everything of the core that copies share (core/lot/shared_layout.hpp).
// Warns on the standard error stream if the process has a copy with another layout, futex or poller: events shared
// between the two would not work.
void* adopt_first_copy(void* own, std::uint64_t layout) noexcept;

}  // namespace tocsin::platform

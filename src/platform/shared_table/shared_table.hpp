// One table of waiters for the process, even if it holds several copies of the library: linked statically into two
// plug-ins, or once statically and once as a shared library.
#pragma once

#include <cstddef>

namespace tocsin::platform {

// Each copy calls this once while it is loaded, before any thread can use it. Returns the table of the copy loaded
// first whose table has the same layout and `size`, and keeps that copy loaded; or `own`, if this is the first. Also
// adopts that copy's table of sleepers, where the futex has one, and its poller's doorbells.
// Warns on the standard error stream if the process has a copy with another layout, futex or poller: events shared
// between the two would not work.
void* adopt_first_copy(void* own, std::size_t size) noexcept;

}  // namespace tocsin::platform

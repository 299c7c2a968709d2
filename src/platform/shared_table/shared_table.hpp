// One table of waiters for the process, also when it holds several copies of the library: linked statically
// into two plug-ins, or statically and as a shared library.
#pragma once

#include <cstddef>

namespace tocsin::platform {

// Called once by each copy while it is loaded, before any thread can use it. Returns the table of the copy
// loaded first that has one of the same layout and `size`, which it keeps loaded; or `own`, if this is the
// first. The same goes for the futex's table of sleepers, where it has one, and for the poller's doorbells.
// Says loudly on the standard error stream when a copy with another layout, another futex or another poller
// is there: events shared between the two would not work.
void* adopt_first_copy(void* own, std::size_t size) noexcept;

}  // namespace tocsin::platform

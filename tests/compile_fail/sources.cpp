// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/source.hpp>

tocsin::auto_reset_event global;

tocsin::source fine() { return global; }

// expect of clang: address of stack memory
#ifdef MISUSE_source_of_local_event
tocsin::source dangling() {
    tocsin::auto_reset_event local;
    return local;
}
#endif

// expect: could not convert|cannot convert|no viable conversion|conversion from
#ifdef MISUSE_source_of_temporary_event
tocsin::source temporary() { return tocsin::auto_reset_event(); }
#endif

void woken(tocsin::entry_list& list) { list.notify_one().wake(); }

// expect: unused-result
#ifdef MISUSE_wake_list_ignored
void ignored(tocsin::entry_list& list) { list.notify_one(); }
#endif

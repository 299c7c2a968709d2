// SPDX-License-Identifier: Apache-2.0
// A set auto-reset event satisfies one wait. The second wait, for no time, must end with a timeout.
#include "reproduction.hpp"

#include <tocsin/event.hpp>

#include <winpr/synch.h>
#include <winpr/version.h>

namespace {

using namespace reproduction;

constexpr std::uint64_t rounds = 1000;

outcome with_winpr(double seconds) {
    outcome found{.version = "WinPR " WINPR_VERSION_FULL};
    for (const budget time(seconds); found.tries < rounds && !time.spent(); ++found.tries) {
        HANDLE event = CreateEventA(nullptr, FALSE, FALSE, nullptr);
        SetEvent(event);
        const bool first = WaitForSingleObject(event, 0) == WAIT_OBJECT_0;
        const bool second = WaitForSingleObject(event, 0) == WAIT_OBJECT_0;
        found.seen += first && second;
        CloseHandle(event);
    }
    return found;
}

outcome with_tocsin(double seconds) {
    outcome found{.version = "auto_reset_event"};
    for (const budget time(seconds); found.tries < rounds && !time.spent(); ++found.tries) {
        tocsin::auto_reset_event event;
        event.set();
        const bool first = event.try_wait();
        const bool second = event.try_wait();
        found.seen += !first || second;
    }
    return found;
}

}  // namespace

int main(int count, char** arguments) {
    // Otherwise WinPR complains about each such event. No other thread runs yet.
    setenv("WLOG_LEVEL", "OFF", 1);  // NOLINT(concurrency-mt-unsafe)
    return run(count, arguments, with_winpr, with_tocsin);
}

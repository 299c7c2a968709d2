// expect only: tocsin: a condition is no source
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/condition.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

#include <mutex>

void wait_with_lock(tocsin::condition& changed, std::unique_lock<std::mutex>& lock,
                    tocsin::auto_reset_event& job) {
    (void)changed.wait_any(lock, job);
}

#if defined(MISUSE)
void wait_for_condition(tocsin::condition& changed, tocsin::auto_reset_event& job) {
    (void)tocsin::wait_any(changed, job);
}
#endif

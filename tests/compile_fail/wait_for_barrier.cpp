// expect only: Write const auto token = barrier.arrive\(\);
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/barrier.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

tocsin::auto_reset_event a;
tocsin::barrier<> meeting(1);

void fine() {
    const auto token = meeting.arrive();
    tocsin::wait_any(a, token);
}

#if defined(MISUSE)
void wait() { tocsin::wait_any(a, meeting); }
#endif

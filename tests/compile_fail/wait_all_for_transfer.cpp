// expect only: If an object of your type stays ready, declare that
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/channel.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>

tocsin::auto_reset_event a;
tocsin::channel<int> items(1);

void fine() {
    auto next = items.receiving();
    tocsin::wait_any(a, next);
}

#if defined(MISUSE)
void wait() {
    auto next = items.receiving();
    (void)tocsin::wait_all({.until = std::chrono::seconds(5)}, a, next);
}
#endif

// expect only: tocsin: nobody can set a temporary
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/channel.hpp>
#include <tocsin/wait.hpp>

void receive_by_name(tocsin::channel<int>& from) {
    auto next = from.receiving();
    (void)tocsin::wait_any(next);
}

#if defined(MISUSE)
void receive_nameless(tocsin::channel<int>& from) { (void)tocsin::wait_any(from.receiving()); }
#endif

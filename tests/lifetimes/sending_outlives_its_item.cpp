// expect: does not live long enough|is returned \[
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/channel.hpp>
#include <tocsin/wait.hpp>

void fine(tocsin::channel<int>& into, int item) {
    auto next = into.sending(item);
    (void)tocsin::wait_any(next);
}

#if defined(MISUSE)
tocsin::send_transfer<int> dangles(tocsin::channel<int>& into) {
    int item = 7;
    return into.sending(item);
}
#endif

// expect: does not live long enough|is returned \[
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/channel.hpp>

#include <memory>

void fine(tocsin::channel<int>& from) {
    auto next = from.receiving();
    (void)next;
}

#if defined(MISUSE)
void dangles() {
    auto next = std::make_unique<tocsin::channel<int>>(1)->receiving();
    (void)next;
}
#endif

// expect: does not live long enough|is returned \[
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/channel.hpp>

tocsin::channel<int> global(1);

tocsin::receive_transfer<int> fine() { return global.receiving(); }

#if defined(MISUSE)
tocsin::receive_transfer<int> dangles() {
    tocsin::channel<int> local(1);
    return local.receiving();
}
#endif

// expect: an object of 1, 2, 4 or 8 bytes
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

struct three {
    unsigned char bytes[3];
};

#if defined(MISUSE)
void wait(const three* address) { (void)tocsin::wait_on_address(address, three{}); }
#endif

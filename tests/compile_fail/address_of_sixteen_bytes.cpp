// expect: an object of 1, 2, 4 or 8 bytes
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

struct sixteen {
    std::uint64_t halves[2];
};

#if defined(MISUSE)
void wait(const sixteen* address) { (void)tocsin::wait_on_address(address, sixteen{}); }
#endif

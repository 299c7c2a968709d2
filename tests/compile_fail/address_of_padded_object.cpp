// expect: must not have padding
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

struct padded {
    std::uint8_t one;
    std::uint16_t two;
};

#if defined(MISUSE)
void wait(const padded* address) { (void)tocsin::wait_on_address(address, padded{}); }
#endif

// expect: needs a trivially copyable type
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

struct counted {
    counted() = default;
    counted(const counted& other) : count(other.count + 1) {}
    std::uint32_t count = 0;
};

#if defined(MISUSE)
void wait(const counted* address) { (void)tocsin::wait_on_address(address, counted{}); }
#endif

// expect: an object of 1, 2, 4 or 8 bytes
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

struct three {
    std::uint8_t bytes[3];
};

#if defined(MISUSE)
void change(std::atomic<three>* address) { tocsin::store(address, three{}, tocsin::wake_all); }
#endif

// expect: conver
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

void wait(const std::uint8_t* address) { (void)tocsin::wait_on_address(address, std::uint8_t{1}); }

#if defined(MISUSE)
void wait(const std::uint8_t* address, const char* value) { (void)tocsin::wait_on_address(address, value); }
#endif

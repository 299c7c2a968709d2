// expect: too few arguments|no matching function
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

#if defined(MISUSE)
void change(std::atomic<int>* address) { tocsin::store(address, 1); }
#endif

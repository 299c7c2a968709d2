// expect: could not convert|no known conversion|no matching function
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

#if defined(MISUSE)
void change(std::atomic<int>* address) { tocsin::fetch_add(address, 1, 3); }  // wake_n(3)
#endif

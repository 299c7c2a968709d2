// expect: const
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

#if defined(MISUSE)
void change(const std::atomic<int>* address) { tocsin::store(address, 1, tocsin::wake_all); }
#endif

// expect: fetch_or
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

#if defined(MISUSE)
void change(std::atomic<bool>* address) { tocsin::fetch_or(address, true, tocsin::wake_all); }
#endif

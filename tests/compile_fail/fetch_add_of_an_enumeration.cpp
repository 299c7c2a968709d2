// expect: no matching function
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/address.hpp>

enum class phase : std::uint8_t { closed, open };

#if defined(MISUSE)
void change(std::atomic<phase>* address) { tocsin::fetch_add(address, 1, tocsin::wake_all); }
#endif

// expect: needs an unsigned integer of 1, 2, 4 or 8 bytes
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/bit_lock.hpp>

std::atomic<std::uint32_t> flags;
tocsin::bit_lock guard(flags, 31);

#if defined(MISUSE)
std::atomic<std::int32_t> signed_flags;
tocsin::bit_lock wrong(signed_flags, 31);
#endif

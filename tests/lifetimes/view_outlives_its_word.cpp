// expect: does not live long enough|is returned \[
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/bit_lock.hpp>

#include <atomic>
#include <cstdint>

std::atomic<std::uint32_t> global{0};

tocsin::bit_lock<std::uint32_t> fine() { return tocsin::bit_lock<std::uint32_t>(global, 3); }

#if defined(MISUSE)
tocsin::bit_lock<std::uint32_t> dangling() {
    std::atomic<std::uint32_t> local{0};
    return tocsin::bit_lock<std::uint32_t>(local, 3);
}
#endif

// SPDX-License-Identifier: Apache-2.0
// WaitOnAddress() by tocsin's waits on addresses (src/address.cpp). A wake releases only threads that wait at this
// moment, first in, first out.
//
// Checked by: win32/tests/address_test.cpp.
#include "object.hpp"
#include "wait.hpp"

#include <tocsin/address.hpp>

#include <cstring>

namespace tocsin::win32 {
namespace {

template <class T>
BOOL wait_on(const volatile void* address, const void* compare, DWORD milliseconds) {
    T expected;
    std::memcpy(&expected, compare, sizeof expected);
    const auto how = wait_on_address(const_cast<const T*>(static_cast<const volatile T*>(address)), expected,
                                     deadline_after(milliseconds));
    return how == address_status::timed_out ? fail(ERROR_TIMEOUT) : TRUE;
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

BOOL WaitOnAddress(volatile VOID* address, PVOID compare, SIZE_T size, DWORD milliseconds) {
    const bool is_width = size == 1 || size == 2 || size == 4 || size == 8;
    if (!is_width || address == nullptr || compare == nullptr ||
        reinterpret_cast<std::uintptr_t>(address) % size != 0)
        return fail(ERROR_INVALID_PARAMETER);
    switch (size) {
        case 1: return wait_on<std::uint8_t>(address, compare, milliseconds);
        case 2: return wait_on<std::uint16_t>(address, compare, milliseconds);
        case 4: return wait_on<std::uint32_t>(address, compare, milliseconds);
        default: return wait_on<std::uint64_t>(address, compare, milliseconds);
    }
}
VOID WakeByAddressSingle(PVOID address) {
    if (address != nullptr) (void)tocsin::wake_by_address_one(address);
}
VOID WakeByAddressAll(PVOID address) {
    if (address != nullptr) (void)tocsin::wake_by_address_all(address);
}

}  // extern "C"

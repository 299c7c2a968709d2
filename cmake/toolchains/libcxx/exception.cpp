// SPDX-License-Identifier: Apache-2.0
// For std::make_exception_ptr: a function of the ABI library that libc++ 19 calls and Emscripten 3.1.6 lacks.
#include <cstddef>
#include <cstdint>
#include <typeinfo>

namespace __cxxabiv1 {

// The header in front of a thrown object, as Emscripten's JavaScript reads it.
struct __cxa_exception {
    std::size_t references;
    std::type_info* type;
    void* (*destructor)(void*);
    std::uint8_t caught;
    std::uint8_t rethrown;
};

extern "C" __cxa_exception* __cxa_init_primary_exception(void* thrown, std::type_info* type,
                                                         void* (*destructor)(void*)) noexcept {
    __cxa_exception* const header = static_cast<__cxa_exception*>(thrown) - 1;
    *header = {0, type, destructor, 0, 0};
    return header;
}

}  // namespace __cxxabiv1

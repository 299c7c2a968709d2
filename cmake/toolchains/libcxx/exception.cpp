// For std::make_exception_ptr: what libc++ 19 asks of its ABI library, and Emscripten 3.1.6 has not.
#include <cstddef>
#include <cstdint>
#include <typeinfo>

namespace __cxxabiv1 {

// As Emscripten's JavaScript looks at it, in front of what was thrown.
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

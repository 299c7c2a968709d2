// SPDX-License-Identifier: Apache-2.0
/* In C++, the W forms of tocsin/win32.h take L"..." as well. Only tocsin/win32.h includes this file, at its end. */
#ifndef TOCSIN_WIN32_WIDE_NAMES_H
#define TOCSIN_WIN32_WIDE_NAMES_H

#include <type_traits>

#include <stddef.h>
#include <stdint.h>

namespace tocsin_win32 {

/* Converts a name from wchar_t to UTF-16. May cut a name that is too long, but what is left is still too long. */
class utf16_name {
public:
    explicit utf16_name(const wchar_t* from) {
        if (from == nullptr) return;
        const size_t max = sizeof text_ / sizeof *text_ - 3;
        size_t used = 0;
        for (; *from != 0 && used < max; ++from) {
            const uint32_t point = static_cast<uint32_t>(*from);
            if (point < 0x10000) {
                text_[used++] = static_cast<char16_t>(point);
            } else {
                text_[used++] = static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10));
                text_[used++] = static_cast<char16_t>(0xDC00 + ((point - 0x10000) & 0x3FF));
            }
        }
        text_[used] = 0;
        name_ = text_;
    }
    utf16_name(const utf16_name&) = delete;
    utf16_name& operator=(const utf16_name&) = delete;
    const char16_t* get() const { return name_; }

private:
    char16_t text_[2 * MAX_PATH + 3];
    const char16_t* name_ = nullptr;
};

/* Only a pointer to wchar_t selects these forms. NULL and nullptr select the forms of tocsin/win32.h. */
template <class Char>
using if_wide =
    typename std::enable_if<std::is_same<typename std::remove_cv<Char>::type, wchar_t>::value, HANDLE>::type;

}  // namespace tocsin_win32

template <class Char>
tocsin_win32::if_wide<Char> CreateEventW(LPSECURITY_ATTRIBUTES security, BOOL manual_reset,
                                         BOOL initially_set, Char* name) {
    return CreateEventW(security, manual_reset, initially_set, tocsin_win32::utf16_name(name).get());
}
template <class Char>
tocsin_win32::if_wide<Char> CreateEventExW(LPSECURITY_ATTRIBUTES security, Char* name, DWORD flags,
                                           DWORD access) {
    return CreateEventExW(security, tocsin_win32::utf16_name(name).get(), flags, access);
}
template <class Char>
tocsin_win32::if_wide<Char> OpenEventW(DWORD access, BOOL inherit, Char* name) {
    return OpenEventW(access, inherit, tocsin_win32::utf16_name(name).get());
}
template <class Char>
tocsin_win32::if_wide<Char> CreateSemaphoreW(LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum,
                                             Char* name) {
    return CreateSemaphoreW(security, initial, maximum, tocsin_win32::utf16_name(name).get());
}
template <class Char>
tocsin_win32::if_wide<Char> CreateSemaphoreExW(LPSECURITY_ATTRIBUTES security, LONG initial, LONG maximum,
                                               Char* name, DWORD flags, DWORD access) {
    return CreateSemaphoreExW(security, initial, maximum, tocsin_win32::utf16_name(name).get(), flags,
                              access);
}
template <class Char>
tocsin_win32::if_wide<Char> OpenSemaphoreW(DWORD access, BOOL inherit, Char* name) {
    return OpenSemaphoreW(access, inherit, tocsin_win32::utf16_name(name).get());
}
template <class Char>
tocsin_win32::if_wide<Char> CreateMutexW(LPSECURITY_ATTRIBUTES security, BOOL initial_owner, Char* name) {
    return CreateMutexW(security, initial_owner, tocsin_win32::utf16_name(name).get());
}
template <class Char>
tocsin_win32::if_wide<Char> CreateMutexExW(LPSECURITY_ATTRIBUTES security, Char* name, DWORD flags,
                                           DWORD access) {
    return CreateMutexExW(security, tocsin_win32::utf16_name(name).get(), flags, access);
}
template <class Char>
tocsin_win32::if_wide<Char> OpenMutexW(DWORD access, BOOL inherit, Char* name) {
    return OpenMutexW(access, inherit, tocsin_win32::utf16_name(name).get());
}
template <class Char>
tocsin_win32::if_wide<Char> CreateWaitableTimerW(LPSECURITY_ATTRIBUTES security, BOOL manual_reset,
                                                 Char* name) {
    return CreateWaitableTimerW(security, manual_reset, tocsin_win32::utf16_name(name).get());
}
template <class Char>
tocsin_win32::if_wide<Char> CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES security, Char* name, DWORD flags,
                                                   DWORD access) {
    return CreateWaitableTimerExW(security, tocsin_win32::utf16_name(name).get(), flags, access);
}
template <class Char>
tocsin_win32::if_wide<Char> OpenWaitableTimerW(DWORD access, BOOL inherit, Char* name) {
    return OpenWaitableTimerW(access, inherit, tocsin_win32::utf16_name(name).get());
}

#endif /* TOCSIN_WIN32_WIDE_NAMES_H */

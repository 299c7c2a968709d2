// SPDX-License-Identifier: Apache-2.0
// Windows: a HANDLE of the process, which is signaled once the process has ended.
#include "platform/system/windows.hpp"

#include "platform/process/process.hpp"

#include <cerrno>
#include <cstdint>
#include <optional>

namespace tocsin::platform {
namespace {

HANDLE process_handle(int descriptor) noexcept {
    return reinterpret_cast<HANDLE>(static_cast<std::intptr_t>(descriptor));
}

int keep(HANDLE handle, int& descriptor) noexcept {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number > 0x7FFF'FFFF) {
        ::CloseHandle(handle);
        return EMFILE;
    }
    descriptor = static_cast<int>(number);
    return 0;
}

int last_error(int for_bad_parameter) noexcept {
    switch (::GetLastError()) {
        case ERROR_INVALID_PARAMETER: return for_bad_parameter;
        case ERROR_INVALID_HANDLE: return EBADF;
        case ERROR_ACCESS_DENIED: return EACCES;
        default: return ENOMEM;
    }
}

}  // namespace

int open_process(process_number id, int& descriptor) noexcept {
    const HANDLE opened = ::OpenProcess(SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, id);
    return opened == nullptr ? last_error(ESRCH) : keep(opened, descriptor);
}

int duplicate_process(void* handle, int& descriptor) noexcept {
    const HANDLE self = ::GetCurrentProcess();
    HANDLE made = nullptr;
    if (::DuplicateHandle(self, handle, self, &made, 0, FALSE, DUPLICATE_SAME_ACCESS) == 0)
        return last_error(EINVAL);
    return keep(made, descriptor);
}

std::optional<process_ending> how_process_ended(int descriptor, process_number) noexcept {
    const HANDLE handle = process_handle(descriptor);
    DWORD code = 0;
    if (::WaitForSingleObject(handle, 0) != WAIT_OBJECT_0 || ::GetExitCodeProcess(handle, &code) == 0)
        return std::nullopt;
    return process_ending{code, false};
}

}  // namespace tocsin::platform

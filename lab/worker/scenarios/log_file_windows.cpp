// SPDX-License-Identifier: Apache-2.0
// A temporary file, on the disk or marked as temporary, so that it need not get there; FlushFileBuffers syncs.
#include "log_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#define WIN32_LEAN_AND_MEAN
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>

namespace lab {
namespace {

constexpr std::size_t file_size = 1 << 20;
constexpr std::array<char, 64 * 1024> content{};

HANDLE handle_of(int descriptor) noexcept {
    return reinterpret_cast<HANDLE>(static_cast<std::intptr_t>(descriptor));
}

int create(bool on_disk) {
    char folder[MAX_PATH + 1], path[MAX_PATH + 1];
    if (GetTempPathA(sizeof folder, folder) == 0 || GetTempFileNameA(folder, "toc", 0, path) == 0) return -1;
    const DWORD in_memory = on_disk ? 0 : FILE_ATTRIBUTE_TEMPORARY;
    const HANDLE file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS,
                                    in_memory | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
    return file == INVALID_HANDLE_VALUE ? -1 : static_cast<int>(reinterpret_cast<std::intptr_t>(file));
}

}  // namespace

bool log_file::has_disk() { return true; }

log_file::log_file(bool on_disk) : descriptor_(create(on_disk)) {
    if (descriptor_ < 0) return;
    for (std::size_t written = 0; written < file_size; written += content.size())
        write(content.size(), written);
    whole_ &= FlushFileBuffers(handle_of(descriptor_)) != 0;
}

log_file::~log_file() {
    if (descriptor_ >= 0) CloseHandle(handle_of(descriptor_));
}

void log_file::append(std::size_t records) {
    const std::size_t size = std::min(records * record_size, content.size());
    if (position_ + size > file_size) position_ = 0;
    write(size, position_);
    whole_ &= FlushFileBuffers(handle_of(descriptor_)) != 0;
    position_ += size;
}

void log_file::write(std::size_t size, std::size_t position) {
    OVERLAPPED at{};
    at.Offset = static_cast<DWORD>(position);
    DWORD written = 0;
    whole_ &=
        WriteFile(handle_of(descriptor_), content.data(), static_cast<DWORD>(size), &written, &at) != 0 &&
        written == size;
}

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// A file on Windows. A folder can't be synced there; the file system's journal keeps the names in it.
#include "file.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include <windows.h>

namespace append_log {
namespace {

class windows_file final : public file {
public:
    // A writer shares the file with readers only, which locks it against a second writer.
    windows_file(const std::filesystem::path& path, access how)
        : path_(path.string()),
          handle_(how == access::read ? CreateFileW(path.c_str(), GENERIC_READ,
                                                    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                                    nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr)
                                      : CreateFileW(path.c_str(), GENERIC_READ | GENERIC_WRITE,
                                                    FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, OPEN_ALWAYS,
                                                    FILE_ATTRIBUTE_NORMAL, nullptr)) {
        if (handle_ == INVALID_HANDLE_VALUE) fail("open");
    }
    windows_file(const windows_file&) = delete;
    windows_file& operator=(const windows_file&) = delete;
    ~windows_file() override { CloseHandle(handle_); }

    std::uint64_t size() override {
        LARGE_INTEGER size{};
        if (!GetFileSizeEx(handle_, &size)) fail("size of");
        return static_cast<std::uint64_t>(size.QuadPart);
    }

    std::size_t read(std::uint64_t from, std::span<std::byte> into) override {
        std::size_t done = 0;
        while (done != into.size()) {
            OVERLAPPED at = place(from + done);
            DWORD got = 0;
            if (!ReadFile(handle_, into.data() + done, at_most(into.size() - done), &got, &at)) {
                if (GetLastError() == ERROR_HANDLE_EOF) break;
                fail("read");
            }
            if (got == 0) break;
            done += got;
        }
        return done;
    }

    void write(std::uint64_t to, std::span<const piece> pieces) override {
        // Copies the pieces into one buffer, because WriteFileGather writes whole pages.
        bytes_.clear();
        for (const piece& each : pieces) bytes_.insert(bytes_.end(), each.begin(), each.end());
        for (piece left(bytes_); !left.empty();) {
            OVERLAPPED at = place(to);
            DWORD wrote = 0;
            if (!WriteFile(handle_, left.data(), at_most(left.size()), &wrote, &at)) fail("write");
            to += wrote;
            left = left.subspan(wrote);
        }
    }

    void sync() override {
        if (!FlushFileBuffers(handle_)) fail("sync");
    }

    void truncate(std::uint64_t size) override {
        FILE_END_OF_FILE_INFO end{};
        end.EndOfFile.QuadPart = static_cast<LONGLONG>(size);
        if (!SetFileInformationByHandle(handle_, FileEndOfFileInfo, &end, sizeof end)) fail("truncate");
    }

private:
    [[noreturn]] void fail(const char* call) const {
        const auto error = static_cast<int>(GetLastError());
        throw std::system_error(error, std::system_category(), std::string(call) + " " + path_);
    }

    static OVERLAPPED place(std::uint64_t at) {
        OVERLAPPED place{};
        place.Offset = static_cast<DWORD>(at);
        place.OffsetHigh = static_cast<DWORD>(at >> 32);
        return place;
    }

    static DWORD at_most(std::size_t size) {
        return static_cast<DWORD>(std::min<std::size_t>(size, std::numeric_limits<DWORD>::max()));
    }

    const std::string path_;
    const HANDLE handle_;
    std::vector<std::byte> bytes_;  // for one write
};

}  // namespace

std::unique_ptr<file> open_file(const std::filesystem::path& path, access how) {
    return std::make_unique<windows_file>(path, how);
}

}  // namespace append_log

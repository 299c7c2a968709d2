// SPDX-License-Identifier: Apache-2.0
// What the log asks of a file. The tests substitute files that fail and files that lose power.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace append_log {

using piece = std::span<const std::byte>;

class file {
public:
    virtual ~file() = default;

    // Each function throws std::system_error with the system's error. If a signal interrupts a call, the call
    // continues.
    virtual std::uint64_t size() = 0;
    // Returns how many bytes it has read: fewer than asked for only at the end of the file.
    virtual std::size_t read(std::uint64_t from, std::span<std::byte> into) = 0;
    // Writes all the pieces, one behind the other. If it throws, some of the bytes may have been written.
    virtual void write(std::uint64_t to, std::span<const piece> pieces) = 0;
    // Returns when everything that was written is on the disk, with the file size that it needs.
    virtual void sync() = 0;
    virtual void truncate(std::uint64_t size) = 0;
};

enum class access { read, write };

// Opens a file. With access::write, also creates the file if there is none, in a way that survives a loss of power, and
// locks it against a second writer.
std::unique_ptr<file> open_file(const std::filesystem::path& path, access how);

}  // namespace append_log

// SPDX-License-Identifier: Apache-2.0
// What a group commit writes to: a file on the disk or in memory, which no other process sees.
#pragma once

#include <cstddef>

namespace lab {

class log_file {
public:
    static constexpr std::size_t record_size = 128;

    // Whether the folder for temporary files that survive a restart is on a disk.
    static bool has_disk();

    // Writes all its blocks once, so that no sync has to allocate any.
    explicit log_file(bool on_disk);
    ~log_file();
    log_file(const log_file&) = delete;
    log_file& operator=(const log_file&) = delete;

    bool is_open() const noexcept { return descriptor_ >= 0; }
    // One write and one fdatasync for that many records; starts over at the end of the file.
    void append(std::size_t records);
    // Whether all of this has succeeded.
    bool is_whole() const noexcept { return whole_; }

private:
    void write(std::size_t size, std::size_t position);

    int descriptor_ = -1;
    std::size_t position_ = 0;
    bool whole_ = true;
};

}  // namespace lab

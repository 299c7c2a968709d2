// SPDX-License-Identifier: Apache-2.0
#include "log_file.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace lab {
namespace {

constexpr const char* folder = "/var/tmp";
constexpr std::size_t file_size = 1 << 20;
constexpr std::array<char, 64 * 1024> content{};

int create_on_disk() {
    std::string path = std::string(folder) + "/tocsin_lab_XXXXXX";
    const int descriptor = mkostemp(path.data(), O_CLOEXEC);
    if (descriptor >= 0) unlink(path.c_str());
    return descriptor;
}

}  // namespace

bool log_file::has_disk() {
    struct statfs system{};
    return statfs(folder, &system) == 0 && system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC;
}

log_file::log_file(bool on_disk)
    : descriptor_(on_disk ? create_on_disk() : memfd_create("tocsin_lab", MFD_CLOEXEC)) {
    if (descriptor_ < 0) return;
    for (std::size_t written = 0; written < file_size; written += content.size())
        write(content.size(), written);
    whole_ &= fdatasync(descriptor_) == 0;
}

log_file::~log_file() {
    if (descriptor_ >= 0) close(descriptor_);
}

void log_file::append(std::size_t records) {
    const std::size_t size = std::min(records * record_size, content.size());
    if (position_ + size > file_size) position_ = 0;
    write(size, position_);
    whole_ &= fdatasync(descriptor_) == 0;
    position_ += size;
}

void log_file::write(std::size_t size, std::size_t position) {
    whole_ &=
        pwrite(descriptor_, content.data(), size, static_cast<off_t>(position)) == static_cast<ssize_t>(size);
}

}  // namespace lab

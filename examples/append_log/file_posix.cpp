// SPDX-License-Identifier: Apache-2.0
// A file on a POSIX system.
#include "file.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace append_log {
namespace {

[[noreturn]] void fail(const char* call, const std::string& path) {
    throw std::system_error(errno, std::generic_category(), std::string(call) + " " + path);
}

// Repeats a call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
    decltype(call()) result;
    do {
        result = call();
    } while (result < 0 && errno == EINTR);
    return result;
}

class descriptor {
public:
    descriptor(int number, const char* call, const std::string& path) : number_(number) {
        if (number_ < 0) fail(call, path);
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() { ::close(number_); }
    operator int() const noexcept { return number_; }

private:
    int number_;
};

class posix_file final : public file {
public:
    posix_file(const std::filesystem::path& path, access how)
        : path_(path.string()),
          descriptor_(
              ::open(path_.c_str(), (how == access::read ? O_RDONLY : O_RDWR | O_CREAT) | O_CLOEXEC, 0644),
              "open", path_) {
        if (how == access::read) return;
        if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) fail("lock", path_);
        sync_folder();
    }

    std::uint64_t size() override {
        struct stat status{};
        if (::fstat(descriptor_, &status) != 0) fail("stat", path_);
        return static_cast<std::uint64_t>(status.st_size);
    }

    std::size_t read(std::uint64_t from, std::span<std::byte> into) override {
        std::size_t done = 0;
        while (done != into.size()) {
            const ssize_t got = uninterrupted([&] {
                return ::pread(descriptor_, into.data() + done, into.size() - done,
                               static_cast<off_t>(from + done));
            });
            if (got < 0) fail("read", path_);
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

    void write(std::uint64_t to, std::span<const piece> pieces) override {
        std::vector<iovec> left;
        left.reserve(pieces.size());
        for (const piece& each : pieces) left.push_back({const_cast<std::byte*>(each.data()), each.size()});
        auto next = left.begin();
        while (next != left.end()) {
            const auto count = std::min<std::ptrdiff_t>(left.end() - next, IOV_MAX);
            const ssize_t wrote = uninterrupted([&] {
                return ::pwritev(descriptor_, &*next, static_cast<int>(count), static_cast<off_t>(to));
            });
            if (wrote < 0) fail("write", path_);
            to += static_cast<std::uint64_t>(wrote);
            auto rest = static_cast<std::size_t>(wrote);
            for (; next != left.end() && rest >= next->iov_len; ++next) rest -= next->iov_len;
            if (rest == 0) continue;
            next->iov_base = static_cast<std::byte*>(next->iov_base) + rest;
            next->iov_len -= rest;
        }
    }

    void sync() override {
        // A call that fails is never repeated, not even if a signal interrupted it: a second call may succeed although
        // the first one lost data.
        if (::fdatasync(descriptor_) != 0) fail("fdatasync", path_);
    }

    void truncate(std::uint64_t size) override {
        if (uninterrupted([&] { return ::ftruncate(descriptor_, static_cast<off_t>(size)); }) != 0) {
            fail("truncate", path_);
        }
    }

private:
    // Syncs the folder, which holds the name of a new file.
    void sync_folder() const {
        const auto folder = std::filesystem::absolute(path_).parent_path().string();
        const descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open", folder);
        if (::fsync(opened) != 0) fail("fsync", folder);
    }

    const std::string path_;
    const descriptor descriptor_;
};

}  // namespace

std::unique_ptr<file> open_file(const std::filesystem::path& path, access how) {
    return std::make_unique<posix_file>(path, how);
}

}  // namespace append_log

// SPDX-License-Identifier: Apache-2.0
// Files for the tests: one in memory that can lose power, one that fails on demand, and a folder for real files.
#pragma once

#include "file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace append_log {

using bytes = std::vector<std::byte>;

// A disk with a cache in front of it. When the power fails, any of the sectors written since the last sync may have
// reached the disk, in any order, or none of them. The file then has any of the sizes that it had since that sync.
class disk {
public:
    explicit disk(bytes content = {}) : durable_(content), cached_(std::move(content)) {}

    bytes content() const {
        const std::lock_guard held(mutex_);
        return cached_;
    }

    std::size_t read(std::uint64_t from, std::span<std::byte> into) const {
        const std::lock_guard held(mutex_);
        if (from >= cached_.size()) return 0;
        const std::size_t count = std::min(into.size(), cached_.size() - static_cast<std::size_t>(from));
        std::memcpy(into.data(), cached_.data() + from, count);
        return count;
    }
    void write(std::uint64_t to, std::span<const std::byte> what) {
        const std::lock_guard held(mutex_);
        change done = written{static_cast<std::size_t>(to), bytes(what.begin(), what.end())};
        apply(cached_, done);
        pending_.push_back(std::move(done));
    }
    void truncate(std::uint64_t size) {
        const std::lock_guard held(mutex_);
        cached_.resize(static_cast<std::size_t>(size));
        pending_.emplace_back(truncated{static_cast<std::size_t>(size)});
    }
    void sync() {
        const std::lock_guard held(mutex_);
        durable_ = cached_;
        pending_.clear();
    }

    // What the next start finds on the disk if the power fails now.
    bytes after_power_cut(std::mt19937_64& random) const {
        const std::lock_guard held(mutex_);
        bytes left = durable_;
        std::vector<std::size_t> sizes{left.size()};
        const unsigned of_four = static_cast<unsigned>(random() % 5);
        for (const change& each : pending_) {
            if (const auto* cut = std::get_if<truncated>(&each)) {
                if (random() % 4 < of_four) left.resize(cut->size);
                sizes.push_back(cut->size);
                continue;
            }
            const auto& wrote = std::get<written>(each);
            for (std::size_t at = wrote.at; at < wrote.at + wrote.what.size();) {
                const std::size_t end = std::min((at / sector + 1) * sector, wrote.at + wrote.what.size());
                if (random() % 4 < of_four) {
                    const auto from = wrote.what.begin() + static_cast<std::ptrdiff_t>(at - wrote.at);
                    apply(left, written{at, bytes(from, from + static_cast<std::ptrdiff_t>(end - at))});
                }
                at = end;
            }
            sizes.push_back(std::max(sizes.back(), wrote.at + wrote.what.size()));
        }
        if (random() % 2 == 0) left.resize(sizes[random() % sizes.size()]);
        return left;
    }

private:
    static constexpr std::size_t sector = 64;  // smaller than a real one, so that more records are torn
    struct written {
        std::size_t at;
        bytes what;
    };
    struct truncated {
        std::size_t size;
    };
    using change = std::variant<written, truncated>;

    static void apply(bytes& to, const change& what) {
        const auto& wrote = std::get<written>(what);
        if (to.size() < wrote.at + wrote.what.size()) to.resize(wrote.at + wrote.what.size());
        std::copy(wrote.what.begin(), wrote.what.end(), to.begin() + static_cast<std::ptrdiff_t>(wrote.at));
    }

    mutable std::mutex mutex_;
    bytes durable_;
    bytes cached_;
    std::vector<change> pending_;
};

// A new folder; its destructor removes it with everything in it.
class folder {
public:
    explicit folder(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
        std::random_device random;
        do {
            path_ = parent / ("append_log_" + std::to_string(random()));
        } while (!std::filesystem::create_directory(path_));
    }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    ~folder() { std::filesystem::remove_all(path_); }
    std::filesystem::path operator/(const char* name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

class memory_file final : public file {
public:
    explicit memory_file(std::shared_ptr<disk> on) : disk_(std::move(on)) {}

    std::uint64_t size() override { return disk_->content().size(); }
    std::size_t read(std::uint64_t from, std::span<std::byte> into) override {
        return disk_->read(from, into);
    }
    void write(std::uint64_t to, std::span<const piece> pieces) override {
        for (const piece& each : pieces) {
            disk_->write(to, each);
            to += each.size();
        }
    }
    void sync() override { disk_->sync(); }
    void truncate(std::uint64_t size) override { disk_->truncate(size); }

private:
    const std::shared_ptr<disk> disk_;
};

// What goes wrong. Each on_... is called before the operation that it is named after. It returns the error with which
// that operation is to fail, or 0. A write that fails first writes as many of its bytes as `partly` says. A sync that
// fails has synced nothing.
struct faults {
    std::function<int()> on_write = [] { return 0; };
    std::function<int()> on_sync = [] { return 0; };
    std::function<int()> on_truncate = [] { return 0; };
    std::function<std::size_t(std::size_t)> partly = [](std::size_t all) { return all / 2; };
};

class faulty_file final : public file {
public:
    faulty_file(std::unique_ptr<file> behind, std::shared_ptr<faults> what)
        : behind_(std::move(behind)), faults_(std::move(what)) {}

    std::uint64_t size() override { return behind_->size(); }
    std::size_t read(std::uint64_t from, std::span<std::byte> into) override {
        return behind_->read(from, into);
    }
    void write(std::uint64_t to, std::span<const piece> pieces) override {
        const int error = faults_->on_write();
        if (error == 0) return behind_->write(to, pieces);
        std::size_t all = 0;
        for (const piece& each : pieces) all += each.size();
        std::size_t left = faults_->partly(all);
        for (const piece& each : pieces) {
            const piece part = each.first(std::min(each.size(), left));
            behind_->write(to, {&part, 1});
            to += part.size();
            left -= part.size();
        }
        fail(error, "write");
    }
    void sync() override {
        if (const int error = faults_->on_sync()) fail(error, "fdatasync");
        behind_->sync();
    }
    void truncate(std::uint64_t size) override {
        if (const int error = faults_->on_truncate()) fail(error, "truncate");
        behind_->truncate(size);
    }

private:
    [[noreturn]] static void fail(int error, const char* call) {
        throw std::system_error(error, std::generic_category(), call);
    }

    const std::unique_ptr<file> behind_;
    const std::shared_ptr<faults> faults_;
};

}  // namespace append_log

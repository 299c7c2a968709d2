// SPDX-License-Identifier: Apache-2.0
#include "append_log.hpp"

#include "crc32c.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <utility>

namespace append_log {
namespace {

constexpr std::string_view magic = "TOCSLOG1";
constexpr std::size_t begin_size = 16;
constexpr std::size_t header_size = 24;
using header_bytes = std::array<std::byte, header_size>;

template <class Number>
void put(std::span<std::byte> into, std::size_t at, Number value) {
    for (std::size_t i = 0; i != sizeof value; ++i) into[at + i] = static_cast<std::byte>(value >> (8 * i));
}

template <class Number>
Number get(std::span<const std::byte> from, std::size_t at) {
    Number value = 0;
    for (std::size_t i = 0; i != sizeof value; ++i) value |= static_cast<Number>(from[at + i]) << (8 * i);
    return value;
}

std::uint32_t length_in(std::span<const std::byte> header) { return get<std::uint32_t>(header, 4); }
std::uint64_t sequence_in(std::span<const std::byte> header) { return get<std::uint64_t>(header, 8); }
std::uint64_t durable_in(std::span<const std::byte> header) { return get<std::uint64_t>(header, 16); }

std::uint32_t checksum(std::uint32_t salt, std::span<const std::byte> header, std::string_view payload) {
    return crc32c(std::as_bytes(std::span(payload)), crc32c(header.subspan(4), salt));
}

void make_header(std::span<std::byte> into, std::uint32_t salt, std::uint64_t sequence, std::uint64_t durable,
                 std::string_view payload) {
    put(into, 4, static_cast<std::uint32_t>(payload.size()));
    put(into, 8, sequence);
    put(into, 16, durable);
    put(into, 0, checksum(salt, into, payload));
}

}  // namespace

reader::reader(file& from) : file_(from), size_(from.size()) {
    std::array<std::byte, begin_size> begin{};
    const std::size_t got = file_.read(0, begin);
    const std::string_view text(reinterpret_cast<const char*>(begin.data()), std::min(got, magic.size()));
    if (got == begin_size && text == magic) {
        end_ = begin_size;
        salt_ = get<std::uint32_t>(begin, magic.size());
        return;
    }
    // A crash while the log was being created may leave some of its first bytes, and zeros in place of the others.
    bool is_rest = size_ <= begin_size;
    for (std::size_t i = 0; i != text.size(); ++i) {
        is_rest = is_rest && (text[i] == magic[i] || text[i] == '\0');
    }
    if (!is_rest) throw damage_error("this file is not a log");
}

bool reader::fits(std::uint64_t at, std::span<const std::byte> header) const {
    return length_in(header) <= longest_payload && length_in(header) <= size_ - header_size - at;
}

bool reader::read_header(std::uint64_t at, std::span<std::byte> into) {
    return size_ >= header_size && at <= size_ - header_size && file_.read(at, into) == header_size &&
           fits(at, into);
}

bool reader::read_payload(std::uint64_t at, std::span<const std::byte> header, std::string& payload) {
    payload.resize(length_in(header));
    return file_.read(at + header_size, std::as_writable_bytes(std::span(payload))) == payload.size() &&
           get<std::uint32_t>(header, 0) == checksum(salt_, header, payload);
}

std::optional<record> reader::next() {
    header_bytes head;
    record found{last_sequence_ + 1, {}};
    if (!has_begun() || !read_header(end_, head) || sequence_in(head) != found.sequence ||
        !read_payload(end_, head, found.payload)) {
        return std::nullopt;
    }
    end_ += header_size + found.payload.size();
    last_sequence_ = found.sequence;
    return found;
}

bool reader::rest_shows_damage() {
    std::vector<std::byte> window(std::size_t{1} << 16);
    std::string payload;
    for (std::uint64_t begin = end_; begin + header_size <= size_;) {
        const std::size_t got = file_.read(begin, window);
        if (got < header_size) break;
        const std::size_t places = got - header_size + 1;
        for (std::size_t i = 0; i != places; ++i) {
            const auto head = std::span<const std::byte>(window).subspan(i, header_size);
            if (durable_in(head) > last_sequence_ && durable_in(head) < sequence_in(head) &&
                fits(begin + i, head) && read_payload(begin + i, head, payload)) {
                return true;
            }
        }
        begin += places;
    }
    return false;
}

struct log::submission {
    std::string_view payload;
    std::uint64_t sequence = 0;
};

log::log(std::unique_ptr<file> where, const tocsin::group_commit_options& options)
    : file_(std::move(where)), commit_([this](group records) { flush(records); }, options) {
    recover();
}

void log::recover() {
    reader from(*file_);
    while (from.next()) ++recovered_.records;
    if (from.rest() != 0 && from.rest_shows_damage()) {
        throw damage_error("record " + std::to_string(from.last_sequence() + 1) +
                           " is damaged, but was durable");
    }
    recovered_.cut_off = from.rest();
    end_ = from.end();
    last_sequence_ = from.last_sequence();
    salt_ = from.salt();
    if (from.rest() != 0) file_->truncate(end_);
    if (!from.has_begun()) begin();
    // Needed even if nothing was cut off: whole records may never have been synced, and readers are about to see them.
    file_->sync();
}

void log::begin() {
    std::array<std::byte, begin_size> first{};
    std::memcpy(first.data(), magic.data(), magic.size());
    std::random_device random;
    salt_ = random();
    put(first, magic.size(), salt_);
    put(first, magic.size() + sizeof salt_, static_cast<std::uint32_t>(random()));
    const piece all(first);
    file_->write(0, {&all, 1});
    end_ = first.size();
}

std::uint64_t log::append(std::string_view payload) { return *append(payload, tocsin::deadline::never()); }

std::optional<std::uint64_t> log::append(std::string_view payload, const tocsin::deadline& until) {
    if (payload.size() > longest_payload) throw std::length_error("a record of more than 16 MiB");
    submission mine{payload};
    if (commit_.submit({.until = until}, mine) != tocsin::commit_status::committed) return std::nullopt;
    return mine.sequence;
}

// Ends the group before the record that would make the write longer than longest_write. That record and those behind
// it become the first of the next group.
void log::limit(group records) {
    std::size_t bytes = 0;
    for (auto each = records.begin(); each != records.end(); ++each) {
        bytes += header_size + each->payload.size();
        if (bytes > longest_write && each != records.begin()) return records.leave_from(each);
    }
}

// Makes the whole group durable. If it can't, it throws, and no submitter is told that its record is durable.
void log::flush(group records) {
    if (!closed_.empty()) throw closed_error(closed_);
    limit(records);
    try {
        write(records);
    } catch (const std::system_error& error) {
        undo_write(error);
    }
    sync();
    for (const piece& each : pieces_) end_ += each.size();
    last_sequence_ += records.size();
}

void log::write(group records) {
    headers_.resize(records.size() * header_size);
    pieces_.clear();
    std::uint64_t sequence = last_sequence_;
    std::span<std::byte> left(headers_);
    for (submission& each : records) {
        each.sequence = ++sequence;
        make_header(left.first(header_size), salt_, sequence, last_sequence_, each.payload);
        pieces_.push_back(left.first(header_size));
        pieces_.push_back(std::as_bytes(std::span(each.payload)));
        left = left.subspan(header_size);
    }
    file_->write(end_, pieces_);
}

// Cuts off what was written of the group, so that it is not found at the next start: it was never acknowledged. If it
// stayed and a shorter group were written over it, its tail would look like whole records.
void log::undo_write(const std::system_error& why) {
    try {
        file_->truncate(end_);
        file_->sync();
    } catch (const std::system_error& error) {
        close(std::string("the log is closed for writing: ") + why.what() + ", and then " + error.what());
    }
    throw write_error(why.code(), "nothing of the group was appended");
}

void log::sync() {
    try {
        file_->sync();
    } catch (const std::system_error& error) {
        close(std::string("the log is closed for writing: ") + error.what());
    }
}

void log::close(const std::string& why) {
    closed_ = why;
    throw closed_error(closed_);
}

}  // namespace append_log

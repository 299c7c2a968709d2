// SPDX-License-Identifier: Apache-2.0
// An append-only log. Any number of threads append records; one write and one sync make the records of a whole
// group durable (tocsin::group_commit).
//
// The file: eight bytes "TOCSLOG1", eight random bytes, then records, each
//
//     bytes 0-3    CRC-32C of all that follows, seeded with the random bytes; so a record of another log
//                  (inside a payload, say) is never taken for one of this log
//           4-7    length of the payload
//           8-15   sequence number: 1, 2, 3, ...
//           16-23  the last sequence number that was durable when this record was written
//           24-    payload
//
// Numbers are little endian. The log ends at the first record that is cut off, doesn't match its checksum or has the
// wrong sequence number. A crash left that record behind, and its group was never acknowledged.
#pragma once

#include "file.hpp"

#include <tocsin/group_commit.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace append_log {

inline constexpr std::size_t longest_payload = std::size_t{1} << 24;
// The most bytes of records that share a write. A longer record is written alone, so that no submitter waits for the
// megabytes of another.
inline constexpr std::size_t longest_write = std::size_t{1} << 20;

// Writing failed, and nothing of the group remains in the log. Later appends may succeed.
class write_error : public std::system_error {
public:
    using system_error::system_error;
};

// The log accepts nothing more. `what()` says what happened and to whom it applies.
class closed_error : public std::runtime_error {
public:
    using runtime_error::runtime_error;
};

// The file is not a log, or a record that had been acknowledged is damaged.
class damage_error : public std::runtime_error {
public:
    using runtime_error::runtime_error;
};

struct record {
    std::uint64_t sequence;
    std::string payload;
};

// Reads a log from the beginning, up to the first record that is not whole.
class reader {
public:
    // Throws damage_error if the file is not a log. An empty file is an empty log. So is a file whose first sixteen
    // bytes, the only ones, reached the disk only in part.
    explicit reader(file& from);

    std::optional<record> next();

    bool has_begun() const noexcept { return end_ != 0; }
    std::uint32_t salt() const noexcept { return salt_; }
    std::uint64_t last_sequence() const noexcept { return last_sequence_; }
    std::uint64_t end() const noexcept { return end_; }           // of the last whole record
    std::uint64_t rest() const noexcept { return size_ - end_; }  // bytes after it

    // Call this when next() finds nothing more. Returns whether a record behind the end shows that the missing records
    // had been durable. If so, the log is damaged: a crash can't leave such bytes behind.
    bool rest_shows_damage();

private:
    bool fits(std::uint64_t at, std::span<const std::byte> header) const;
    bool read_header(std::uint64_t at, std::span<std::byte> header);
    bool read_payload(std::uint64_t at, std::span<const std::byte> header, std::string& payload);

    file& file_;
    std::uint64_t size_;
    std::uint64_t end_ = 0;
    std::uint64_t last_sequence_ = 0;
    std::uint32_t salt_ = 0;
};

class log {
public:
    // Recovers: reads the whole log, cuts off an incomplete end, and makes the result durable. Throws damage_error, or
    // std::system_error if the file can't be read or cut.
    explicit log(std::unique_ptr<file> where, const tocsin::group_commit_options& options = {});

    struct recovery {
        std::uint64_t records = 0;
        std::uint64_t cut_off = 0;  // how many bytes
    };
    const recovery& recovered() const noexcept { return recovered_; }

    // Returns the record's sequence number once the record is durable. Any thread may call it. Throws
    //   write_error    Neither the record nor any other of its group is in the log (no space, say).
    //   closed_error   The disk failed to sync the record, or to cut off what was written of it. Nobody knows
    //                  whether the record will be there at the next start. Or the log was closed before; then
    //                  the record won't be there. The log stays closed, because what the system's cache holds
    //                  can't be trusted.
    //   std::length_error   The payload is longer than longest_payload.
    std::uint64_t append(std::string_view payload);
    // The same, but appends nothing and returns std::nullopt if the deadline passes before the record's group begins.
    // With a deadline that has passed, appends the record if no other thread is appending.
    std::optional<std::uint64_t> append(std::string_view payload, const tocsin::deadline& until);

    tocsin::group_commit_statistics statistics() const noexcept { return commit_.statistics(); }

private:
    struct submission;
    using group = tocsin::commit_group<submission>;

    void recover();
    void begin();
    void flush(group records);
    static void limit(group records);
    void write(group records);
    void undo_write(const std::system_error& why);
    void sync();
    [[noreturn]] void close(const std::string& why);

    const std::unique_ptr<file> file_;
    recovery recovered_;
    std::uint32_t salt_ = 0;

    // Only the leader of a group uses these members, and there is one leader at a time.
    std::uint64_t end_ = 0;
    std::uint64_t last_sequence_ = 0;  // durable
    std::string closed_;               // why, or empty
    std::vector<std::byte> headers_;
    std::vector<piece> pieces_;

    tocsin::group_commit<submission> commit_;
};

}  // namespace append_log

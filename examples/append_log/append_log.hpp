// An append-only log: any number of threads append records; one write and one sync make those of a
// whole group durable (tocsin::group_commit).
//
// The file: eight bytes "TOCSLOG1", eight random ones, then records, each
//
//     bytes 0-3    CRC-32C, begun with the random bytes, of all that follows: so the records of another log
//                  (in a payload, say) are none of this one
//           4-7    length of the payload
//           8-15   sequence number: 1, 2, 3, ...
//           16-23  the last sequence number that was durable when this record was written
//           24-    payload
//
// all little endian. A record that is cut off, doesn't match its checksum or has the wrong number ends the
// log: it is what a crash left of a group that was never acknowledged.
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

// Writing failed, and nothing of the group remains in the log; later appends may succeed.
class write_error : public std::system_error {
public:
    using system_error::system_error;
};

// The log takes nothing more. `what()` says what happened and to whom it applies.
class closed_error : public std::runtime_error {
public:
    using runtime_error::runtime_error;
};

// The file is not a log, or a record is damaged that had been acknowledged.
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
    // Throws damage_error if the file is not a log. An empty file, and one in which only a part of the
    // first sixteen bytes got to the disk, is an empty log.
    explicit reader(file& from);

    std::optional<record> next();

    bool has_begun() const noexcept { return end_ != 0; }
    std::uint32_t salt() const noexcept { return salt_; }
    std::uint64_t last_sequence() const noexcept { return last_sequence_; }
    std::uint64_t end() const noexcept { return end_; }           // of the last whole record
    std::uint64_t rest() const noexcept { return size_ - end_; }  // bytes after it

    // Once next() found nothing more: whether a record behind the end shows that what is missing had been
    // durable. Then it is damage and not the remains of a crash.
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
    // Recovers: reads the whole log, cuts off what is not whole at its end, and makes that durable. Throws
    // damage_error, or std::system_error if the file can't be read or cut.
    explicit log(std::unique_ptr<file> where, const tocsin::group_commit_options& options = {});

    struct recovery {
        std::uint64_t records = 0;
        std::uint64_t cut_off = 0;  // bytes
    };
    const recovery& recovered() const noexcept { return recovered_; }

    // Returns the record's sequence number when it is durable. Any thread. Throws
    //   write_error    it is not in the log (no space, say); neither is the rest of its group
    //   closed_error   it is unknown whether it will be there at the next start, because the disk failed to
    //                  sync it or to cut off what was written of it; or, the log was closed before, and it
    //                  won't be there. The log stays closed: what the system's cache holds can't be trusted.
    //   std::length_error   longer than longest_payload
    std::uint64_t append(std::string_view payload);
    // The same, but nothing if the deadline passed before its group was begun.
    std::optional<std::uint64_t> append(std::string_view payload, const tocsin::deadline& until);

    tocsin::group_commit_statistics statistics() const noexcept { return commit_.statistics(); }

private:
    struct submission;
    using group = tocsin::commit_group<submission>;

    void recover();
    void begin();
    void flush(group records);
    void write(group records);
    void undo_write(const std::system_error& why);
    void sync();
    [[noreturn]] void close(const std::string& why);

    const std::unique_ptr<file> file_;
    recovery recovered_;
    std::uint32_t salt_ = 0;

    // Only the leader's of a group, one at a time.
    std::uint64_t end_ = 0;
    std::uint64_t last_sequence_ = 0;  // durable
    std::string closed_;               // why, or empty
    std::vector<std::byte> headers_;
    std::vector<piece> pieces_;

    tocsin::group_commit<submission> commit_;
};

}  // namespace append_log

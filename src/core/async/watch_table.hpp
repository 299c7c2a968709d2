// SPDX-License-Identifier: Apache-2.0
// The table of what a driver's loop has to watch. A descriptor is in the table once, however many requests name it. The
// driver's lock guards the table (src/driver.cpp). Why it is correct: watch_table.cpp.
#pragma once

#include "core/async/poll_thread.hpp"
#include "platform/poller/poller.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/readiness.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tocsin::core {

class watch_table {
public:
    struct change {
        std::uint64_t id = 0;  // watch_table-4
        int descriptor = -1;
        readiness asked = readiness::none;
        bool renewed = false;  // watch_table-2
    };

    // Makes room for a request with `more` descriptors. May throw std::bad_alloc.
    void reserve(std::size_t more);
    // Both return whether they have put an entry into the list of changes.
    bool add(poll_request& one) noexcept;
    bool remove(poll_request& one) noexcept;  // does nothing if the request isn't here

    std::size_t changes() const noexcept { return changes_; }
    // Takes the oldest change of which the loop has to be told. Returns false if there is none.
    bool take_change(change& told) noexcept;

    // Called when the loop has found `found` for the descriptor of the watch `id`. Removes the requests that are due,
    // and then claims them. Does nothing if that watch has ended.
    void claim_found(std::uint64_t id, readiness found, due_calls& due) noexcept;

private:
    using index = std::uint32_t;
    static constexpr index none = static_cast<index>(-1);
    static constexpr std::size_t kinds = 7;  // bits of readiness

    struct entry {
        std::uint32_t generation = 0;  // watch_table-4; kept while the entry is free
        std::uint32_t told_generation = 0;
        int descriptor = -1;
        readiness asked = readiness::none;
        readiness told = readiness::none;
        bool is_changed = false;
        bool renewed = false;
        index askers[kinds] = {};  // how many uses ask for each bit
        index first_use = none;
        index last_use = none;
        index next = none;  // in its bucket, or of those that are free
        index next_change = none;
    };
    struct use {
        poll_request* by = nullptr;
        index entry = none;
        index number = 0;   // which of the request's descriptors
        index next = none;  // of the same entry, or of those that are free
        index previous = none;
        index of_request = none;  // the next of the same request
    };

    index& bucket(int descriptor) noexcept {
        return buckets_[static_cast<std::uint32_t>(descriptor) % buckets_.size()];
    }
    static std::uint64_t id_of(index at, std::uint32_t generation) noexcept {
        return std::uint64_t{generation} << 32 | at;
    }
    static void end_watch(entry& one) noexcept {
        if (++one.generation == 0) ++one.generation;
    }
    index find_or_make(int descriptor) noexcept;
    void free_entry(index at) noexcept;
    void link(index one) noexcept;
    void unlink(index one) noexcept;
    static void ask(entry& of, readiness what, index by) noexcept;
    bool note_change(index at) noexcept;
    readiness found_for(const use& one, readiness found) const noexcept;

    std::vector<entry> entries_;
    std::vector<use> uses_;
    std::vector<index> buckets_;
    index free_entries_ = none;
    index free_uses_ = none;
    std::size_t used_entries_ = 0;
    std::size_t used_uses_ = 0;
    index first_change_ = none;
    index last_change_ = none;
    detail::plain<std::size_t> changes_{0};
};

}  // namespace tocsin::core

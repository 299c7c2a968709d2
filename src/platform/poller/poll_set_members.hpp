// SPDX-License-Identifier: Apache-2.0
// The members of a poll set, for the mechanisms where the library keeps their list: posix.cpp, kqueue.cpp, windows.cpp.
#pragma once

#include "platform/poller/poller.hpp"

#include <tocsin/detail/exceptions.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace tocsin::platform {

// The members of one set, sorted by descriptor. A `Member` has a descriptor and a tag.
template <class Member>
class member_table {
public:
    // Returns 0, EEXIST or ENOMEM.
    int insert(const Member& made) noexcept {
        const auto position = lower_bound(made.descriptor);
        if (position != all_.end() && position->descriptor == made.descriptor) return EEXIST;
        TOCSIN_TRY { all_.insert(position, made); }
        TOCSIN_CATCH(const std::bad_alloc&) { return ENOMEM; }
        return 0;
    }

    // Returns null if the descriptor is no member.
    Member* find(int descriptor) noexcept {
        const auto position = lower_bound(descriptor);
        return position != all_.end() && position->descriptor == descriptor ? &*position : nullptr;
    }

    void erase(const Member& gone) noexcept { all_.erase(all_.begin() + (&gone - all_.data())); }

    auto begin() const noexcept { return all_.begin(); }
    auto end() const noexcept { return all_.end(); }

private:
    auto lower_bound(int descriptor) noexcept {
        return std::lower_bound(all_.begin(), all_.end(), descriptor,
                                [](const Member& each, int wanted) { return each.descriptor < wanted; });
    }

    std::vector<Member> all_;
};

// The waiting thread's own copy of the members, which the thread polls without the set's lock. `Polled` is the system's
// type for an entry of a poll. Each member must have a serial number, and get a new one with each change. By these
// numbers the thread recognizes members that have changed since it copied them. What a poll found for such a member
// does not count.
template <class Polled>
class member_copy {
public:
    // Makes the copy outdated: is_current() returns false until the next take().
    void forget() noexcept { changes_ = ~std::uint64_t{0}; }
    // Whether the copy shows the members as they are now. `changes` is how often they have changed so far.
    bool is_current(std::uint64_t changes) const noexcept { return changes_ == changes; }

    // Copies the members. May throw std::bad_alloc: the caller must then call forget(). `to_polled(member)` makes the
    // member's entry in the poll.
    template <class Members, class ToPolled>
    void take(const Members& members, std::uint64_t changes, ToPolled to_polled) {
        polled_.clear();
        copied_.clear();
        for (const auto& each : members) {
            polled_.push_back(to_polled(each));
            copied_.push_back({each.descriptor, each.serial});
        }
        changes_ = changes;
    }

    // How many members the copy has. Their entries come first in polled(), in the order of the members.
    std::size_t size() const noexcept { return copied_.size(); }
    std::vector<Polled>& polled() noexcept { return polled_; }

    // Writes to `out` the members that are ready, as many as fit, and returns how many it wrote. Begins after the
    // member at which the last call stopped, so that no member is passed over. `found(entry)` takes an entry of
    // polled(), and returns the readiness that the poll found for its descriptor.
    template <class Members, class Found>
    std::size_t report(Members& members, std::span<poll_set::item> out, Found found) noexcept {
        std::size_t ready = 0;
        for (std::size_t seen = 0; seen != size() && ready != out.size(); ++seen) {
            const std::size_t i = next_ = next_ + 1 < size() ? next_ + 1 : 0;
            const readiness what = found(polled_[i]);
            if (what == readiness::none) continue;
            const auto* const member = members.find(copied_[i].descriptor);
            if (member != nullptr && member->serial == copied_[i].serial) out[ready++] = {member->tag, what};
        }
        return ready;
    }

private:
    struct copied {
        int descriptor;
        std::uint64_t serial;
    };

    std::vector<Polled> polled_;
    std::vector<copied> copied_;
    std::uint64_t changes_ = ~std::uint64_t{0};  // how often the members had changed when they were copied
    std::size_t next_ = 0;                       // the member that was looked at last
};

}  // namespace tocsin::platform

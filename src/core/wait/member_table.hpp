// SPDX-License-Identifier: Apache-2.0
// The sources of a wait_set, found by the addresses of their objects: a hash table whose chains go through the members
// themselves, so a member needs no allocation besides its own.
#pragma once

#include "core/wait/ready_list.hpp"

#include <tocsin/detail/golden_hash.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tocsin::core {

// Not synchronized.
class member_table {
public:
    // Returns null if there is none.
    source_member* find(const void* object) const noexcept {
        if (chains_.empty()) return nullptr;
        source_member* each = chains_[chain_of(object)];
        while (each != nullptr && each->object() != object) each = each->next_;
        return each;
    }
    // Makes room for one more member. May throw std::bad_alloc, and then changes nothing.
    void reserve_one() {
        if (count_ < chains_.size()) return;
        std::vector<source_member*> old(chains_.empty() ? first_size : 2 * chains_.size());
        chains_.swap(old);
        for (source_member* each : old) {
            while (each != nullptr) link(*std::exchange(each, each->next_));
        }
    }
    // There must be room, and no other member with this object.
    void insert(source_member& joining) noexcept {
        link(joining);
        ++count_;
    }
    // The member is in the table.
    void erase(source_member& leaving) noexcept {
        source_member** at = &chains_[chain_of(leaving.object())];
        while (*at != &leaving) at = &(*at)->next_;
        *at = leaving.next_;
        --count_;
    }
    // Calls `what(member)`, which may delete the member.
    template <class What>
    void for_each(What what) {
        for (source_member* each : chains_) {
            while (each != nullptr) what(std::exchange(each, each->next_));
        }
    }

private:
    friend struct debugger_layout;

    static constexpr std::size_t first_size = 8;  // a power of two, like every size

    std::size_t chain_of(const void* object) const noexcept {
        const auto hash = detail::golden_hash(reinterpret_cast<std::uintptr_t>(object));
        return static_cast<std::size_t>(hash >> (64 - std::countr_zero(chains_.size())));
    }
    void link(source_member& joining) noexcept {
        joining.next_ = std::exchange(chains_[chain_of(joining.object())], &joining);
    }

    std::vector<source_member*> chains_;
    std::size_t count_ = 0;
};

}  // namespace tocsin::core

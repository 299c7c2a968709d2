// SPDX-License-Identifier: Apache-2.0
// The table of what a driver's loop has to watch.
//
// State: a `use` says that a request names a descriptor. A request has one use for each of its descriptors, from a pool
// of uses. Each descriptor has an entry, which a hash table finds. The entry has a list of the descriptor's uses,
// oldest first. So when the loop finds something for a descriptor, the cost depends only on the requests that name this
// descriptor. Only reserve() allocates.
//
// Invariants
//   watch_table-1  An entry's `asked` is what all its uses together ask for; `told` is what the loop was last told.
//   watch_table-2  An entry whose `asked` differs from its `told` is in the list of changes. So is an entry that had no
//       uses at some time since the loop was told to watch it. The descriptor may have been closed in that time, and
//       its number may have a new meaning.
//   watch_table-3  An entry that has no uses and is not in the list of changes is free. The loop does not watch its
//       descriptor.
//   watch_table-4  An entry has a generation, which changes whenever the entry loses its last use. The loop is told the
//       entry's number and its generation together, as the identity of the watch. So a report about a watch concerns
//       exactly the uses that have followed each other without a gap since the loop was told. While there is a use, the
//       descriptor is open, unless the user has made a mistake. In a gap the number may have got another meaning, and
//       what the loop has found of the former meaning says nothing about the new one. The next update() then tells the
//       new identity (watch_table-2), so the loop looks again, and finds what is ready.
//       illegal: a report that was made of an earlier watch ends a wait that began after that watch.
//       A generation is never 0. So no identity is less than 2^32, and none is the number of a descriptor. After 2^32
//       watches in one entry a generation returns: a loop that has kept a report for that long may end a wait too
//       early.
//
// Checked by: tests/model/driver_model_test.cpp (P23 of docs/proofs.md), tests/unit/driver_test.cpp.
#include "core/async/watch_table.hpp"

#include <tocsin/detail/intrusive_list.hpp>

#include <chrono>
#include <span>
#include <utility>

namespace tocsin::core {

void watch_table::reserve(std::size_t more) {
    if (used_uses_ + more > uses_.size()) {
        auto at = static_cast<index>(uses_.size());
        uses_.resize(2 * (used_uses_ + more));
        for (; at != uses_.size(); ++at) uses_[at].next = std::exchange(free_uses_, at);
    }
    if (used_entries_ + more > entries_.size()) {
        const std::size_t size = 2 * (used_entries_ + more);
        std::vector<index> buckets(size, none);
        auto at = static_cast<index>(entries_.size());
        entries_.resize(size);
        std::swap(buckets_, buckets);
        for (index first : buckets) {
            while (first != none) {
                entry& each = entries_[first];
                const index moved = std::exchange(first, each.next);
                each.next = std::exchange(bucket(each.descriptor), moved);
            }
        }
        for (; at != size; ++at) entries_[at].next = std::exchange(free_entries_, at);
    }
}

bool watch_table::add(poll_request& one) noexcept {
    bool changed = false;
    one.is_set_ = true;
    one.number_ = none;
    for (std::size_t i = one.what_.size(); i-- != 0;) {
        one.what_[i].found = readiness::none;
        const index at = free_uses_;
        use& made = uses_[at];
        free_uses_ = made.next;
        ++used_uses_;
        made.by = &one;
        made.entry = find_or_make(one.what_[i].descriptor);
        made.number = static_cast<index>(i);
        made.of_request = static_cast<index>(std::exchange(one.number_, at));
        link(at);
        ask(entries_[made.entry], one.what_[i].asked, 1);
        changed |= note_change(made.entry);
    }
    return changed;
}

bool watch_table::remove(poll_request& one) noexcept {
    if (!std::exchange(one.is_set_, false)) return false;
    bool changed = false;
    for (auto at = static_cast<index>(one.number_); at != none;) {
        use& gone = uses_[at];
        unlink(at);
        entry& of = entries_[gone.entry];
        ask(of, one.what_[gone.number].asked, static_cast<index>(-1));
        of.renewed |= of.first_use == none;
        if (of.first_use == none) end_watch(of);  // watch_table-4
        changed |= note_change(gone.entry);
        gone.next = std::exchange(free_uses_, at);
        --used_uses_;
        at = gone.of_request;
    }
    return changed;
}

bool watch_table::take_change(change& told) noexcept {
    while (first_change_ != none) {
        const index at = first_change_;
        entry& one = entries_[at];
        first_change_ = one.next_change;
        if (first_change_ == none) last_change_ = none;
        --changes_;
        one.is_changed = false;
        // If the loop doesn't watch the descriptor, there is no registration to renew.
        const bool renewed = std::exchange(one.renewed, false) && one.told != readiness::none;
        const readiness before = std::exchange(one.told, one.asked);
        // A watch that is to end is named as it was told.
        if (one.asked != readiness::none) one.told_generation = one.generation;
        told = {id_of(at, one.told_generation), one.descriptor, one.asked, renewed};
        if (one.first_use == none) free_entry(at);
        if (told.asked != before || (renewed && told.asked != readiness::none)) return true;
    }
    return false;
}

void watch_table::claim_found(std::uint64_t id, readiness found, due_calls& due) noexcept {
    const auto at = static_cast<index>(id);
    if (at >= entries_.size() || id != id_of(at, entries_[at].generation)) return;  // watch_table-4
    if (found == readiness::none) return;
    detail::intrusive_list<poll_request> ready;
    for (index each = entries_[at].first_use; each != none; each = uses_[each].next) {
        const use& one = uses_[each];
        const readiness of_this = found_for(one, found);
        one.by->what_[one.number].found = of_this;
        // A request that names the descriptor twice is appended only once.
        if (of_this != readiness::none && !std::exchange(one.by->is_due_, true)) ready.append(*one.by);
    }
    while (poll_request* const each = ready.take_first()) {
        each->is_due_ = false;
        (void)remove(*each);  // the loop, which called, asks for changes before it sleeps
        due.claim(*each);
    }
}

// Returns the part of what was found that concerns this use. A hang_up is ambiguous if this use has not asked for it
// but the loop watches for it on behalf of another use. Then both directions may be closed, which concerns this use, or
// only one direction, which does not. So this function polls the descriptor for this use alone.
readiness watch_table::found_for(const use& one, readiness found) const noexcept {
    const entry& of = entries_[one.entry];
    const readiness asked = one.by->what_[one.number].asked;
    const bool ambiguous = has(found, readiness::hang_up) && !has(asked, readiness::hang_up) &&
                           has(of.asked | of.told, readiness::hang_up);
    const readiness mine = found & (asked | readiness::error | readiness::invalid);
    if (!ambiguous) return mine | (found & readiness::hang_up);
    platform::poll_entry alone{.descriptor = of.descriptor, .asked = asked};
    const auto result =
        platform::poller::poll(std::span(&alone, 1), platform::no_doorbell, std::chrono::nanoseconds(0));
    return result.error == 0 ? alone.found : mine;
}

watch_table::index watch_table::find_or_make(int descriptor) noexcept {
    index found = bucket(descriptor);
    while (found != none && entries_[found].descriptor != descriptor) found = entries_[found].next;
    if (found != none) return found;
    const index at = free_entries_;
    free_entries_ = entries_[at].next;
    ++used_entries_;
    const std::uint32_t generation = entries_[at].generation;
    entries_[at] = {};
    entries_[at].generation = generation == 0 ? 1 : generation;
    entries_[at].descriptor = descriptor;
    entries_[at].next = std::exchange(bucket(descriptor), at);
    return at;
}

void watch_table::free_entry(index at) noexcept {
    index* link = &bucket(entries_[at].descriptor);
    while (*link != at) link = &entries_[*link].next;
    *link = entries_[at].next;
    entries_[at].next = std::exchange(free_entries_, at);
    --used_entries_;
}

void watch_table::link(index one) noexcept {
    entry& of = entries_[uses_[one].entry];
    uses_[one].next = none;
    uses_[one].previous = of.last_use;
    (of.last_use != none ? uses_[of.last_use].next : of.first_use) = one;
    of.last_use = one;
}

void watch_table::unlink(index one) noexcept {
    entry& of = entries_[uses_[one].entry];
    const index next = uses_[one].next;
    const index previous = uses_[one].previous;
    (previous != none ? uses_[previous].next : of.first_use) = next;
    (next != none ? uses_[next].previous : of.last_use) = previous;
}

void watch_table::ask(entry& of, readiness what, index by) noexcept {
    readiness all = readiness::none;
    for (std::size_t i = 0; i != kinds; ++i) {
        const auto kind = static_cast<readiness>(1u << i);
        if (has(what, kind)) of.askers[i] += by;
        if (of.askers[i] != 0) all = all | kind;
    }
    // Errors are found even if nobody asks for them. Even if the uses ask for nothing else, the loop has to watch the
    // descriptor.
    of.asked = all == readiness::none && of.first_use != none ? readiness::error : all;
}

bool watch_table::note_change(index at) noexcept {
    entry& one = entries_[at];
    if (one.is_changed || (one.asked == one.told && !one.renewed)) return false;
    one.is_changed = true;
    one.next_change = none;
    (last_change_ != none ? entries_[last_change_].next_change : first_change_) = at;
    last_change_ = at;
    ++changes_;
    return true;
}

}  // namespace tocsin::core

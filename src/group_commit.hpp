// SPDX-License-Identifier: Apache-2.0
// The members of a group_commit: their queue, and the words that they sleep on. Why it is correct: group_commit.cpp.
#pragma once

#include "core/lot/lot.hpp"
#include "core/lot/shared_word.hpp"
#include "core/lot/waiter.hpp"
#include "core/wait/spinner.hpp"

#include <tocsin/group_commit.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iterator>
#include <utility>

namespace tocsin::detail {

// A member's node is for the queue in this file, not for a queue of the lot. So the node's key means nothing. The
// node's kind says how its thread sleeps: waiter, delegate or sharer.
struct member : submission, core::wait_node {
    member(const volatile void* object, const wait_options& options) noexcept
        : submission(object),
          wait_node({nullptr, core::wait_kind::event}, sleeper, core::can_cancel(options)),
          stoppable(options.stop != nullptr && options.stop->stop_possible()),
          adaptive(core::policy_of(options).which() == spin_policy::mode::adaptive),
          joined(std::chrono::steady_clock::now()) {}

    // Whether a deadline or a stop can still end its wait.
    bool may_withdraw() const noexcept { return cancelable && !taken; }

    const bool stoppable;  // a stop releases the waiter alone (shared_word-1)
    const bool adaptive;   // its thread may yield
    core::waiter sleeper;
    plain<bool> yields{false};  // before its thread sleeps
    plain<bool> leads{false};
    plain<bool> taken{false};  // by a flush that has left it to the next group (group_commit-7)
    std::exception_ptr error;
    const std::chrono::steady_clock::time_point joined;
};

inline member* member_of(core::wait_node* node) noexcept { return static_cast<member*>(node); }
inline const member* member_of(const core::wait_node* node) noexcept {
    return static_cast<const member*>(node);
}

// The members that one flush is for, the leader first.
struct group {
    core::node_list members;
    std::size_t size = 0;
    bool differs = false;  // whether the members may differ in urgency (relay-4 in core/lot/relay.cpp)
};

// Used only under its owner's lock.
class member_queue {
public:
    std::size_t size() const noexcept { return size_; }

    void append(member& last) noexcept {
        last.queued = true;
        last.set_urgency_of_this_thread();
        if (nodes_.empty()) differs_ = false;
        nodes_.append(last);
        if (last.urgency != nodes_.first()->urgency) differs_ = true;
        ++size_;
        if (last.may_withdraw()) ++cancelables_;
    }

    // Puts members in front of all others. None of them may withdraw.
    void put_back(group left) noexcept {
        nodes_.insert_after(nullptr, std::move(left.members));
        size_ += left.size;
        differs_ = true;  // perhaps
    }

    void remove(core::wait_node& gone) noexcept {
        nodes_.remove(gone);
        gone.queued = false;
        --size_;
        if (member_of(&gone)->may_withdraw()) --cancelables_;
    }

    // Takes out the oldest member that has not withdrawn (group_commit-3).
    member* take_first() noexcept {
        while (core::wait_node* const oldest = nodes_.first()) {
            remove(*oldest);
            if (!member_of(oldest)->may_withdraw() || oldest->owner->try_claim(core::claim::signaled))
                return member_of(oldest);
        }
        return nullptr;
    }

    // Takes out up to `max` of the oldest members.
    group take(std::size_t max) noexcept {
        group taken;
        if (cancelables_ == 0 && size_ <= max) {
            // `queued` stays on, since nobody reads it (lot-2 in core/lot/lot.cpp).
            taken = {std::move(nodes_), size_, differs_};
            size_ = 0;
            return taken;
        }
        taken.differs = differs_;
        for (; taken.size != max; ++taken.size) {
            member* const each = take_first();
            if (each == nullptr) break;
            taken.members.append(*each);
        }
        return taken;
    }

private:
    core::node_list nodes_;
    plain<std::size_t> size_{0};         // including members that are about to withdraw
    plain<std::size_t> cancelables_{0};  // members that may withdraw
    plain<bool> differs_{false};         // whether members may differ in urgency
};

// The words on which members sleep together, so that one call wakes a batch of them. Used only under its owner's lock.
class shared_words {
public:
    // Decides how the thread of a member that is about to be queued will sleep. `position` is the member's position in
    // its group if nobody withdraws; 0 is the leader's. The leader is in no batch. The others form batches. A batch
    // consists of a delegate, which sleeps on a word of its own, and its sharers (core/lot/shared_word.cpp). If members
    // have withdrawn, a group may have more delegates than it needs, or fewer. The only cost is more calls to wake
    // threads.
    void choose(member& joining, std::size_t position) noexcept {
        using kind = core::wait_node::kind;
        if (position == 0) return;
        if ((position - 1) % core::waiters_per_batch == 0) {
            joining.wait_node::what = kind::delegate;
            word_ = nullptr;
        } else if (core::shared_word* const word = joining.stoppable ? nullptr : join_or_begin_batch()) {
            joining.wait_node::what = kind::sharer;
            joining.sleeper.share(*word);
        }
    }

    // Whether any member is counted as a sharer. While nobody submits, none is.
    bool are_used() const noexcept {
        return std::ranges::any_of(words_, [](const core::shared_word& each) { return !each.is_unused(); });
    }

private:
    // Counts a sharer in a word, and returns this word. Returns null if each word that it looks at belongs to another
    // batch.
    core::shared_word* join_or_begin_batch() noexcept {
        core::shared_word* word = word_;
        if (word != nullptr) {
            word->join_batch();
            return word;
        }
        for (std::size_t looks = 0; looks != core::max_looks_for_batch && word == nullptr; ++looks) {
            core::shared_word& next = words_[++used_ % std::size(words_)];
            if (next.try_begin_batch()) word = &next;
        }
        word_ = word;
        return word;
    }

    core::shared_word words_[64];
    plain<core::shared_word*> word_{nullptr};  // of the batch that members join now, once that has a sharer
    plain<std::size_t> used_{0};
};

}  // namespace tocsin::detail

// Lists of those who wait for a source of the user's own. Everything here but wake() happens under the user's lock;
// the argument is in core/wait/multi_wait.cpp.
#include "core/lot/resume_queue.hpp"
#include "core/wait/multi_wait.hpp"

#include <tocsin/source.hpp>

namespace tocsin {

void waiting_list::append(wait_entry& who) noexcept {
    who.listed_ = true;
    who.next_ = nullptr;
    who.previous_ = last_;
    (last_ != nullptr ? last_->next_ : first_) = &who;
    last_ = &who;
}

void waiting_list::remove(wait_entry& who) noexcept {
    if (!who.listed_) return;
    who.listed_ = false;
    (who.previous_ != nullptr ? who.previous_->next_ : first_) = who.next_;
    (who.next_ != nullptr ? who.next_->previous_ : last_) = who.previous_;
}

// A wait for any is claimed, and can't end before it is released; one for all is pinned.
wake_list waiting_list::notify_one() noexcept {
    while (wait_entry* const oldest = first_) {
        remove(*oldest);
        oldest->next_ = nullptr;
        if (oldest->wait_->notify(oldest->index_)) return wake_list(oldest);
    }
    return {};
}

wake_list waiting_list::notify_all() noexcept {
    wake_list all;
    wait_entry** end = &all.first_;
    for (wake_list one = notify_one(); !one.empty(); one = notify_one()) {
        *end = std::exchange(one.first_, nullptr);
        end = &(*end)->next_;
    }
    return all;
}

void wake_list::wake() noexcept {
    const core::defer_resumes after_all;
    for (wait_entry* each = std::exchange(first_, nullptr); each != nullptr;) {
        wait_entry* const next = each->next_;  // before the wake, after which `each` is gone
        each->wait_->wake_notified();
        each = next;
    }
}

}  // namespace tocsin

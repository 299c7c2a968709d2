// The waits for a custom source. Everything here except wake() runs under the lock that guards the list. The argument
// is in core/wait/multi_wait.cpp.
#include "core/lot/resume_queue.hpp"
#include "core/wait/multi_wait.hpp"

#include <tocsin/source.hpp>

namespace tocsin {

void waiting_list::append(wait_entry& entry) noexcept {
    entry.listed_ = true;
    entries_.append(entry);
}

void waiting_list::remove(wait_entry& entry) noexcept {
    if (!entry.listed_) return;
    entry.listed_ = false;
    entries_.remove(entry);
}

// The entries in the list that is returned stay valid until wake(). A wait for any has been claimed, and cannot end
// before it is released. A wait for all is kept alive by its rundown.
wake_list waiting_list::notify_one() noexcept {
    wake_list freed;
    while (wait_entry* const oldest = entries_.first()) {
        remove(*oldest);
        if (!oldest->wait_->notify(oldest->index_)) continue;
        freed.entries_.append(*oldest);
        break;
    }
    return freed;
}

wake_list waiting_list::notify_all() noexcept {
    wake_list all;
    for (wake_list one = notify_one(); !one.empty(); one = notify_one()) {
        all.entries_.append(*one.entries_.take_first());
    }
    return all;
}

void wake_list::wake() noexcept {
    const core::defer_resumes after_all;
    // Takes the entry off the list first: after its wake, it may be gone.
    while (wait_entry* const next = entries_.take_first()) next->wait_->wake_notified();
}

}  // namespace tocsin

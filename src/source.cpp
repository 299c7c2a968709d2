// SPDX-License-Identifier: Apache-2.0
// The waits for a custom source, and lists of waits that are still to be released. The functions of entry_list
// run under the user's lock, and those of wake_list need none. Why it is correct: core/wait/multi_wait.cpp.
//
// A wake_list holds entries of custom sources, and nodes that a set() has taken off the queues of events. Both belong
// to the list: their waits cannot return before wake(). Each of these waits has been claimed, or has no other way to
// end (lot-3 in core/lot/lot.cpp), or is a wait for all whose rundown notify() has acquired. So the entries and nodes
// exist, however long the list is kept.
//
// Checked by: tests/unit/wait_test.cpp, tests/unit/event_test.cpp, tests/model/event_model_test.cpp.
#include "core/lot/relay.hpp"
#include "core/lot/resume_queue.hpp"
#include "core/wait/multi_wait.hpp"
#include "platform/system/system.hpp"

#include <tocsin/source.hpp>

#include <utility>

namespace tocsin {

void entry_list::append(wait_entry& entry) noexcept {
    entry.listed_ = true;
    entries_.append(entry);
}

void entry_list::remove(wait_entry& entry) noexcept {
    if (!entry.listed_) return;
    entry.listed_ = false;
    entries_.remove(entry);
}

// The entries in the returned list stay valid until its wake(). A wait for any has been claimed, and cannot end before
// it is released. A wait for all is kept alive by its rundown, which notify() has acquired.
wake_list entry_list::notify_one() noexcept {
    wake_list freed;
    while (wait_entry* const oldest = entries_.first()) {
        remove(*oldest);
        if (!oldest->wait_->notify(oldest->index_)) continue;
        freed.entries_.append(*oldest);
        break;
    }
    return freed;
}

std::size_t entry_list::notify_n(std::size_t max, wake_list& freed) noexcept {
    std::size_t ended = 0;
    for (; ended != max; ++ended) {
        wake_list one = notify_one();
        if (one.empty()) break;
        freed.append(std::move(one));
    }
    return ended;
}

wake_list entry_list::notify_all() noexcept {
    wake_list all;
    (void)notify_n(static_cast<std::size_t>(-1), all);
    return all;
}

void detail::left_wakes::add(wake_list& to, core::release_list&& freed) noexcept {
    core::release_list all(std::move(to.nodes_), to.last_coroutine_, to.differs_);
    all.append(std::move(freed));
    to.last_coroutine_ = all.last_coroutine();
    to.differs_ = all.differs_in_urgency();
    to.nodes_ = all.take_nodes();
}

void wake_list::append(wake_list&& more) noexcept {
    entries_.insert_after(entries_.last(), std::move(more.entries_));
    detail::left_wakes::add(
        *this, core::release_list(std::move(more.nodes_), std::exchange(more.last_coroutine_, nullptr),
                                  std::exchange(more.differs_, false)));
}

void wake_list::wake() noexcept {
    const core::defer_resumes after_all;
    wake_list all(std::move(*this));  // a woken thread may destroy this list
    core::release_list(std::move(all.nodes_), all.last_coroutine_, all.differs_).wake();
    // Each entry is taken off the list first: after its wake, the entry may be gone.
    while (wait_entry* const next = all.entries_.take_first()) next->wait_->wake_notified();
}

void wake_list::wake_dropped(bool checked) noexcept {
    if (checked)
        platform::die("tocsin: wake_list dropped before its wake(): those who wait in it would sleep on\n");
    wake();
}

}  // namespace tocsin

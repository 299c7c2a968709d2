// SPDX-License-Identifier: Apache-2.0
// Windows: the poll sets. How one poll works: windows_poll.cpp. The doorbells: windows_event_doorbells.hpp.
// What the poll sets have in common with those of other systems, and why they lose no change: copied_poll_set.hpp.
//
// Invariants
//   windows-1  A thread that removes or changes a member during a wait returns only once the poll under way has ended,
//       because that poll may have tied the member's socket to an event of its own (windows_poll.cpp). Later polls do
//       not use a removed member. So after a removal, it is safe if another thread waits for the descriptor, or if the
//       system gives the descriptor's number to something else. (The change has rung the set's bell, which ends the
//       poll under way: copied_poll_set-2.)
//   windows-2  A wait returns a poll's error only if the copy is not older than the list. Otherwise the wait polls
//       again with a new copy. A poll that fails looks once more before it returns the error. If that look finds
//       something (for example, that a closed handle is `invalid`), the poll returns the finding and no error
//       (windows_poll-3). Then copied_poll_set-1 decides whether the finding counts.
//
// The end of a poll wakes exactly the threads that await it. When the waiting thread's poll has ended, that thread
// takes the mutex again. Before it frees the mutex, it raises the count of ended polls and wakes all threads that await
// the end of this poll. A thread that awaits the end of the next poll must first take the mutex, so it comes too late
// to receive one of these wakes. The cost of a wait grows with the number of members.
//
// Checked by: tests/unit/windows_fd_test.cpp, tests/internal/windows_poller_test.cpp, tests/copies.
#include "platform/system/windows.hpp"

#include "platform/futex/futex.hpp"
#include "platform/poller/backend.hpp"
#include "platform/poller/copied_poll_set.hpp"
#include "platform/poller/poll_set_members.hpp"
#include "platform/poller/windows_event_doorbells.hpp"
#include "platform/poller/windows_look.hpp"
#include "platform/poller/windows_poll.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace tocsin::platform {
namespace {

class windows_poll_set final
    : public copied_poll_set<windows_poll_set, windows_event_doorbells, mutex, readiness> {
public:
    static int why_not_member(int descriptor, readiness asked) noexcept {
        poll_entry one{descriptor, asked, readiness::none};
        WSAPOLLFD storage[1];
        if (const int error = look({&one, 1}, storage); error != 0) return error;
        return has(one.found, readiness::invalid) ? EBADF : 0;
    }
    static int why_no_member(int) noexcept { return ENOENT; }
    static readiness to_asked(readiness asked) noexcept { return asked; }

    poll_result wait(std::span<item> out, const deadline& until) noexcept override;

    void await_poll_under_way() noexcept;

private:
    // The caller of these two functions holds the mutex.
    void end_poll() noexcept;
    void copy_members();

    std::uint32_t awaiting_ = 0;  // threads that wait for the end of the poll under way; under the mutex
    futex_word ended_{0};         // how many polls have ended

    // Used only by the waiting thread:
    member_copy<poll_entry> copy_;
    std::vector<WSAPOLLFD> storage_;
};

// Called after the change has rung, if a thread waits. Frees the mutex while this thread sleeps.
void windows_poll_set::await_poll_under_way() noexcept {
    if (!waiting_ || other_threads_are_gone()) return;
    ++awaiting_;
    const std::uint32_t seen = ended_.load(std::memory_order_relaxed);  // no order: the mutex gives it
    mutex_.unlock();
    // no order: the mutex gives it
    while (ended_.load(std::memory_order_relaxed) == seen) futex::wait(ended_, seen, deadline::never());
    mutex_.lock();
}

void windows_poll_set::end_poll() noexcept {
    waiting_ = false;
    ended_.fetch_add(1, std::memory_order_relaxed);  // no order: the mutex gives it
    for (; awaiting_ != 0; --awaiting_) futex::wake_one(&ended_);
}

void windows_poll_set::copy_members() {
    if (copy_.is_current(changes_)) return;
    copy_.take(members_, changes_,
               [](const member& each) { return poll_entry{each.descriptor, each.asked, readiness::none}; });
    storage_.resize(copy_.size());
}

poll_result windows_poll_set::wait(std::span<item> out, const deadline& until) noexcept {
    const errno_guard guard;
    for (;;) {
        {
            const lock_guard lock(mutex_);
            TOCSIN_TRY { copy_members(); }
            TOCSIN_CATCH(const std::bad_alloc&) {
                copy_.forget();
                return {.error = ENOMEM};
            }
            waiting_ = true;
        }
        poll_result result = poll_with(copy_.polled(), &own_bell(), until, storage_.data());
        const lock_guard lock(mutex_);
        end_poll();
        result.culprit = no_culprit;  // an index into the copy means nothing to the caller
        if (result.error != 0 && !copy_.is_current(changes_)) continue;
        if (result.error != 0 || result.timed_out) return result;
        result.ready =
            copy_.report(members_, out, [](const poll_entry& each) noexcept { return each.found; });
        if (result.ready != 0 || result.rung) return result;
    }
}

// The storage that look() needs for one poll. Allocates only for more than `polled_without_allocation` descriptors.
class look_storage {
public:
    explicit look_storage(std::size_t size) noexcept {
        if (size > polled_without_allocation) at_ = new (std::nothrow) WSAPOLLFD[size];
    }
    ~look_storage() {
        if (at_ != few_) delete[] at_;
    }
    look_storage(const look_storage&) = delete;
    look_storage& operator=(const look_storage&) = delete;
    WSAPOLLFD* get() noexcept { return at_; }

private:
    WSAPOLLFD few_[polled_without_allocation];
    WSAPOLLFD* at_ = few_;
};

}  // namespace

struct windows_polling : windows_event_doorbells {
    using set = windows_poll_set;

    static poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept {
        const errno_guard guard;
        look_storage storage(what.size());
        if (storage.get() == nullptr) return {.error = ENOMEM};
        return poll_with(what, doorbells().find(bell), until, storage.get());
    }
};
template struct poller_backend<windows_polling>;

}  // namespace tocsin::platform

// Windows: the poll sets. How one poll works: windows_poll.cpp. The doorbells: windows_event_doorbells.hpp.
//
// State: a poll set is a list of members, under a lock. The waiting thread has its own copy of the list, which it polls
// without the lock.
//
// Invariants
//   windows-1  Every member has a serial number, and gets a new one with each change. What a poll finds in the copy
//       counts only for members whose serial numbers are still in the list.
//   windows-2  No thread keeps sleeping on a copy older than the list: a thread that changes the list during a wait
//       rings the set's bell. A thread that removes or changes a member then waits until the poll under way has ended,
//       because that poll may have tied the member's socket to an event of its own (windows_poll.cpp). Once that poll
//       has ended, another thread may wait for the descriptor, or the system may give the descriptor's number to
//       something else.
//   windows-3  A wait returns a poll's error only if the copy is not older than the list. Otherwise the wait polls
//       again with a new copy. A poll that fails looks once more before it returns the error. If that look finds
//       something (for example, that a closed handle is `invalid`), the poll returns the finding and no error
//       (windows_poll-3). Then windows-1 decides whether the finding counts.
//
// No lost wake-up: windows-2 holds because both sides act under the lock. While a thread that changes the list holds
// the lock, it checks whether a thread waits. While a thread that waits holds the lock, it makes its copy and notes
// that it waits. So either the copy contains the change, or the thread that changes the list sees that a thread waits,
// and rings. When the waiting thread's poll has ended, that thread takes the lock again. Before it frees the lock, it
// raises the count of ended polls and wakes all threads that await the end of this poll. A thread that awaits the end
// of the next poll must first take the lock, so it comes too late to receive one of these wakes.
//
// The cost of a wait grows with the number of members.
//
// Checked by: tests/unit/windows_fd_test.cpp, tests/internal/windows_poller_test.cpp, tests/copies.
#include "platform/system/windows.hpp"

#include "platform/futex/futex.hpp"
#include "platform/poller/backend.hpp"
#include "platform/poller/poll_set_members.hpp"
#include "platform/poller/windows_event_doorbells.hpp"
#include "platform/poller/windows_look.hpp"
#include "platform/poller/windows_poll.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/refuse.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace tocsin::platform {
namespace {

class windows_poll_set final : public poll_set_with_bell<windows_event_doorbells> {
public:
    int open() noexcept { return take_bell(); }

    int add(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int change(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int remove(int descriptor) noexcept override;
    poll_result wait(std::span<item> out, const deadline& until) noexcept override;

private:
    struct member {
        int descriptor;
        readiness asked;
        std::uint64_t tag;
        std::uint64_t serial;
    };

    static int why_not_in_a_set(int descriptor, readiness asked) noexcept {
        poll_entry one{descriptor, asked, readiness::none};
        WSAPOLLFD storage[1];
        if (const int error = look({&one, 1}, storage); error != 0) return error;
        return has(one.found, readiness::invalid) ? EBADF : 0;
    }

    // The caller of these four functions holds the lock.
    void changed() noexcept {
        ++changes_;
        if (waiting_) ring();
    }
    void await_poll_under_way() noexcept;
    void end_poll() noexcept;
    void copy_members();

    mutex mutex_;
    member_table<member> members_;
    std::uint64_t changes_ = 0;
    bool waiting_ = false;
    std::uint32_t awaiting_ = 0;  // threads that wait for the end of the poll under way
    futex_word ended_{0};         // how many polls have ended

    // Used only by the waiting thread:
    member_copy<poll_entry> copy_;
    std::vector<WSAPOLLFD> storage_;
};

int windows_poll_set::add(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard guard;
    if (const int error = why_not_in_a_set(descriptor, asked); error != 0) return error;
    const lock_guard lock(mutex_);
    const int error = members_.insert({descriptor, asked, tag, changes_});
    if (error == 0) changed();
    return error;
}

int windows_poll_set::change(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard guard;
    if (const int error = why_not_in_a_set(descriptor, asked); error != 0) return error;
    const lock_guard lock(mutex_);
    member* const found = members_.find(descriptor);
    if (found == nullptr) return ENOENT;
    *found = {descriptor, asked, tag, changes_};
    changed();
    await_poll_under_way();
    return 0;
}

int windows_poll_set::remove(int descriptor) noexcept {
    const errno_guard guard;
    const lock_guard lock(mutex_);
    const member* const found = members_.find(descriptor);
    if (found == nullptr) return ENOENT;
    members_.erase(*found);
    changed();
    await_poll_under_way();
    return 0;
}

// Called after changed(), which has rung if a thread waits. Frees the lock while this thread sleeps.
void windows_poll_set::await_poll_under_way() noexcept {
    if (!waiting_ || other_threads_are_gone()) return;
    ++awaiting_;
    const std::uint32_t seen = ended_.load(std::memory_order_relaxed);  // no order: the lock gives it
    mutex_.unlock();
    // no order: the lock gives it
    while (ended_.load(std::memory_order_relaxed) == seen) futex::wait(ended_, seen, deadline::never());
    mutex_.lock();
}

void windows_poll_set::end_poll() noexcept {
    waiting_ = false;
    ended_.fetch_add(1, std::memory_order_relaxed);  // no order: the lock gives it
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

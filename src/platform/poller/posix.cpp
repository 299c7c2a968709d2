// Any POSIX system: poll(2) and pipes (pipe_doorbells.hpp).
//
// State
//   A poll set is a list of members, under a mutex. The waiting thread has its own copy of the list, which it polls
//   without the mutex.
//
// Invariants
//   posix-1  Every member has a serial number, and gets a new one with each change. What a poll finds in the copy
//       counts only for members whose serial numbers are still in the list. So a wait does not report a member that was
//       removed before the wait compared the numbers.
//   posix-2  No thread keeps sleeping on a copy older than the list: a thread that changes the list during a wait rings
//       the set's bell.
//
// No lost wake-up: to strike a doorbell is to write a byte into its pipe, and to answer it is to mark it as not rung
// (doorbells.cpp). The byte stays in the pipe until the sleeper reads it, and the sleeper answers only after it has
// read the byte. posix-2 holds because both sides act under the mutex. A thread that changes the list checks, while it
// holds the mutex, whether a thread waits. A thread that is about to wait makes its copy and notes that it waits, both
// while it holds the mutex. So either the copy contains the change, or the thread that changes the list sees that a
// thread waits, and rings.
//
// Timeouts are in milliseconds, rounded up. No timeout of poll(2) follows the system clock. So a wait with a deadline
// on that clock starts a second thread. The second thread sleeps on a condition variable until the deadline
// (condition_wait.hpp), and then rings a doorbell that the waiting thread polls, too. Such a wait costs a thread, and
// fails with EAGAIN if the system can't make one.
//
// The cost of a wait grows with the number of members. Unlike the calls of linux.cpp, the calls of this file may be
// pthread cancellation points.
//
// Checked by: tests/internal/doorbell_test.cpp, poll_test.cpp, poll_set_test.cpp; in the portable build also by the
// suites of the features above.
#include "platform/futex/condition_wait.hpp"
#include "platform/poller/backend.hpp"
#include "platform/poller/pipe_doorbells.hpp"
#include "platform/poller/poll_list.hpp"
#include "platform/poller/poll_set_members.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/refuse.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include <pthread.h>
#include <signal.h>

namespace tocsin::platform {
namespace {

using pipes = pipe_doorbells;

#if defined(__EMSCRIPTEN__)
// Emscripten's poll(2) looks and never sleeps (3.1.6). This function naps between looks.
int sleep(pollfd* what, nfds_t size, std::int64_t nanoseconds) noexcept {
    constexpr std::int64_t nap = 1'000'000;
    for (std::int64_t left = nanoseconds;;) {
        const int found = ::poll(what, size, 0);
        if (found != 0 || left == 0) return found;
        const std::int64_t now = left == no_timeout ? nap : std::min(left, nap);
        std::this_thread::sleep_for(std::chrono::nanoseconds(now));
        if (left != no_timeout) left -= now;
    }
}
#else
int sleep(pollfd* what, nfds_t size, std::int64_t nanoseconds) noexcept {
    constexpr std::int64_t longest = 1 << 30;
    const std::int64_t milliseconds =
        nanoseconds == no_timeout ? -1 : (nanoseconds - 1 + 1'000'000) / 1'000'000;
    return ::poll(what, size, static_cast<int>(std::min(milliseconds, longest)));
}
#endif

// Has a doorbell, and a thread that rings it when a deadline on the system clock has passed, even if somebody sets that
// clock.
class clock_follower {
public:
    explicit clock_follower(const deadline& until) noexcept : until_(until.nanoseconds()) {
        const auto taken = pipes::doorbells().acquire(pipes::make_doorbell);
        bell_ = taken.id;
        error_ = taken.error;
        if (error_ != 0) return;
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signal handlers run only in the program's threads
        // Not a std::thread, which allocates and throws.
        error_ = ::pthread_create(&thread_, nullptr, follow, this);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    ~clock_follower() {
        if (error_ == 0) {
            {
                const std::lock_guard guard(mutex_);
                done_ = true;
            }
            changed_.notify_one();
            ::pthread_join(thread_, nullptr);
        }
        if (bell_ != no_doorbell) pipes::doorbells().release(bell_);
    }
    clock_follower(const clock_follower&) = delete;
    clock_follower& operator=(const clock_follower&) = delete;

    int error() const noexcept { return error_; }
    doorbell& bell() const noexcept { return pipes::doorbells()[bell_]; }

private:
    static void* follow(void* what) noexcept {
        auto& self = *static_cast<clock_follower*>(what);
        std::unique_lock lock(self.mutex_);
        const auto done = [&self] { return self.done_; };
        if (!wait_until<std::chrono::system_clock>(self.changed_, lock, self.until_, done))
            pipes::doorbells().ring(self.bell_, pipes::strike);
        return nullptr;
    }

    const std::int64_t until_;
    doorbell_id bell_ = no_doorbell;
    int error_ = 0;
    bool done_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    pthread_t thread_{};  // exists if there is no error
};

// Polls until some descriptors are ready or the deadline has passed, and returns what poll_until returns. `what` has
// room for one more entry after `size` entries.
int sleep_until(pollfd* what, nfds_t size, const deadline& until) noexcept {
    const auto look = [&] {
        return poll_until(std::chrono::nanoseconds(0), [&](std::int64_t) { return sleep(what, size, 0); });
    };
    if (until.which() != deadline::clock::system) {
        return poll_until(until, [&](std::int64_t left) { return sleep(what, size, left); });
    }
    for (;;) {
        if (const int found = look(); found != 0 || until.has_passed()) return found;
        const clock_follower follower(until);
        if (follower.error() != 0) return -follower.error();
        what[size] = pollfd{follower.bell().wait_end(), POLLIN, 0};
        const int found =
            poll_until(deadline::never(), [&](std::int64_t left) { return sleep(what, size + 1, left); });
        const bool followed = pipes::was_rung(follower.bell(), found > 0 ? what[size].revents : 0);
        if (found < 0 || found > (followed ? 1 : 0)) return found - (followed ? 1 : 0);
    }
}

class posix_poll_set final : public poll_set_with_bell<pipes> {
public:
    int open() noexcept { return take_bell(); }

    int add(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int change(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int remove(int descriptor) noexcept override;
    poll_result wait(std::span<item> out, const deadline& until) noexcept override;

private:
    struct member {
        int descriptor;
        short events;
        std::uint64_t tag;
        std::uint64_t serial;
    };

    // The caller of these two functions holds the mutex.
    void changed() noexcept {
        ++changes_;
        if (waiting_) ring();
    }
    void copy_members();

    std::mutex mutex_;
    member_table<member> members_;
    std::uint64_t changes_ = 0;
    bool waiting_ = false;

    // Used only by the waiting thread. After the members' entries come the bell's entry and room for one more.
    member_copy<pollfd> copy_;
};

int posix_poll_set::add(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard guard;
    if (const int error = why_not_in_a_set(descriptor); error != 0) return error;
    const std::lock_guard lock(mutex_);
    const int error = members_.insert({descriptor, to_poll_events(asked), tag, changes_});
    if (error == 0) changed();
    return error;
}

int posix_poll_set::change(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard guard;
    if (const int error = why_not_in_a_set(descriptor); error != 0) return error;
    const std::lock_guard lock(mutex_);
    member* const found = members_.find(descriptor);
    if (found == nullptr) return ENOENT;
    *found = {descriptor, to_poll_events(asked), tag, changes_};
    changed();
    return 0;
}

int posix_poll_set::remove(int descriptor) noexcept {
    const errno_guard guard;
    const std::lock_guard lock(mutex_);
    const member* const found = members_.find(descriptor);
    if (found == nullptr) return why_no_member(descriptor);
    members_.erase(*found);
    changed();
    return 0;
}

void posix_poll_set::copy_members() {
    if (copy_.is_current(changes_)) return;
    copy_.take(members_, changes_,
               [](const member& each) { return pollfd{each.descriptor, each.events, 0}; });
    copy_.polled().push_back({own_bell().wait_end(), POLLIN, 0});
    copy_.polled().push_back({});
}

poll_result posix_poll_set::wait(std::span<item> out, const deadline& until) noexcept {
    const errno_guard guard;
    own_bell().check();
    std::unique_lock lock(mutex_);
    for (;;) {
        TOCSIN_TRY { copy_members(); }
        TOCSIN_CATCH(const std::bad_alloc&) {
            copy_.forget();
            return {.error = ENOMEM};
        }
        waiting_ = true;
        lock.unlock();
        auto& polled = copy_.polled();
        const std::size_t size = copy_.size();
        const int found = sleep_until(polled.data(), static_cast<nfds_t>(size + 1), until);
        lock.lock();
        waiting_ = false;
        if (found < 0) return {.error = -found};
        if (found == 0) return {.timed_out = true};
        poll_result result;
        result.ready = copy_.report(
            members_, out, [](const pollfd& each) noexcept { return from_poll_events(each.revents); });
        result.rung = pipes::was_rung(own_bell(), polled[size].revents);
        if (result.ready != 0 || result.rung) return result;
    }
}

}  // namespace

struct posix_polling : pipe_doorbells {
    using set = posix_poll_set;

    static poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept {
        const auto sleep = [](poll_list& list, const deadline& end) {
            return sleep_until(list.data(), list.size(), end);
        };
        return poll_once<pipe_doorbells>(what, doorbells().find(bell), until, sleep);
    }
};
template struct poller_backend<posix_polling>;

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// Any POSIX system: poll(2) and pipes (pipe_doorbells.hpp).
// The poll set, and why it loses no change: copied_poll_set.hpp.
//
// No lost wake-up: to strike a doorbell is to write a byte into its pipe, and to answer it is to mark it as not rung
// (doorbells.cpp). The byte stays in the pipe until the sleeper reads it, and the sleeper answers only after it has
// read the byte.
//
// Timeouts are in milliseconds, rounded up. If the process is stopped in poll(2), the systems either continue the call
// until the time at which it was to end, or fail it with EINTR. An exception is Linux on processors without the system
// call poll (64-bit ARM and RISC-V). There the C library makes poll(2) from ppoll, and the time for which the process
// is stopped would be added (linux.cpp).
//
// No timeout of poll(2) follows the system clock, and in this exception none follows the steady clock. So a wait that
// must sleep until a deadline on such a clock starts a second thread. The second thread sleeps on a condition variable
// until the deadline (condition_wait.hpp), and then rings a doorbell that the waiting thread polls, too. Such a wait
// costs a thread, and fails with EAGAIN if the system can't make one.
//
// The cost of a wait grows with the number of members.
//
// Checked by: tests/internal/doorbell_test.cpp, poll_test.cpp, poll_set_test.cpp; in the portable build also by the
// suites of the features above.
#include "platform/futex/condition_wait.hpp"
#include "platform/poller/backend.hpp"
#include "platform/poller/copied_poll_set.hpp"
#include "platform/poller/pipe_doorbells.hpp"
#include "platform/poller/poll_list.hpp"
#include "platform/poller/poll_set_members.hpp"
#include "platform/system/cancellation_disabled.hpp"
#include "platform/system/signals_blocked.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include <pthread.h>
#include <signal.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace tocsin::platform {
namespace {

using pipes = pipe_doorbells;

#if defined(__EMSCRIPTEN__)
// Emscripten's poll(2) looks and never sleeps (3.1.6). So this function naps between looks. It naps once at most, after
// which the caller asks the deadline: the naps may last longer than they should.
int sleep(pollfd* what, nfds_t size, std::int64_t nanoseconds) noexcept {
    constexpr std::int64_t nap = 1'000'000;
    const int found = ::poll(what, size, 0);
    if (found != 0 || nanoseconds == 0) return found;
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(nanoseconds == no_timeout ? nap : std::min(nanoseconds, nap)));
    return ::poll(what, size, 0);
}
#else
int sleep(pollfd* what, nfds_t size, std::int64_t nanoseconds) noexcept {
    const cancellation_disabled here;
    constexpr std::int64_t longest = 1 << 30;
    const std::int64_t milliseconds =
        nanoseconds == no_timeout ? -1 : (nanoseconds - 1 + 1'000'000) / 1'000'000;
    return ::poll(what, size, static_cast<int>(std::min(milliseconds, longest)));
}
#endif

#if defined(__linux__) && !defined(SYS_poll)
constexpr bool adds_time_stopped = true;
#else
constexpr bool adds_time_stopped = false;
#endif

// Whether a timeout of poll(2) can end too late, because it doesn't follow the deadline's clock.
bool needs_follower(const deadline& until) noexcept {
    if (until.which() == deadline::clock::system) return true;
    return adds_time_stopped && !until.is_never() && until.remaining() >= 1'000'000;
}

// Has a doorbell, and a thread that rings it when a deadline has passed, even if somebody sets its clock. (If the
// deadline is on another clock than the system clock and the steady clock, rings in time for the next look.)
class clock_follower {
public:
    explicit clock_follower(const deadline& until) noexcept
        : on_system_clock_(until.which() == deadline::clock::system), until_(time_on_its_clock(until)) {
        const auto taken = pipes::doorbells().acquire(pipes::make_doorbell);
        bell_ = taken.id;
        error_ = taken.error;
        if (error_ != 0) return;
        const signals_blocked blocked;  // signal handlers run only in the program's threads
        // Not a std::thread, which allocates and throws.
        error_ = ::pthread_create(&thread_, nullptr, follow, this);
    }
    ~clock_follower() {
        if (error_ == 0) {
            {
                const std::lock_guard guard(mutex_);
                done_ = true;
            }
            changed_.notify_one();
            const cancellation_disabled here;
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
        const bool was_done =
            self.on_system_clock_
                ? wait_until<std::chrono::system_clock>(self.changed_, lock, self.until_, done)
                : wait_until<std::chrono::steady_clock>(self.changed_, lock, self.until_, done);
        if (!was_done) pipes::doorbells().ring(self.bell_, pipes::strike);
        return nullptr;
    }
    static std::int64_t time_on_its_clock(const deadline& until) noexcept {
        if (until.which() != deadline::clock::other) return until.nanoseconds();
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::nanoseconds(now).count() + until.longest_sleep();
    }

    const bool on_system_clock_;
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
    if (!needs_follower(until)) {
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

class posix_poll_set final : public copied_poll_set<posix_poll_set, pipes, std::mutex, short> {
public:
    static int why_not_member(int descriptor, readiness) noexcept { return why_not_in_a_set(descriptor); }
    static int why_no_member(int descriptor) noexcept { return platform::why_no_member(descriptor); }
    static short to_asked(readiness asked) noexcept { return to_poll_events(asked); }

    poll_result wait(std::span<item> out, const deadline& until) noexcept override;

private:
    void copy_members();  // under the mutex

    // Used only by the waiting thread. After the members' entries come the bell's entry and room for one more.
    member_copy<pollfd> copy_;
};

void posix_poll_set::copy_members() {
    if (copy_.is_current(changes_)) return;
    copy_.take(members_, changes_, [](const member& each) { return pollfd{each.descriptor, each.asked, 0}; });
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

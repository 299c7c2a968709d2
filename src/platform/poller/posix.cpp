// Any POSIX system: poll(2) and pipes.
//
// State
//   A doorbell is a pipe with one byte in it from its ring until its sleeper has seen it. A standing poll is
//   a list, under a mutex, and the waiting thread's own copy of it, which it polls without the mutex.
//
// Invariants
//   posix-1  Every entry has a serial number of its own, new with each change. What a poll of the copy found
//       counts only if the list still holds the entry that was copied: so nothing is reported that was
//       removed before that look.
//   posix-2  A copy older than the list is not slept on: whoever changes the list while somebody waits rings.
//
// No lost wake-up: a byte stays in the pipe until the sleeper reads it, and it answers after that
// (doorbells.cpp). For posix-2: the change and the look whether somebody waits are under the mutex, as are the
// copy and the note that somebody waits.
//
// Timeouts are in milliseconds, rounded up. Nothing in POSIX follows the system clock while poll(2) sleeps; a
// thread does, for as long as such a wait lasts, on a condition variable (condition_wait.hpp), and rings. It costs
// a thread, and fails with EAGAIN where none can be had.
//
// The cost of a wait grows with the number of members. Not promised: that calls are no points of pthread
// cancellation.
//
// Checked by: tests/internal/poller_test.cpp and the suites above it in the portable build.
#include "platform/futex/condition_wait.hpp"
#include "platform/poller/doorbells.hpp"
#include "platform/poller/poll_list.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/refuse.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace tocsin::platform {
namespace posix_poller {
namespace {

// Never destroyed: rings are allowed after main.
constinit doorbell_pool own_doorbells;
constinit void* in_use = &own_doorbells;  // of the process, also if it holds several copies of the library

doorbell_pool& doorbells() noexcept { return *static_cast<doorbell_pool*>(in_use); }

int make_doorbell(int (&ends)[2]) noexcept {
    int made[2];
#if defined(__APPLE__)  // has no pipe2: a fork and exec in between inherits them
    if (::pipe(made) != 0) return errno;
    for (const int each : made) {
        ::fcntl(each, F_SETFD, FD_CLOEXEC);
        ::fcntl(each, F_SETFL, O_NONBLOCK);
    }
#else
    if (::pipe2(made, O_NONBLOCK | O_CLOEXEC) != 0) return errno;
#endif
    ends[0] = made[1];
    ends[1] = made[0];
    return 0;
}

void strike(int descriptor, bool) noexcept {
    const char byte = 0;
    while (::write(descriptor, &byte, 1) < 0 && errno == EINTR) {
    }
}

// What a sleeper polls its doorbell for.
short struck(const doorbell&) noexcept { return POLLIN; }

// Answers the bell if the poll found it struck.
bool was_rung(doorbell& bell, int found) noexcept {
    if ((found & POLLNVAL) != 0) die_of_closed_doorbell();
    if ((found & struck(bell)) == 0) return false;
    char byte;
    while (::read(bell.wait_end(), &byte, 1) < 0 && errno == EINTR) {
    }
    bell.answer();
    return true;
}

#if defined(__EMSCRIPTEN__)
// poll(2) of Emscripten looks and never sleeps (3.1.6): naps in between.
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

// Rings a bell of its own when a deadline on the system clock has passed, as that clock then is.
class clock_follower {
public:
    explicit clock_follower(const deadline& until) noexcept : until_(until.nanoseconds()) {
        const auto taken = doorbells().acquire(make_doorbell);
        bell_ = taken.id;
        error_ = taken.error;
        if (error_ != 0) return;
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);  // handlers run in the program's own threads
        // Not a std::thread, which allocates and throws.
        error_ = ::pthread_create(&thread_, nullptr, follow, this);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    ~clock_follower() {
        if (error_ == 0) {
            {
                const std::lock_guard lock(mutex_);
                done_ = true;
            }
            changed_.notify_one();
            ::pthread_join(thread_, nullptr);
        }
        if (bell_ != no_doorbell) doorbells().release(bell_);
    }
    clock_follower(const clock_follower&) = delete;
    clock_follower& operator=(const clock_follower&) = delete;

    int error() const noexcept { return error_; }
    doorbell& bell() const noexcept { return doorbells()[bell_]; }

private:
    static void* follow(void* what) noexcept {
        auto& self = *static_cast<clock_follower*>(what);
        std::unique_lock lock(self.mutex_);
        const auto done = [&self] { return self.done_; };
        if (!wait_until<std::chrono::system_clock>(self.changed_, lock, self.until_, done))
            doorbells().ring(self.bell_, strike);
        return nullptr;
    }

    const std::int64_t until_;
    doorbell_id bell_ = no_doorbell;
    int error_ = 0;
    bool done_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    pthread_t thread_{};  // if there is no error
};

// poll(2) until some are found or the deadline has passed, as poll_until. With room for one more behind
// `size`.
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
        const bool followed = was_rung(follower.bell(), found > 0 ? what[size].revents : 0);
        if (found < 0 || found > (followed ? 1 : 0)) return found - (followed ? 1 : 0);
    }
}

class posix_poll_set final : public poll_set {
public:
    ~posix_poll_set() override {
        if (bell_ != no_doorbell) doorbells().release(bell_);
    }

    int open() noexcept {
        const auto [bell, error] = doorbells().acquire(make_doorbell);
        bell_ = bell;
        return error;
    }

    int add(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int change(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int remove(int descriptor) noexcept override;
    poll_result wait(std::span<item> out, const deadline& until) noexcept override;

    doorbell_id bell() const noexcept override { return bell_; }
    int descriptor() const noexcept override { return -1; }

private:
    struct entry {
        int descriptor;
        short events;
        std::uint64_t tag;
        std::uint64_t serial;
    };

    // All under the mutex:
    std::vector<entry>::iterator place_of(int descriptor) noexcept {
        return std::lower_bound(entries_.begin(), entries_.end(), descriptor,
                                [](const entry& each, int wanted) { return each.descriptor < wanted; });
    }
    bool is_at(std::vector<entry>::iterator place, int descriptor) const noexcept {
        return place != entries_.end() && place->descriptor == descriptor;
    }
    void changed() noexcept {
        ++changes_;
        if (waiting_) ring();
    }
    void copy_list();
    std::size_t report(std::span<item> out) noexcept;

    void ring() const noexcept { doorbells().ring(bell_, strike); }

    doorbell_id bell_ = no_doorbell;
    std::mutex mutex_;
    std::vector<entry> entries_;  // by descriptor
    std::uint64_t changes_ = 0;
    bool waiting_ = false;

    // The waiting thread's:
    std::vector<pollfd> polled_;                // the entries, then the bell, then room for one more
    std::vector<std::uint64_t> serials_;        // of the entries
    std::uint64_t copied_ = ~std::uint64_t{0};  // at which number of changes
    std::size_t next_ = 0;                      // whose turn it is to be reported first
};

int posix_poll_set::add(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard kept;
    if (const int error = why_not_in_a_set(descriptor); error != 0) return error;
    const std::lock_guard lock(mutex_);
    const auto place = place_of(descriptor);
    if (is_at(place, descriptor)) return EEXIST;
    TOCSIN_TRY { entries_.insert(place, entry{descriptor, to_poll_events(asked), tag, changes_}); }
    TOCSIN_CATCH(const std::bad_alloc&) { return ENOMEM; }
    changed();
    return 0;
}

int posix_poll_set::change(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard kept;
    if (const int error = why_not_in_a_set(descriptor); error != 0) return error;
    const std::lock_guard lock(mutex_);
    const auto place = place_of(descriptor);
    if (!is_at(place, descriptor)) return ENOENT;
    *place = entry{descriptor, to_poll_events(asked), tag, changes_};
    changed();
    return 0;
}

int posix_poll_set::remove(int descriptor) noexcept {
    const errno_guard kept;
    const std::lock_guard lock(mutex_);
    const auto place = place_of(descriptor);
    if (!is_at(place, descriptor)) return ::fcntl(descriptor, F_GETFD) < 0 ? EBADF : ENOENT;
    entries_.erase(place);
    changed();
    return 0;
}

void posix_poll_set::copy_list() {
    if (copied_ == changes_) return;
    polled_.clear();
    serials_.clear();
    for (const entry& each : entries_) {
        polled_.push_back({each.descriptor, each.events, 0});
        serials_.push_back(each.serial);
    }
    polled_.push_back({doorbells()[bell_].wait_end(), POLLIN, 0});
    polled_.push_back({});
    copied_ = changes_;
}

std::size_t posix_poll_set::report(std::span<item> out) noexcept {
    std::size_t ready = 0;
    const std::size_t size = serials_.size();
    for (std::size_t seen = 0; seen != size && ready != out.size(); ++seen) {
        const std::size_t i = next_ = next_ + 1 < size ? next_ + 1 : 0;
        if (polled_[i].revents == 0) continue;
        const auto place = place_of(polled_[i].fd);
        if (!is_at(place, polled_[i].fd) || place->serial != serials_[i]) continue;
        out[ready++] = {place->tag, from_poll_events(polled_[i].revents)};
    }
    return ready;
}

poll_result posix_poll_set::wait(std::span<item> out, const deadline& until) noexcept {
    const errno_guard kept;
    std::unique_lock lock(mutex_);
    for (;;) {
        TOCSIN_TRY { copy_list(); }
        TOCSIN_CATCH(const std::bad_alloc&) {
            copied_ = ~std::uint64_t{0};
            return {.error = ENOMEM};
        }
        waiting_ = true;
        lock.unlock();
        const auto size = serials_.size() + 1;
        const int found = sleep_until(polled_.data(), static_cast<nfds_t>(size), until);
        lock.lock();
        waiting_ = false;
        if (found < 0) return {.error = -found};
        if (found == 0) return {.timed_out = true};
        poll_result result{.ready = report(out)};
        result.rung = was_rung(doorbells()[bell_], polled_[size - 1].revents);
        if (result.ready != 0 || result.rung) return result;
    }
}

}  // namespace

taken_doorbell take_doorbell() noexcept {
    const errno_guard kept;
    return doorbells().take(make_doorbell);
}

void give_doorbell_back(doorbell_id bell) noexcept { doorbells().give_back(bell); }

void ring_doorbell(doorbell_id bell) noexcept {
    const errno_guard kept;
    doorbells().ring(bell, strike);
}

poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept {
    const auto sleep_over = [](poll_list& list, const deadline& end) {
        return sleep_until(list.data(), list.size(), end);
    };
    return poll_once(what, doorbells().find(bell), until, struck, sleep_over, was_rung);
}

std::unique_ptr<poll_set> open_poll_set(int& error) noexcept {
    const errno_guard kept;
    std::unique_ptr<posix_poll_set> made(new (std::nothrow) posix_poll_set);
    error = made != nullptr ? made->open() : ENOMEM;
    if (error != 0) made = nullptr;
    return made;
}

int open_flag(int (&ends)[2]) noexcept {
    const errno_guard kept;
    return make_doorbell(ends);
}

void poller_after_fork() noexcept { doorbells().forget(); }

void*& poller_doorbells() noexcept { return in_use; }

}  // namespace posix_poller

}  // namespace tocsin::platform

// macOS, FreeBSD, OpenBSD: kqueue(2) for what is waited on often; one poll and the doorbells are poller_posix.cpp's.
//
// State
//   A standing poll is a kqueue, and a list of its members under a mutex. The kqueue says who may be ready, poll(2)
//   of those, without sleeping, what is so: thus a member's bits are the same everywhere, hang-ups included.
//
// Invariants
//   kqueue-1  A member is loud (its filters report as long as they hold) or quiet (once for each change, EV_CLEAR). Whom
//       poll(2) finds ready is loud, so the next wait reports him again; who was reported for something that he was
//       not asked for is quiet, so that he does not keep the wait awake.
//   kqueue-2  What poll(2) says counts only for who is a member then, under the mutex. So nothing is reported that was
//       removed before.
//
// No lost wake-up: filters are made quiet or loud by making them anew, and a filter that holds when it is made
// reports that once at least. A byte stays in the bell's pipe until the sleeper reads it; its filter is always loud.
//
// Promised by the systems (kqueue(2) of macOS 10.5, FreeBSD 8, OpenBSD 5.1 and later): the above; that calls of several
// threads on one kqueue are safe; that a kqueue can be polled as a descriptor; that closing a descriptor takes it out;
// that a child process does not get its parent's. Not promised: that urgent data is reported at all where there is no
// EVFILT_EXCEPT (FreeBSD).
//
// Timeouts are in nanoseconds. A deadline on the system clock is followed by poller_posix.cpp's thread.
//
// Checked by: tests/internal/poller_test.cpp.
#include "platform/poller/doorbells.hpp"
#include "platform/poller/poll_list.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/refuse.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/event.h>
#include <sys/types.h>
#include <unistd.h>

namespace tocsin::platform {
namespace kqueue_poller {
namespace {

using event = struct kevent;

doorbell_pool& doorbells() noexcept { return *static_cast<doorbell_pool*>(posix_poller::poller_doorbells()); }

bool was_rung(doorbell& bell, int found) noexcept {
    if ((found & POLLNVAL) != 0) die_of_closed_doorbell();
    if ((found & POLLIN) == 0) return false;
    char byte;
    while (::read(bell.wait_end(), &byte, 1) < 0 && errno == EINTR) {
    }
    bell.answer();
    return true;
}

class kqueue_set final : public poll_set {
public:
    ~kqueue_set() override {
        if (kqueue_ >= 0 && ::getpid() == owner_)
            ::close(kqueue_);  // in a child the number is nobody's or a stranger's
        if (bell_ != no_doorbell) doorbells().release(bell_);
    }

    int open() noexcept {
        const auto [bell, error] = doorbells().acquire(posix_poller::open_flag);
        if (error != 0) return error;
        bell_ = bell;
        kqueue_ = ::kqueue();
        if (kqueue_ < 0) return errno;
        ::fcntl(kqueue_, F_SETFD, FD_CLOEXEC);
        return control(bell_descriptor(), EVFILT_READ, EV_ADD);
    }

    int add(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int change(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int remove(int descriptor) noexcept override;
    poll_result wait(std::span<item> out, const deadline& until) noexcept override;

    doorbell_id bell() const noexcept override { return bell_; }
    int descriptor() const noexcept override { return kqueue_; }

private:
    struct member {
        int descriptor;
        short asked;
        bool loud;
        std::uint64_t tag;
    };
    static constexpr std::size_t most_events = 128;

    int bell_descriptor() const noexcept { return doorbells()[bell_].wait_end(); }

    // All under the mutex:
    std::vector<member>::iterator place_of(int descriptor) noexcept {
        return std::lower_bound(members_.begin(), members_.end(), descriptor,
                                [](const member& each, int wanted) { return each.descriptor < wanted; });
    }
    bool is_at(std::vector<member>::iterator place, int descriptor) const noexcept {
        return place != members_.end() && place->descriptor == descriptor;
    }
    int control(int descriptor, int filter, int flags) const noexcept;
    int arm(const member& made) const noexcept;
    void disarm(int descriptor) const noexcept;
    poll_result report(std::span<const event> events, std::span<item> out) noexcept;

    int sleep(std::span<event> events, std::int64_t nanoseconds) const noexcept;
    int sleep_until(std::span<event> events, const deadline& until) const noexcept;

    const pid_t owner_ = ::getpid();
    int kqueue_ = -1;
    doorbell_id bell_ = no_doorbell;
    std::mutex mutex_;
    std::vector<member> members_;  // by descriptor
};

int kqueue_set::control(int descriptor, int filter, int flags) const noexcept {
    event change{};
    change.ident = static_cast<decltype(change.ident)>(descriptor);
    change.filter = static_cast<decltype(change.filter)>(filter);
    change.flags = static_cast<decltype(change.flags)>(flags);
#if defined(EVFILT_EXCEPT)
    if (filter == EVFILT_EXCEPT) change.fflags = NOTE_OOB;
#endif
    return ::kevent(kqueue_, &change, 1, nullptr, 0, nullptr) == 0 ? 0 : errno;
}

// Filters for what the member asks for and, because hang-ups and errors are never asked for, always one at least.
// Not every descriptor has every filter; it needs one.
int kqueue_set::arm(const member& made) const noexcept {
    disarm(made.descriptor);
    const int flags = made.loud ? EV_ADD : EV_ADD | EV_CLEAR;
    const int reads = control(made.descriptor, EVFILT_READ, flags);
    int error = reads;
    if ((made.asked & POLLOUT) != 0 || (made.asked & POLLIN) == 0) {
        const int writes = control(made.descriptor, EVFILT_WRITE, flags);
        if (writes == 0 || reads == 0) error = 0;
    }
#if defined(EVFILT_EXCEPT)
    if ((made.asked & POLLPRI) != 0 && control(made.descriptor, EVFILT_EXCEPT, flags) == 0) error = 0;
#endif
    return error == EINVAL ? EPERM : error;
}

void kqueue_set::disarm(int descriptor) const noexcept {
    control(descriptor, EVFILT_READ, EV_DELETE);
    control(descriptor, EVFILT_WRITE, EV_DELETE);
#if defined(EVFILT_EXCEPT)
    control(descriptor, EVFILT_EXCEPT, EV_DELETE);
#endif
}

int kqueue_set::add(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard kept;
    if (const int error = why_not_in_a_set(descriptor); error != 0) return error;
    const std::lock_guard lock(mutex_);
    const auto place = place_of(descriptor);
    if (is_at(place, descriptor)) return EEXIST;
    const member made{descriptor, to_poll_events(asked), true, tag};
    TOCSIN_TRY { members_.insert(place, made); }
    TOCSIN_CATCH(const std::bad_alloc&) { return ENOMEM; }
    const int error = arm(made);
    if (error != 0) {
        disarm(descriptor);
        members_.erase(place_of(descriptor));
    }
    return error;
}

int kqueue_set::change(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard kept;
    if (const int error = why_not_in_a_set(descriptor); error != 0) return error;
    const std::lock_guard lock(mutex_);
    const auto place = place_of(descriptor);
    if (!is_at(place, descriptor)) return ENOENT;
    *place = member{descriptor, to_poll_events(asked), true, tag};
    return arm(*place);
}

int kqueue_set::remove(int descriptor) noexcept {
    const errno_guard kept;
    const std::lock_guard lock(mutex_);
    const auto place = place_of(descriptor);
    if (!is_at(place, descriptor)) return ::fcntl(descriptor, F_GETFD) < 0 ? EBADF : ENOENT;
    members_.erase(place);
    disarm(descriptor);
    return 0;
}

int kqueue_set::sleep(std::span<event> events, std::int64_t nanoseconds) const noexcept {
    constexpr std::int64_t nanoseconds_a_second = 1'000'000'000;
    constexpr std::int64_t longest = 1'000'000;  // seconds; some systems refuse much longer timeouts
    timespec time{};
    time.tv_sec = static_cast<decltype(time.tv_sec)>(std::min(nanoseconds / nanoseconds_a_second, longest));
    time.tv_nsec = static_cast<decltype(time.tv_nsec)>(nanoseconds % nanoseconds_a_second);
    return ::kevent(kqueue_, nullptr, 0, events.data(), static_cast<int>(events.size()),
                    nanoseconds == no_timeout ? nullptr : &time);
}

int kqueue_set::sleep_until(std::span<event> events, const deadline& until) const noexcept {
    if (until.which() == deadline::clock::system) {
        poll_entry set{kqueue_, readiness::readable};
        const auto found = posix_poller::poll({&set, 1}, no_doorbell, until);
        if (found.error != 0) return -found.error;
        if (found.timed_out) return 0;
        return std::max(sleep(events, 0), 0);
    }
    return poll_until(until, [&](std::int64_t left) { return sleep(events, left); });
}

poll_result kqueue_set::wait(std::span<item> out, const deadline& until) noexcept {
    const errno_guard kept;
    std::array<event, most_events> events;
    const auto room = std::span(events).first(std::min(out.size(), most_events));
    for (;;) {
        const int found = sleep_until(room, until);
        if (found < 0) return {.error = -found};
        const auto result = report(room.first(static_cast<std::size_t>(found)), out);
        if (result.ready != 0 || result.rung) return result;
        if (found == 0 && until.has_passed()) return {.timed_out = true};
    }
}

poll_result kqueue_set::report(std::span<const event> events, std::span<item> out) noexcept {
    std::array<pollfd, most_events> polled;
    std::size_t size = 0;
    const int bell = bell_descriptor();
    const std::lock_guard lock(mutex_);
    for (const event& each : events) {
        const int descriptor = static_cast<int>(each.ident);
        const auto same = [=](const pollfd& other) { return other.fd == descriptor; };
        if (std::any_of(polled.begin(), polled.begin() + static_cast<std::ptrdiff_t>(size), same)) continue;
        if (descriptor == bell) {
            polled[size++] = {bell, POLLIN, 0};
        } else if (const auto place = place_of(descriptor); is_at(place, descriptor)) {
            polled[size++] = {descriptor, place->asked, 0};
        }
    }
    while (::poll(polled.data(), static_cast<nfds_t>(size), 0) < 0 && errno == EINTR) {
    }
    poll_result result;
    for (const pollfd& each : std::span(polled).first(size)) {
        if (each.fd == bell) {
            result.rung = was_rung(doorbells()[bell_], each.revents);
            continue;
        }
        member& found = *place_of(each.fd);
        if (each.revents != 0) out[result.ready++] = {found.tag, from_poll_events(each.revents)};
        // kqueue-1. What is closed has no filters to be made anew.
        if (const bool loud = each.revents != 0; found.loud != loud && (each.revents & POLLNVAL) == 0) {
            found.loud = loud;
            arm(found);
        }
    }
    return result;
}

}  // namespace

taken_doorbell take_doorbell() noexcept { return posix_poller::take_doorbell(); }

void give_doorbell_back(doorbell_id bell) noexcept { posix_poller::give_doorbell_back(bell); }

void ring_doorbell(doorbell_id bell) noexcept { posix_poller::ring_doorbell(bell); }

poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept {
    return posix_poller::poll(what, bell, until);
}

std::unique_ptr<poll_set> open_poll_set(int& error) noexcept {
    const errno_guard kept;
    std::unique_ptr<kqueue_set> made(new (std::nothrow) kqueue_set);
    error = made != nullptr ? made->open() : ENOMEM;
    if (error != 0) made = nullptr;
    return made;
}

int open_flag(int (&ends)[2]) noexcept { return posix_poller::open_flag(ends); }

void poller_after_fork() noexcept { posix_poller::poller_after_fork(); }

void*& poller_doorbells() noexcept { return posix_poller::poller_doorbells(); }

}  // namespace kqueue_poller

}  // namespace tocsin::platform

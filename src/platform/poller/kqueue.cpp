// SPDX-License-Identifier: Apache-2.0
// macOS, FreeBSD, OpenBSD: kqueue(2) for poll sets. All other polls are in posix.cpp. The doorbells are pipes, in the
// pool that posix.cpp also uses (pipe_doorbells.hpp).
//
// State
//   A poll set is a kqueue, and a list of its members under a mutex. The kqueue says which members may be ready. The
//   waiting thread then calls poll(2) for these members, without sleeping, to learn what they are ready for. So a
//   member's readiness has the same bits on every system, hang-ups included.
//
// Invariants
//   kqueue-1  A member is loud or quiet. Its filters (its entries in the kqueue) each have a condition. The filters of
//       a loud member report for as long as their conditions hold. The filters of a quiet member report once for each
//       change (EV_CLEAR). When poll(2) finds a member ready, the member is made loud, so the next wait reports it
//       again. The kqueue may report a member for something that was not asked for, and then poll(2) does not find the
//       member ready. Such a member is made quiet. Otherwise it would end the sleep again and again.
//   kqueue-2  The waiting thread holds the mutex while it calls poll(2) for the members and reports the result. So it
//       reports only descriptors that are members at that moment, and nothing that was removed before.
//
// No lost wake-up: a member becomes quiet or loud by getting new filters. If the condition of a filter holds already
// when the filter is made, the filter reports it at least once. So nothing that happens while the filters are replaced
// is missed. No ring is missed, either: its byte stays in the bell's pipe until the sleeper reads it, and the bell's
// filter is always loud.
//
// The systems promise (kqueue(2) of macOS 10.5, FreeBSD 8, OpenBSD 5.1 and later):
//   - filters work as described above;
//   - several threads may use one kqueue at once;
//   - a kqueue can itself be polled as a descriptor;
//   - closing a descriptor takes it out of its kqueues;
//   - a child process does not inherit its parent's kqueues.
// Where there is no EVFILT_EXCEPT (FreeBSD), urgent data may go unreported.
//
// Timeouts are in nanoseconds. For a deadline on the system clock, posix.cpp starts a thread that follows that clock.
//
// Checked by: tests/internal/poll_set_test.cpp.
#include "platform/poller/backend.hpp"
#include "platform/poller/pipe_doorbells.hpp"
#include "platform/poller/poll_list.hpp"
#include "platform/poller/poll_set_members.hpp"
#include "platform/system/cancellation_disabled.hpp"
#include "platform/system/system.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <mutex>

#include <fcntl.h>
#include <sys/event.h>
#include <sys/types.h>
#include <unistd.h>

namespace tocsin::platform {

extern template struct poller_backend<posix_polling>;

namespace {

using event = struct kevent;

using bells = pipe_doorbells;

class kqueue_set final : public poll_set_with_bell<bells> {
public:
    ~kqueue_set() override {
        // Not in a child, where the number is free or that of another descriptor.
        if (kqueue_ >= 0 && ::getpid() == owner_) close_descriptor(kqueue_);
    }

    int open() noexcept {
        if (const int error = take_bell(); error != 0) return error;
        kqueue_ = ::kqueue();
        if (kqueue_ < 0) return errno;
        ::fcntl(kqueue_, F_SETFD, FD_CLOEXEC);
        return control(own_bell().wait_end(), EVFILT_READ, EV_ADD);
    }

    int add(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int change(int descriptor, readiness asked, std::uint64_t tag) noexcept override;
    int remove(int descriptor) noexcept override;
    poll_result wait(std::span<item> out, const deadline& until) noexcept override;

private:
    struct member {
        int descriptor;
        short asked;
        bool loud;
        std::uint64_t tag;
    };

    // These four functions work under the mutex, except when open() calls them. report() locks the mutex itself; the
    // callers of the other three hold it.
    int control(int descriptor, int filter, int flags) const noexcept;
    int arm(const member& made) const noexcept;
    void disarm(int descriptor) const noexcept;
    poll_result report(std::span<const event> events, std::span<item> out) noexcept;

    int sleep(std::span<event> events, std::int64_t nanoseconds) const noexcept;

    const pid_t owner_ = ::getpid();
    int kqueue_ = -1;
    std::mutex mutex_;
    member_table<member> members_;
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

// Makes filters for what the member asks for. Makes at least one filter, even if the member asks for nothing, because a
// wait always reports hang-ups and errors. Not every descriptor can have every filter, but one filter is enough.
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
    const errno_guard guard;
    if (const int error = why_not_in_a_set(descriptor); error != 0) return error;
    const std::lock_guard lock(mutex_);
    const member made{descriptor, to_poll_events(asked), true, tag};
    if (const int error = members_.insert(made); error != 0) return error;
    const int error = arm(made);
    if (error != 0) {
        disarm(descriptor);
        members_.erase(*members_.find(descriptor));
    }
    return error;
}

int kqueue_set::change(int descriptor, readiness asked, std::uint64_t tag) noexcept {
    const errno_guard guard;
    if (const int error = why_not_in_a_set(descriptor); error != 0) return error;
    const std::lock_guard lock(mutex_);
    member* const found = members_.find(descriptor);
    if (found == nullptr) return ENOENT;
    *found = {descriptor, to_poll_events(asked), true, tag};
    return arm(*found);
}

int kqueue_set::remove(int descriptor) noexcept {
    const errno_guard guard;
    const std::lock_guard lock(mutex_);
    const member* const found = members_.find(descriptor);
    if (found == nullptr) return why_no_member(descriptor);
    members_.erase(*found);
    disarm(descriptor);
    return 0;
}

int kqueue_set::sleep(std::span<event> events, std::int64_t nanoseconds) const noexcept {
    const cancellation_disabled here;
    constexpr std::int64_t nanoseconds_a_second = 1'000'000'000;
    constexpr std::int64_t longest = 1'000'000;  // seconds; some systems refuse much longer timeouts
    timespec time{};
    time.tv_sec = static_cast<decltype(time.tv_sec)>(std::min(nanoseconds / nanoseconds_a_second, longest));
    time.tv_nsec = static_cast<decltype(time.tv_nsec)>(nanoseconds % nanoseconds_a_second);
    return ::kevent(kqueue_, nullptr, 0, events.data(), static_cast<int>(events.size()),
                    nanoseconds == no_timeout ? nullptr : &time);
}

poll_result kqueue_set::wait(std::span<item> out, const deadline& until) noexcept {
    own_bell().check();
    return wait_in_kernel_set<event>(
        kqueue_, out, until,
        [this](std::span<event> events, std::int64_t left) { return sleep(events, left); },
        [](std::span<poll_entry> what, const deadline& end) {
            return posix_poller::poll(what, no_doorbell, end);
        },
        [this](std::span<const event> events, std::span<item> into) { return report(events, into); });
}

poll_result kqueue_set::report(std::span<const event> events, std::span<item> out) noexcept {
    const cancellation_disabled here;
    std::array<pollfd, max_events> polled;
    std::size_t size = 0;
    const int bell = own_bell().wait_end();
    const std::lock_guard lock(mutex_);
    for (const event& each : events) {
        const int descriptor = static_cast<int>(each.ident);
        const auto same = [=](const pollfd& other) { return other.fd == descriptor; };
        if (std::any_of(polled.begin(), polled.begin() + static_cast<std::ptrdiff_t>(size), same)) continue;
        if (descriptor == bell) {
            polled[size++] = {bell, POLLIN, 0};
        } else if (const member* const found = members_.find(descriptor)) {
            polled[size++] = {descriptor, found->asked, 0};
        }
    }
    while (::poll(polled.data(), static_cast<nfds_t>(size), 0) < 0 && errno == EINTR) {
    }
    poll_result result;
    for (const pollfd& each : std::span(polled).first(size)) {
        if (each.fd == bell) {
            result.rung = bells::was_rung(own_bell(), each.revents);
            continue;
        }
        member& found = *members_.find(each.fd);
        if (each.revents != 0) out[result.ready++] = {found.tag, from_poll_events(each.revents)};
        // Makes the member loud or quiet (kqueue-1). A closed descriptor can't get new filters.
        if (const bool loud = each.revents != 0; found.loud != loud && (each.revents & POLLNVAL) == 0) {
            found.loud = loud;
            arm(found);
        }
    }
    return result;
}

}  // namespace

struct kqueue_polling : pipe_doorbells {
    using set = kqueue_set;

    static poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept {
        return posix_poller::poll(what, bell, until);
    }
};
template struct poller_backend<kqueue_polling>;

}  // namespace tocsin::platform

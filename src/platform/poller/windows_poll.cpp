// SPDX-License-Identifier: Apache-2.0
// One poll on Windows. The thread sleeps in WaitForMultipleObjects over the kernel handles. If it needs one, it makes
// an event, the poll's event, and sleeps on that event as well. If the poll has sockets, WSAEventSelect ties all of
// them to that event while the thread sleeps.
//
// State: the poll's event and the poll's surplus handles. WaitForMultipleObjects takes 64 handles. Handles for which it
// has no room are surplus: the system waits for them on the poll's behalf. Three things set the poll's event: Winsock
// (the system's sockets); a surplus handle that is signaled; the system clock, when the deadline has passed.
//
// Invariants
//   windows_poll-1  To learn whether a descriptor is ready, a poll asks the descriptor itself (by WSAPoll, or by a wait
//       of zero length). The one exception is a failed connection, as explained below. The poll's event only says that
//       it is time to ask. So readiness is level-triggered, although Winsock reports edges.
//   windows_poll-2  The system ties a socket to one event at a time: a second WSAEventSelect would silently replace the
//       first sleeper's event. So the polls that sleep on sockets are in a list, one list for all copies of the library
//       in the process. If a poll that is about to sleep has a socket on which another poll sleeps, the poll fails with
//       EBUSY and says which socket it is.
//   windows_poll-3  If the preparation for a sleep or the sleep itself fails, the poll looks once more before it
//       returns the error. If that look finds something, the poll reports the finding instead. For example, the look
//       finds that a handle is `invalid` if it was closed before the sleep.
//
// No lost wake-up of a doorbell: its event stays set until the thread that waits for it has seen it set. Only after
// that does this thread answer the doorbell, that is, mark it as not rung (doorbells.cpp).
//
// No readiness is missed: a poll first ties its sockets and hands its surplus handles over to the system. Then it looks
// at all its descriptors, and sleeps only if none is ready. That look sees what happened before it. What happens after
// the look sets the poll's event or signals a handle on which the thread sleeps.
//
// The system waits only once for a surplus handle that is handed over to it. When such a wait has ended and the poll
// continues, the poll takes three steps, in this order: it resets its event, hands over again the handles whose waits
// have ended, and looks at the descriptors. If another of the system's waits ends after the reset, it sets the event
// again, so the next sleep ends at once.
//
// The system promises (Microsoft's references):
//   - WaitForMultipleObjects takes 64 handles.
//   - WSAEventSelect makes a socket non-blocking, for good. From then on, Winsock records what happens to the socket;
//     WSAEnumNetworkEvents reads these records. When WSAEventSelect is called, Winsock also records the conditions that
//     hold already, but not that a connection failed earlier (see below).
//   - Winsock records the same thing again only after a call that reads, a call that accepts, or a call that fails for
//     lack of room to write. After a send that succeeds and fills the buffer, Winsock does not record that there is
//     room again. So a poll that waits for `writable` wakes every 20 ms to look.
//   - WSAPoll (Windows Vista) reports a failed connection only since version 2004 of Windows 10. For older systems the
//     poll also asks for Winsock's record of the failure, which is the exception to windows_poll-1. Winsock records a
//     failure once. So, on older systems, a wait does not find two kinds of failed connections: one that failed before
//     the wait, and one whose failure Winsock has already reported to another wait.
// The system promises no exact timeout (futex/windows_waitonaddress.cpp).
//
// A wait for an auto-reset event, a semaphore or a mutex takes something from that object. A poll that waits for such
// an object may take from it and yet end for another reason, as fd.hpp says.
//
// Cost: a look makes one system call for all sockets, one for each handle, and one for the doorbell. A poll that sleeps
// makes three more for each socket: one ties it, one asks for Winsock's records after the sleep, and one unties it. If
// the poll sleeps again, it asks for the records again. So the cost grows with the number of descriptors. A poll also
// compares its sockets one by one with each other and with those of other sleepers. A thread that waits for room on a
// socket wakes 50 times a second.
//
// Checked by: tests/unit/windows_fd_test.cpp, tests/internal/windows_poller_test.cpp, tests/copies.
#include "platform/poller/windows_poll.hpp"

#include "platform/poller/windows_event_doorbells.hpp"
#include "platform/poller/windows_look.hpp"
#include "platform/system/alarm_windows.hpp"
#include "platform/system/object_watch_windows.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/intrusive_list.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <new>
#include <optional>

namespace tocsin::platform {
namespace {

long to_network_events(readiness asked) noexcept {
    long events = FD_CLOSE;
    if (has(asked, readiness::readable)) events |= FD_READ | FD_ACCEPT;
    if (has(asked, readiness::writable)) events |= FD_WRITE | FD_CONNECT;
    if (has(asked, readiness::urgent)) events |= FD_OOB;
    return events;
}

// A handle for which WaitForMultipleObjects has no room. The system waits for it, and then sets the poll's event.
struct surplus_handle {
    HANDLE handle = nullptr;
    HANDLE event = nullptr;
    detail::atomic<bool> is_waited_for{false};
    std::optional<object_watch> watch;

    bool hand_over() noexcept {
        const auto signaled = [](void* it) noexcept {
            auto& self = *static_cast<surplus_handle*>(it);
            // no order: the event, which is set here and reset by the poll, gives it
            self.is_waited_for.store(false, std::memory_order_relaxed);
            ::SetEvent(self.event);
        };
        watch.emplace();  // destroys the last watch, whose wait has ended
        is_waited_for.store(true, std::memory_order_relaxed);  // no order: the new watch has not started yet
        return watch->start(handle, WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD, signaled, this);
    }
};

// A range of the sockets among some descriptors.
struct sockets_among {
    struct iterator {
        poll_entry* at;
        poll_entry* end;
        poll_entry& operator*() const noexcept { return *at; }
        bool operator!=(const iterator& other) const noexcept { return at != other.at; }
        iterator& operator++() noexcept {
            ++at;
            skip();
            return *this;
        }
        void skip() noexcept {
            while (at != end && (is_handle(*at) || at->descriptor < 0)) ++at;
        }
    };
    std::span<poll_entry> all;
    iterator begin() const noexcept {
        iterator first{all.data(), all.data() + all.size()};
        first.skip();
        return first;
    }
    iterator end() const noexcept { return {all.data() + all.size(), all.data() + all.size()}; }
};

}  // namespace

// What a poll needs in order to sleep: its event, the sockets that are tied to it, and the handles that the poll waits
// for. The destructor unties the sockets.
class socket_sleeper : public detail::list_links<socket_sleeper> {
public:
    socket_sleeper(std::span<poll_entry> what, const doorbell* bell) noexcept : what_(what), bell_(bell) {}
    ~socket_sleeper() {
        delete[] surplus_;
        for (const poll_entry& each : tied()) sockets().select(socket_of(each.descriptor), nullptr, 0);
        leave_list();
        if (event_ != nullptr) ::CloseHandle(event_);
    }
    socket_sleeper(const socket_sleeper&) = delete;
    socket_sleeper& operator=(const socket_sleeper&) = delete;

    // Makes the poll's event, ties the sockets and hands over the surplus handles. Returns an error, if there is one,
    // and the descriptor that caused it.
    poll_result prepare(const deadline& until) noexcept {
        if (bell_ != nullptr) handles_[size_++] = handle_of(bell_->wait_end());
        const auto handles = static_cast<std::size_t>(std::count_if(what_.begin(), what_.end(), is_handle));
        const bool all_fit = handles <= max_handles - 2;  // two places are for the bell and the poll's event
        if (handles != what_.size() || !all_fit || until.which() == deadline::clock::system) {
            event_ = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
            if (event_ == nullptr) return {.error = ENOMEM};
            handles_[size_++] = event_;
        }
        if (!all_fit) {
            surplus_ = new (std::nothrow) surplus_handle[handles];
            if (surplus_ == nullptr) return {.error = ENOMEM};
        }
        for (const poll_entry& each : what_) {
            if (is_handle(each)) add(handle_of(each.descriptor));
        }
        if (const poll_result failed = hand_over_surplus(); failed.error != 0) return failed;
        return handles != what_.size() ? tie_sockets() : poll_result{};
    }

    HANDLE event() const noexcept { return event_; }

    // Sleeps until it is time to look again or the deadline has passed. Returns an error, if there is one. Whatever
    // happens after this sleep ends the next one.
    poll_result sleep(const deadline& until) noexcept {
        const DWORD longest =
            std::min(milliseconds_left(until), waits_for_room_ ? room_again_after : INFINITE);
        const DWORD woken = size_ == 0 ? (::Sleep(longest), DWORD{WAIT_TIMEOUT})
                                       : ::WaitForMultipleObjects(size_, handles_, FALSE, longest);
        if (woken == WAIT_FAILED) return {.error = EINVAL};
        // If the bell ended the sleep, WaitForMultipleObjects has reset the bell's event: no later look finds it set.
        rung_ = bell_ != nullptr && woken == WAIT_OBJECT_0;
        if (rung_ || event_ == nullptr) return {};
        ::ResetEvent(event_);
        return hand_over_surplus();
    }
    bool rung() const noexcept { return rung_; }

    // Adds failed connections to what was found. On older systems only Winsock's records tell of them.
    void add_notes() noexcept {
        for (poll_entry& each : tied()) {
            WSANETWORKEVENTS noted{};
            if (sockets().events(socket_of(each.descriptor), nullptr, &noted) != 0) continue;
            if ((noted.lNetworkEvents & FD_CONNECT) != 0 && noted.iErrorCode[FD_CONNECT_BIT] != 0) {
                each.found = each.found | readiness::writable | readiness::error;
            }
        }
    }

private:
    static constexpr DWORD max_handles = MAXIMUM_WAIT_OBJECTS;
    static constexpr DWORD room_again_after = 20;  // milliseconds

    // The sockets that this poll has tied so far.
    sockets_among tied() const noexcept { return {what_.first(tied_)}; }

    void add(HANDLE handle) noexcept {
        // WaitForMultipleObjects refuses to take a handle twice.
        if (std::find(handles_, handles_ + size_, handle) != handles_ + size_) return;
        if (surplus_ == nullptr || size_ != max_handles) {
            handles_[size_++] = handle;
            return;
        }
        surplus_handle& next = surplus_[surplus_size_++];
        next.handle = handle;
        next.event = event_;
    }

    // Hands over those surplus handles for which the system does not wait now. At first these are all; later they are
    // the handles that have been signaled since.
    poll_result hand_over_surplus() noexcept {
        for (surplus_handle& each : std::span(surplus_, surplus_size_)) {
            // no order: see surplus_handle
            if (each.is_waited_for.load(std::memory_order_relaxed)) continue;
            if (!each.hand_over()) return {.error = ENOMEM};
        }
        return {};
    }

    poll_result tie_sockets() noexcept;
    std::size_t index_of(const poll_entry& one) const noexcept {
        return static_cast<std::size_t>(&one - what_.data());
    }
    bool is_tied_by_another(int descriptor) const noexcept {
        const auto& all = socket_sleepers();
        for (const socket_sleeper* other = all.first(); other != nullptr; other = all.next(*other)) {
            if (other == this) continue;
            for (const poll_entry& each : sockets_among{other->what_}) {
                if (each.descriptor == descriptor) return true;
            }
        }
        return false;
    }
    void leave_list() noexcept;

    const std::span<poll_entry> what_;
    const doorbell* const bell_;
    bool listed_ = false;
    bool rung_ = false;
    bool waits_for_room_ = false;
    std::size_t tied_ = 0;
    HANDLE event_ = nullptr;
    surplus_handle* surplus_ = nullptr;
    std::size_t surplus_size_ = 0;
    DWORD size_ = 0;
    HANDLE handles_[max_handles];
};

poll_result socket_sleeper::tie_sockets() noexcept {
    {
        const lock_guard lock(socket_sleepers_lock());
        for (const poll_entry& each : sockets_among{what_}) {
            if (is_tied_by_another(each.descriptor)) return {.error = EBUSY, .culprit = index_of(each)};
        }
        socket_sleepers().append(*this);
        listed_ = true;
    }
    for (; tied_ != what_.size(); ++tied_) {
        const poll_entry& next = what_[tied_];
        if (is_handle(next) || next.descriptor < 0) continue;
        if (has(next.asked, readiness::writable)) waits_for_room_ = true;
        long events = to_network_events(next.asked);
        for (const poll_entry& each : tied()) {
            if (each.descriptor == next.descriptor) events |= to_network_events(each.asked);
        }
        // A poll must not sleep if it could not tie a socket. If the socket is closed, the next look finds it
        // `invalid`. Otherwise the poll returns this error.
        if (sockets().select(socket_of(next.descriptor), event_, events) != 0) {
            return {.error = ENOMEM, .culprit = tied_};
        }
    }
    return {};
}

void socket_sleeper::leave_list() noexcept {
    if (!listed_) return;
    const lock_guard lock(socket_sleepers_lock());
    socket_sleepers().remove(*this);
}

poll_result poll_with(std::span<poll_entry> what, doorbell* bell, const deadline& until,
                      WSAPOLLFD* storage) noexcept {
    poll_result result;
    const auto look_once = [&] {
        result.error = look(what, storage);
        if (result.error != 0) return true;
        result.ready = count_ready(what);
        if (bell != nullptr && windows_event_doorbells::was_rung(*bell)) result.rung = true;
        return result.ready != 0 || result.rung;
    };
    if (look_once()) return result;
    if (until.has_passed()) return {.timed_out = true};
    socket_sleeper self(what, bell);
    poll_result failed = self.prepare(until);
    const system_alarm alarm(until, [](void* event) noexcept { ::SetEvent(event); }, self.event());
    for (;;) {
        if (look_once()) return result;
        if (failed.error != 0) return failed;  // windows_poll-3
        if (until.has_passed()) return {.timed_out = true};
        failed = self.sleep(until);
        if (self.rung()) {
            bell->answer();
            result.rung = true;
        }
        (void)look_once();
        self.add_notes();
        result.ready = count_ready(what);
        if (result.error != 0 || result.ready != 0 || result.rung) return result;
    }
}

}  // namespace tocsin::platform

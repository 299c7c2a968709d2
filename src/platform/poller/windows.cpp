// Windows: WaitForMultipleObjects over kernel handles; sockets through one kernel event for all of a poll, to which
// WSAEventSelect ties them while it sleeps.
//
// State
//   A doorbell is a kernel event that resets itself when its sleeper has seen it. One more kernel event, of the poll, is
//   set by the network, by handles that find no room in the call's 64, and by the system clock. A standing poll is a
//   list, under a lock, and the waiting thread's own copy of it, which it polls without the lock.
//
// Invariants
//   windows-1  Whether something is ready is always asked of itself (WSAPoll, a wait of no length): the poll's event
//       only says that it is time to ask. So readiness is level-triggered, whatever the network has noted of edges.
//   windows-2  A socket has one event at a time, the system says: a second WSAEventSelect would silently take the
//       first sleeper's. So those asleep are in a list, one for all copies of the library in the process, and
//       who comes for a socket that another sleeps on gets EBUSY, with the socket that it is about.
//   windows-3  Every entry of a standing poll has a serial number of its own, new with each change. What a poll of the copy
//       found counts only if the list still holds the entry that was copied.
//   windows-4  A copy older than the list is not slept on: whoever changes the list while somebody waits rings. Who
//       takes something off it stays until that poll has ended, and has untied it: then another may wait for
//       it, or get its number.
//   windows-5  An error is said only of a poll that has looked since and found nothing, and whose list is not old: a
//       handle that was closed before the sleep is found invalid (and then windows-3 decides).
//
// No lost wake-up: a doorbell's event stays set until its sleeper has seen it, who answers after that (doorbells.cpp).
// A poll ties its sockets and hands over its surplus handles before the look that decides whether it sleeps:
// what comes before is seen by the look, what comes after sets the event. The system waits for a surplus handle
// once; if that was for nothing, it is handed over again. So before the next look the event is reset, and only
// then looked whose wait has ended: one that ends later sets the event again. For windows-4: the change and the look
// whether somebody waits are under the lock, as are the copy and the note that somebody waits. Under it, too, the
// end of a poll is counted, and all are woken who await it, before others can come who await the next.
//
// What the system promises (Microsoft's references): 64 handles a call; WSAEventSelect makes a socket non-blocking,
// for good, and notes what is the case already; network notes are made again only after a call that reads, accepts
// or found no room to write. A send that was accepted whole may leave no room, too, and nothing is noted when there
// is some again: so a sleep that waits for room looks every 20 ms. WSAPoll (Windows Vista) tells of a failed
// connection only since Windows 10 2004. Before it the network's note is asked, too, against windows-1: it is made once, so a
// connection that failed before the wait, or that another wait has been told of, is not found. What it doesn't promise:
// how exactly a timeout is kept (futex_waitonaddress.cpp).
// A handle whose wait takes something (an event that resets itself, a semaphore, a mutex) may be taken from by a wait
// that ends for another reason: fd.hpp says so.
//
// The socket functions are looked up at run time: a program that uses no sockets doesn't load them.
//
// Cost: a look is one system call for all sockets and one for each handle; a sleep with sockets two more for each of
// them. It grows with the number of members, also of a standing poll. Sockets are compared with each other and with
// those of other sleepers, one by one. Who waits for room on a socket wakes 50 times a second.
//
// Checked by: tests/unit/windows_fd_test.cpp, tests/internal/windows_poller_test.cpp, tests/copies.
#include "platform/system/windows.hpp"

#include "platform/futex/futex.hpp"
#include "platform/poller/doorbells.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/alarm_windows.hpp"
#include "platform/system/object_watch_windows.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/atomic.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include <winsock2.h>

namespace tocsin::platform {
namespace windows_poller {
namespace {

class sleeper;

// None of this is ever destroyed: rings are allowed after main.
mutex& own_list_lock() noexcept {
    alignas(mutex) static unsigned char place[sizeof(mutex)];
    static mutex* const made = new (place) mutex;
    return *made;
}
constinit doorbell_pool own_doorbells;

// What the process has once, also if it holds several copies of the library.
struct common_state {
    doorbell_pool* doorbells;
    mutex& (*list_lock)() noexcept;
    sleeper* first;  // who sleeps on sockets, under that lock
};
constinit common_state own_state{&own_doorbells, own_list_lock, nullptr};
constinit void* in_use = &own_state;

common_state& common() noexcept { return *static_cast<common_state*>(in_use); }
doorbell_pool& doorbells() noexcept { return *common().doorbells; }

// Handles and sockets have 32 significant bits, the system says, so that programs of both sizes can share them.
HANDLE handle_of(int descriptor) noexcept {
    return reinterpret_cast<HANDLE>(static_cast<std::intptr_t>(descriptor));
}
SOCKET socket_of(int descriptor) noexcept {
    return static_cast<SOCKET>(static_cast<std::uint32_t>(descriptor));
}

int make_doorbell(int (&ends)[2]) noexcept {
    const HANDLE made = ::CreateEventW(nullptr, FALSE, FALSE, nullptr);
    if (made == nullptr) return ENOMEM;
    ends[0] = ends[1] = static_cast<int>(reinterpret_cast<std::intptr_t>(made));
    return 0;
}

void strike(int descriptor, bool) noexcept { ::SetEvent(handle_of(descriptor)); }

// Answers the bell if it is struck.
bool was_rung(doorbell& bell) noexcept {
    const DWORD seen = ::WaitForSingleObject(handle_of(bell.wait_end()), 0);
    if (seen == WAIT_FAILED) die_of_closed_doorbell();
    if (seen != WAIT_OBJECT_0) return false;
    bell.answer();
    return true;
}

struct socket_functions {
    using poll_function = int WSAAPI(WSAPOLLFD*, ULONG, INT);
    using select_function = int WSAAPI(SOCKET, WSAEVENT, long);
    using events_function = int WSAAPI(SOCKET, WSAEVENT, WSANETWORKEVENTS*);

    poll_function* poll = exported<poll_function>(L"ws2_32.dll", "WSAPoll");
    select_function* select = exported<select_function>(L"ws2_32.dll", "WSAEventSelect");
    events_function* events = exported<events_function>(L"ws2_32.dll", "WSAEnumNetworkEvents");

    bool are_there() const noexcept { return poll != nullptr && select != nullptr && events != nullptr; }
};

// Who has a socket has loaded them before.
const socket_functions& sockets() noexcept {
    static const socket_functions found;
    return found;
}

bool is_handle(const poll_entry& what) noexcept { return has(what.asked, readiness::signaled); }

// Looking

struct asked_and_found {
    short asked;
    readiness ours;
};
constexpr asked_and_found network_words[] = {
    {POLLRDNORM, readiness::readable}, {POLLWRNORM, readiness::writable}, {POLLRDBAND, readiness::urgent}};

short to_network_words(readiness asked) noexcept {
    int words = 0;
    for (const auto& each : network_words) words |= has(asked, each.ours) ? each.asked : 0;
    return static_cast<short>(words);
}

// The network says "hang-up" as soon as the peer has closed its way: then there is the end to be read.
readiness from_network_words(readiness asked, short found) noexcept {
    readiness result = readiness::none;
    for (const auto& each : network_words) {
        if ((found & each.asked) != 0 && has(asked, each.ours)) result = result | each.ours;
    }
    if ((found & POLLERR) != 0) result = result | readiness::error;
    if ((found & POLLNVAL) != 0) result = result | readiness::invalid;
    if ((found & POLLHUP) != 0) {
        if (has(asked, readiness::readable)) result = result | readiness::readable;
        if (has(asked, readiness::hang_up) || (found & POLLERR) != 0) result = result | readiness::hang_up;
    }
    return result;
}

std::size_t count_ready(std::span<const poll_entry> what) noexcept {
    return static_cast<std::size_t>(std::count_if(
        what.begin(), what.end(), [](const poll_entry& each) { return each.found != readiness::none; }));
}

readiness look_at_handle(const poll_entry& what) noexcept {
    switch (::WaitForSingleObject(handle_of(what.descriptor), 0)) {
        case WAIT_OBJECT_0:
        case WAIT_ABANDONED: return readiness::signaled;
        case WAIT_TIMEOUT: return readiness::none;
        default: return readiness::invalid;
    }
}

// Asks everything what it is ready for. `room` is for as many as there are.
int look(std::span<poll_entry> what, WSAPOLLFD* room) noexcept {
    ULONG size = 0;
    for (poll_entry& each : what) {
        each.found = each.descriptor < 0 ? readiness::invalid
                     : is_handle(each)   ? look_at_handle(each)
                                         : readiness::none;
        if (each.descriptor < 0 || is_handle(each)) continue;
        room[size++] = WSAPOLLFD{socket_of(each.descriptor), to_network_words(each.asked), 0};
    }
    if (size == 0) return 0;
    if (!sockets().are_there()) return ENOSYS;
    // It says nothing of those that it could not look at if that is all there is.
    if (sockets().poll(room, size, 0) < 0) {
        for (ULONG i = 0; i != size; ++i) {
            if (sockets().poll(&room[i], 1, 0) < 0) room[i].revents = POLLNVAL;
        }
    }
    ULONG next = 0;
    for (poll_entry& each : what) {
        if (each.descriptor < 0 || is_handle(each)) continue;
        each.found = from_network_words(each.asked, room[next++].revents);
    }
    return 0;
}

// Sleeping

long to_network_events(readiness asked) noexcept {
    long events = FD_CLOSE;
    if (has(asked, readiness::readable)) events |= FD_READ | FD_ACCEPT;
    if (has(asked, readiness::writable)) events |= FD_WRITE | FD_CONNECT;
    if (has(asked, readiness::urgent)) events |= FD_OOB;
    return events;
}

// One poll that is about to sleep: what is tied to its event, and what it waits for. Untied at its end.
class sleeper {
public:
    sleeper(std::span<poll_entry> what, const doorbell* bell) noexcept : what_(what), bell_(bell) {}
    ~sleeper() {
        delete[] surplus_;
        for (const poll_entry& each : tied()) sockets().select(socket_of(each.descriptor), nullptr, 0);
        leave_list();
        if (event_ != nullptr) ::CloseHandle(event_);
    }
    sleeper(const sleeper&) = delete;
    sleeper& operator=(const sleeper&) = delete;

    // 0 or an error, and whose.
    poll_result prepare(const deadline& until) noexcept {
        if (bell_ != nullptr) handles_[size_++] = handle_of(bell_->wait_end());
        const auto handles = static_cast<std::size_t>(std::count_if(what_.begin(), what_.end(), is_handle));
        const bool all_fit = handles <= most_handles - 2;  // bell and event
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
        if (const poll_result met = hand_over_surplus(); met.error != 0) return met;
        return handles != what_.size() ? tie_sockets() : poll_result{};
    }

    HANDLE event() const noexcept { return event_; }

    // Until it is time to look again, or the deadline has passed; or an error. What comes later ends the next.
    poll_result sleep(const deadline& until) noexcept {
        const DWORD longest =
            std::min(milliseconds_left(until), waits_for_room_ ? room_again_after : INFINITE);
        const DWORD woken = size_ == 0 ? (::Sleep(longest), DWORD{WAIT_TIMEOUT})
                                       : ::WaitForMultipleObjects(size_, handles_, FALSE, longest);
        if (woken == WAIT_FAILED) return {.error = EINVAL};
        // Taken by this very call, so it won't be found set again.
        rung_ = bell_ != nullptr && woken == WAIT_OBJECT_0;
        if (rung_ || event_ == nullptr) return {};
        ::ResetEvent(event_);
        return hand_over_surplus();
    }
    bool rung() const noexcept { return rung_; }

    // What only the network's notes tell.
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
    static constexpr DWORD most_handles = MAXIMUM_WAIT_OBJECTS;
    static constexpr DWORD room_again_after = 20;  // milliseconds

    // One for which the call has no room: the system waits for it, and sets the event.
    struct surplus_handle {
        HANDLE handle = nullptr;
        HANDLE event = nullptr;
        detail::atomic<bool> is_waited_for{false};
        std::optional<object_watch> watch;

        bool hand_over() noexcept {
            const auto signaled = [](void* it) noexcept {
                auto& self = *static_cast<surplus_handle*>(it);
                // no order: who sets the event and who resets it meet in the system
                self.is_waited_for.store(false, std::memory_order_relaxed);
                ::SetEvent(self.event);
            };
            watch.emplace();                                       // the last has ended
            is_waited_for.store(true, std::memory_order_relaxed);  // no order: nobody else is there
            return watch->start(handle, WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD, signaled, this);
        }
    };

    // The sockets among them, as far as they have been tied.
    struct tied_sockets {
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
    tied_sockets tied() const noexcept { return {what_.first(tied_)}; }

    void add(HANDLE handle) noexcept {
        // The call refuses a handle that it is given twice.
        if (std::find(handles_, handles_ + size_, handle) != handles_ + size_) return;
        if (surplus_ == nullptr || size_ != most_handles) {
            handles_[size_++] = handle;
            return;
        }
        surplus_handle& next = surplus_[surplus_size_++];
        next.handle = handle;
        next.event = event_;
    }

    // Those that nobody waits for: at first all, then those that have been signaled since.
    poll_result hand_over_surplus() noexcept {
        for (surplus_handle& each : std::span(surplus_, surplus_size_)) {
            // no order: see surplus_handle
            if (each.is_waited_for.load(std::memory_order_relaxed)) continue;
            if (!each.hand_over()) return {.error = ENOMEM};
        }
        return {};
    }

    poll_result tie_sockets() noexcept;
    std::size_t place_of(const poll_entry& one) const noexcept {
        return static_cast<std::size_t>(&one - what_.data());
    }
    bool is_tied_by_another(int descriptor) const noexcept {
        for (const sleeper* other = common().first; other != nullptr; other = other->next_) {
            if (other == this) continue;
            for (const poll_entry& each : tied_sockets{other->what_}) {
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
    sleeper* next_ = nullptr;
    std::size_t tied_ = 0;
    HANDLE event_ = nullptr;
    surplus_handle* surplus_ = nullptr;
    std::size_t surplus_size_ = 0;
    DWORD size_ = 0;
    HANDLE handles_[most_handles];
};

poll_result sleeper::tie_sockets() noexcept {
    {
        const lock_guard lock(common().list_lock());
        for (const poll_entry& each : tied_sockets{what_}) {
            if (is_tied_by_another(each.descriptor)) return {.error = EBUSY, .culprit = place_of(each)};
        }
        next_ = common().first;
        common().first = this;
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
        // One that is closed is found so by the look; another must not sleep untied.
        if (sockets().select(socket_of(next.descriptor), event_, events) != 0) {
            return {.error = ENOMEM, .culprit = tied_};
        }
    }
    return {};
}

void sleeper::leave_list() noexcept {
    if (!listed_) return;
    const lock_guard lock(common().list_lock());
    sleeper** link = &common().first;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
}

// What the poll looks into: no more than few without an allocation.
class look_room {
public:
    explicit look_room(std::size_t size) noexcept {
        if (size > polled_without_allocation) at_ = new (std::nothrow) WSAPOLLFD[size];
    }
    ~look_room() {
        if (at_ != few_) delete[] at_;
    }
    look_room(const look_room&) = delete;
    look_room& operator=(const look_room&) = delete;
    WSAPOLLFD* get() noexcept { return at_; }

private:
    WSAPOLLFD few_[polled_without_allocation];
    WSAPOLLFD* at_ = few_;
};

poll_result poll_with(std::span<poll_entry> what, doorbell* bell, const deadline& until,
                      WSAPOLLFD* room) noexcept {
    poll_result result;
    const auto has_ended = [&] {
        result.error = look(what, room);
        result.ready = count_ready(what);
        if (bell != nullptr && was_rung(*bell)) result.rung = true;
        return result.error != 0 || result.ready != 0 || result.rung;
    };
    if (has_ended()) return result;
    if (until.has_passed()) return {.timed_out = true};
    sleeper self(what, bell);
    poll_result met = self.prepare(until);
    const system_alarm alarm(until, [](void* event) noexcept { ::SetEvent(event); }, self.event());
    for (;;) {
        if (has_ended()) return result;
        if (met.error != 0) return met;
        if (until.has_passed()) return {.timed_out = true};
        met = self.sleep(until);
        if (self.rung()) {
            bell->answer();
            result.rung = true;
        }
        (void)has_ended();
        self.add_notes();
        result.ready = count_ready(what);
        if (result.error != 0 || result.ready != 0 || result.rung) return result;
    }
}

// Standing polls

class windows_poll_set final : public poll_set {
public:
    ~windows_poll_set() override {
        if (bell_ != no_doorbell) doorbells().release(bell_);
    }

    int open() noexcept {
        const auto [bell, error] = doorbells().acquire(make_doorbell);
        bell_ = bell;
        return error;
    }

    int add(int descriptor, readiness asked, std::uint64_t tag) noexcept override {
        const errno_guard kept;
        if (const int error = why_not(descriptor, asked); error != 0) return error;
        const lock_guard lock(mutex_);
        const auto place = place_of(descriptor);
        if (is_at(place, descriptor)) return EEXIST;
        try {
            entries_.insert(place, entry{descriptor, asked, tag, changes_});
        } catch (const std::bad_alloc&) {
            return ENOMEM;
        }
        changed();
        return 0;
    }
    int change(int descriptor, readiness asked, std::uint64_t tag) noexcept override {
        const errno_guard kept;
        if (const int error = why_not(descriptor, asked); error != 0) return error;
        const lock_guard lock(mutex_);
        const auto place = place_of(descriptor);
        if (!is_at(place, descriptor)) return ENOENT;
        *place = entry{descriptor, asked, tag, changes_};
        changed();
        await_poll_under_way();
        return 0;
    }
    int remove(int descriptor) noexcept override {
        const errno_guard kept;
        const lock_guard lock(mutex_);
        const auto place = place_of(descriptor);
        if (!is_at(place, descriptor)) return ENOENT;
        entries_.erase(place);
        changed();
        await_poll_under_way();
        return 0;
    }
    poll_result wait(std::span<item> out, const deadline& until) noexcept override;

    doorbell_id bell() const noexcept override { return bell_; }
    int descriptor() const noexcept override { return -1; }

private:
    struct entry {
        int descriptor;
        readiness asked;
        std::uint64_t tag;
        std::uint64_t serial;
    };

    static int why_not(int descriptor, readiness asked) noexcept {
        poll_entry one{descriptor, asked, readiness::none};
        WSAPOLLFD room[1];
        if (const int error = look({&one, 1}, room); error != 0) return error;
        return has(one.found, readiness::invalid) ? EBADF : 0;
    }

    // All under the lock:
    std::vector<entry>::iterator place_of(int descriptor) noexcept {
        return std::lower_bound(entries_.begin(), entries_.end(), descriptor,
                                [](const entry& each, int wanted) { return each.descriptor < wanted; });
    }
    bool is_at(std::vector<entry>::iterator place, int descriptor) const noexcept {
        return place != entries_.end() && place->descriptor == descriptor;
    }
    void changed() noexcept {
        ++changes_;
        if (waiting_) doorbells().ring(bell_, strike);
    }
    // It has been rung. The lock is let go meanwhile.
    void await_poll_under_way() noexcept {
        if (!waiting_ || other_threads_are_gone()) return;
        ++awaiting_;
        const std::uint32_t seen = ended_.load(std::memory_order_relaxed);  // no order: the lock's
        mutex_.unlock();
        // no order: the lock's
        while (ended_.load(std::memory_order_relaxed) == seen) futex_wait(ended_, seen, deadline::never());
        mutex_.lock();
    }
    void end_poll() noexcept {
        waiting_ = false;
        ended_.fetch_add(1, std::memory_order_relaxed);  // no order: the lock's
        for (; awaiting_ != 0; --awaiting_) futex_wake_one(&ended_);
    }
    void copy_list();
    std::size_t report(std::span<item> out) noexcept;

    doorbell_id bell_ = no_doorbell;
    mutex mutex_;
    std::vector<entry> entries_;  // by descriptor
    std::uint64_t changes_ = 0;
    bool waiting_ = false;
    std::uint32_t awaiting_ = 0;  // threads, until that poll has ended
    futex_word ended_{0};         // polls

    // The waiting thread's:
    std::vector<poll_entry> polled_;  // the entries
    std::vector<std::uint64_t> serials_;
    std::vector<WSAPOLLFD> room_;
    std::uint64_t copied_ = ~std::uint64_t{0};  // at which number of changes
    std::size_t next_ = 0;                      // whose turn it is to be reported first
};

void windows_poll_set::copy_list() {
    if (copied_ == changes_) return;
    polled_.clear();
    serials_.clear();
    for (const entry& each : entries_) {
        polled_.push_back({each.descriptor, each.asked, readiness::none});
        serials_.push_back(each.serial);
    }
    room_.resize(polled_.size());
    copied_ = changes_;
}

std::size_t windows_poll_set::report(std::span<item> out) noexcept {
    std::size_t ready = 0;
    const std::size_t size = serials_.size();
    for (std::size_t seen = 0; seen != size && ready != out.size(); ++seen) {
        const std::size_t i = next_ = next_ + 1 < size ? next_ + 1 : 0;
        if (polled_[i].found == readiness::none) continue;
        const auto place = place_of(polled_[i].descriptor);
        if (!is_at(place, polled_[i].descriptor) || place->serial != serials_[i]) continue;
        out[ready++] = {place->tag, polled_[i].found};
    }
    return ready;
}

poll_result windows_poll_set::wait(std::span<item> out, const deadline& until) noexcept {
    const errno_guard kept;
    for (;;) {
        {
            const lock_guard lock(mutex_);
            try {
                copy_list();
            } catch (const std::bad_alloc&) {
                copied_ = ~std::uint64_t{0};
                return {.error = ENOMEM};
            }
            waiting_ = true;
        }
        poll_result result = poll_with(polled_, &doorbells()[bell_], until, room_.data());
        const lock_guard lock(mutex_);
        end_poll();
        result.culprit = no_culprit;  // nobody else knows the places in the copy
        if (result.error != 0 && copied_ != changes_) continue;
        if (result.error != 0 || result.timed_out) return result;
        result.ready = report(out);
        if (result.ready != 0 || result.rung) return result;
    }
}

}  // namespace

taken_doorbell take_doorbell() noexcept { return doorbells().take(make_doorbell); }

void give_doorbell_back(doorbell_id bell) noexcept { doorbells().give_back(bell); }

void ring_doorbell(doorbell_id bell) noexcept { doorbells().ring(bell, strike); }

poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept {
    const errno_guard kept;
    look_room room(what.size());
    if (room.get() == nullptr) return {.error = ENOMEM};
    return poll_with(what, doorbells().find(bell), until, room.get());
}

std::unique_ptr<poll_set> open_poll_set(int& error) noexcept {
    std::unique_ptr<windows_poll_set> made(new (std::nothrow) windows_poll_set);
    error = made != nullptr ? made->open() : ENOMEM;
    if (error != 0) made = nullptr;
    return made;
}

// Both ends are one event, which is reset by hand.
int open_flag(int (&ends)[2]) noexcept {
    const HANDLE made = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
    if (made == nullptr) return ENOMEM;
    ends[0] = ends[1] = static_cast<int>(reinterpret_cast<std::intptr_t>(made));
    return 0;
}

void poller_after_fork() noexcept {}

void*& poller_doorbells() noexcept { return in_use; }

}  // namespace windows_poller
}  // namespace tocsin::platform

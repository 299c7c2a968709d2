// SPDX-License-Identifier: Apache-2.0
// A set of events, semaphores, latches, wait groups, a barrier's tokens, descriptors and timers. Members are added once
// and waited for often. The cost of a wait depends on how many members are ready, not on how many are idle. (Where the
// system has neither epoll nor kqueue, as on Windows, idle descriptors do cost something.)
//
//     tocsin::wait_set set;
//     set.add(shutdown, 0);
//     set.add(tocsin::readable(listener), 1);
//     for (tocsin::ready_item ready[64];;) {
//         const auto result = set.wait(ready);
//         for (const auto& each : std::span(ready).first(result.count)) serve(each.tag, each.found);
//     }
//
// Timers in a set are of the class wait_timer. Moving a timer to another deadline is cheap. So each connection of a
// server can have a timer of its own, which is reported when the connection has been idle for too long:
//
//     struct connection {
//         tocsin::wait_timer idle;
//         void received() { idle.reset(30s); }
//     };
//     connection one;
//     set.add(one.idle, 2);
//
// For a few sources in one place, wait_any() (wait.hpp) is simpler. A custom source can't be a member: let it
// set an event.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tocsin {
namespace core {
class timer_member;  // src/core/wait/ready_list.hpp
}

namespace detail {
inline constexpr std::size_t wait_timer_size = 160;  // src/wait_set.cpp checks that it is enough
}

// A timer for a wait_set. A deadline arms it. When the deadline has passed, one wait of the set reports the timer,
// which is then no longer armed. Of several on one clock, the earliest deadline comes first, and equal ones come in any
// order. A timer that is armed after a wait has returned, while the program serves another, is reported by the next
// wait if its deadline has passed by then. Owns and allocates nothing.
//
// Any thread may call reset(), cancel() and is_armed(), even while another thread waits in the set. But no thread may
// call them while another adds, removes or destroys the timer, or destroys the set. While the timer is not a member,
// only one thread at a time may use it. In the child of a fork, a timer that was a member may only be destroyed.
class wait_timer {
public:
    TOCSIN_API wait_timer() noexcept;  // not armed
    wait_timer(const wait_timer&) = delete;
    wait_timer& operator=(const wait_timer&) = delete;
    // Removes the timer from its set. A timer may also outlive its set.
    TOCSIN_API ~wait_timer();

    // Arms the timer, or moves it to a new deadline if it is armed. No wait reports the old deadline any more, except
    // one under way that has already taken it. If the timer is not a member yet, reset() takes effect when the timer is
    // added. A deadline of `never` disarms the timer.
    //
    // `when` may be on any clock. If `when` was made from a time point of a clock of your own, the timer refers to that
    // time point: do not destroy the time point while the timer is armed. The library calls that clock's now() under a
    // lock, so now() must not block or call this library.
    //
    // Cost: a short lock. Moving to a later time costs the same however many timers the set has. Moving to an earlier
    // time takes O(log n) steps if the set has n timers. Makes no system call, unless a thread sleeps in the set and
    // may now have to wake earlier.
    TOCSIN_API void reset(const deadline& when) noexcept;
    void cancel() noexcept { reset(deadline::never()); }
    // The same, but each report arms the timer again, for the first point of the grid `first + n * period` that has not
    // passed. A wait that comes after several ticks reports them once. The grid does not drift, and is on the clock of
    // `first`. If `first` has passed already, the next wait reports the timer, with all ticks since. (A `first` of zero
    // or less is on no clock, and means now.) The period is rounded up to whole nanoseconds. Throws
    // std::invalid_argument, and changes nothing, if the period is zero or less. (ticker.hpp: the same for other
    // waits.)
    template <class Rep, class Period>
    void reset_every(const deadline& first, std::chrono::duration<Rep, Period> period) {
        reset_every(first, std::chrono::nanoseconds(detail::nanoseconds_up(period)));
    }
    TOCSIN_API void reset_every(const deadline& first, std::chrono::nanoseconds period);
    // For how many ticks the last report of this timer stands: 1 for a timer that reset() has armed. 0 before the first
    // report. At most 4,294,967,295. Any thread may call it when it may call reset(). Cost: a short lock.
    [[nodiscard]] TOCSIN_API std::uint64_t ticks() const noexcept;
    // Whether the timer has a deadline that no wait has reported yet. (The deadline may have passed.)
    [[nodiscard]] TOCSIN_API bool is_armed() const noexcept;

private:
    friend class wait_set;

    core::timer_member& member() const noexcept;
    void arm(const deadline& when, std::int64_t period) noexcept;

    alignas(8) mutable std::byte memory_[detail::wait_timer_size];
};

// How a wait in a set ended.
struct set_result {
    wait_status status;     // `signaled`: members are ready
    std::size_t count = 0;  // how many items are filled in, if status is `signaled`

    friend bool operator==(const set_result&, const set_result&) noexcept = default;
};

// Any thread may call add, change and remove at any time, even while another thread waits in the set. Only one thread
// at a time may wait. The set owns its records of the members, but not the events and descriptors themselves. A set
// without descriptors opens no descriptor. After a fork the set belongs to the parent: the child may only destroy it.
// If a thread of the parent was in add(), change() or remove() at the fork, the child does not free the set's memory,
// and does not close the set's own descriptors.
class wait_set {
public:
    TOCSIN_API wait_set();
    wait_set(const wait_set&) = delete;
    wait_set& operator=(const wait_set&) = delete;
    // No thread may still wait in the set. Members need not be removed first, but an event or a descriptor that is
    // still a member must exist until the set is destroyed.
    TOCSIN_API ~wait_set();

    // Adds a member: a descriptor, or an event, semaphore, latch, wait group or barrier's token. (Below, "event" means
    // each of these five.) When the member is ready, waits report its tag, which may be any number except the greatest.
    // A wait that is under way reports a member that is ready already. An event must stay where it is until it is
    // removed, and a descriptor must be removed before it is closed ("Many members" in docs/guide.md). Allocates. Cost:
    // a few short locks for an event; a short lock and a system call for a descriptor (a few for the set's first).
    // Throws the following errors, and then the set is as it was before:
    // - std::invalid_argument for after() or at(), for a custom source, and for the greatest number as a tag.
    // - std::system_error with EEXIST if the event or descriptor is a member already. A descriptor may also give EBADF,
    //   EPERM (a regular file), ENOSPC or ENOMEM, and the set's first descriptor EMFILE or ENFILE.
    // - std::bad_alloc.
    TOCSIN_API void add(const source& what, std::uint64_t tag);
    // Changes the tag and, for a descriptor, the readiness that is asked for. Throws std::invalid_argument as add()
    // does, and std::system_error, for example with ENOENT if the event or descriptor is not a member.
    TOCSIN_API void change(const source& what, std::uint64_t tag);
    // Removes an event or descriptor, and returns whether it was a member. Afterwards the event may be destroyed or the
    // descriptor closed, and no wait that begins later reports it. A wait under way in another thread may have found
    // the member before the removal. Such a wait still reports the member, and keeps the signal or the permit that it
    // took.
    TOCSIN_API bool remove(const source& what) noexcept;

    // A tag may be a pointer, to the member's own data for example. ready_item::pointer<T>() gives it back. The set
    // only keeps the pointer. `What` is a source or a wait_timer.
    template <class What, class T>
    void add(What&& what, T* tag) {
        add(what, tag_of(tag));
    }
    template <class What, class T>
    void change(What&& what, T* tag) {
        change(what, tag_of(tag));
    }

    // The same for timers. A timer may be destroyed while it is a member, and may outlive the set. Allocates nothing.
    // add() throws std::system_error with EEXIST if the timer is a member of any set already.
    TOCSIN_API void add(wait_timer& timer, std::uint64_t tag);
    TOCSIN_API void change(wait_timer& timer, std::uint64_t tag);
    TOCSIN_API bool remove(wait_timer& timer) noexcept;

    // Waits until a member is ready, then reports all ready members, as many as fit into `out`. The next waits report
    // those that did not fit. Never returns spuriously. Members that are ready at the start are reported even if the
    // deadline has passed or a stop was requested. A timeout or a stop loses nothing. "Many members" in docs/guide.md
    // says for each kind of member how often it is reported, and which clock the wait follows.
    // Cost: a few short locks for each event found ready, and a look at the clock if the set has timers. If the thread
    // sleeps, one system call to sleep, and one to wake it. With descriptors, one more system call in some of the waits
    // that find an event or a timer ready: at least one in eight, and each wait with a deadline of zero.
    // Throws the following errors, and has then taken nothing:
    // - std::invalid_argument if `out` is empty.
    // - std::logic_error if another thread waits in the set.
    // - std::system_error if the system can't wait for the descriptors, with ENOMEM for example.
    TOCSIN_API set_result wait(std::span<ready_item> out);
    [[nodiscard]] TOCSIN_API set_result wait(const limits& how, std::span<ready_item> out);
    template <class Never = void>
    set_result wait(std::span<ready_item>, const limits&) {
        static_assert(detail::never<Never>, "tocsin: limits come first: wait({.until = 50ms}, items)");
        return {};
    }

    // A descriptor for somebody else's loop, which is to wait in the set when it finds the descriptor readable:
    //     loop.on_readable(set.descriptor(), [&] {
    //         tocsin::ready_item ready[64];
    //         serve(std::span(ready).first(set.wait({.until = 0s}, ready).count));
    //     });
    // The descriptor is readable when a wait would find an event, a descriptor or a timer. It stays readable until a
    // wait leaves nothing behind. So a loop that reports only changes (EPOLLET) has to wait until a wait finds nothing.
    // It may also be readable when nothing is ready: at first, or because another thread has taken the event. Until
    // that wait, tokens and permits stay where they are, and others may take them. Do nothing with the descriptor but
    // poll it: the set alone reads, writes and closes it. Returns the same descriptor until the set is destroyed. Any
    // thread may call descriptor(). The first call opens four descriptors, and two more if the set has had no
    // descriptor as a member. Costs from then on: one or two system calls more for each wait that leaves nothing
    // behind, and another while a timer on the system clock is armed; one for a set() or release() of a member after
    // such a wait; and one if the first timer has changed.
    // Throws std::system_error: EMFILE, ENFILE or ENOMEM, or std::errc::operation_not_supported except on Linux with
    // epoll. There a wait_set and a foreign loop need a thread each. Throws std::bad_alloc.
    [[nodiscard]] TOCSIN_API int descriptor();

private:
    class state;

    template <class T>
    static std::uint64_t tag_of(T* pointer) noexcept {
        return reinterpret_cast<std::uintptr_t>(pointer);
    }

    std::unique_ptr<state> state_;
};

}  // namespace tocsin

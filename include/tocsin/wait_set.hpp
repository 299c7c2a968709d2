// A set of events, descriptors and timers, registered once and waited on often: the cost of a wait depends on what is
// ready, not on how many members are idle. (Idle descriptors do cost something where the system has neither epoll nor
// kqueue, as on Windows.)
//
//     tocsin::wait_set set;
//     set.add(shutdown, 0);
//     set.add(tocsin::readable(listener), 1);
//     for (tocsin::ready_item ready[64];;) {
//         const auto found = set.wait(ready);
//         for (const auto& each : std::span(ready).first(found.count)) serve(each.tag, each.found);
//     }
//
// A timer that is a member is a wait_timer, which is cheap to move: one for each connection, say, that has been idle
// for too long when it comes.
//
//     struct connection {
//         tocsin::wait_timer idle;
//         void received() { idle.reset(30s); }
//     };
//     set.add(one.idle, 2);
//
// For a few sources in one place, wait_any() (wait.hpp) is simpler. A type of your own can't be a member: let it set an
// event.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>

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

// A timer for a wait_set. It is armed by a deadline. When that has passed, one wait of its set reports it, and it is
// armed no more. Owns and allocates nothing.
//
// Any thread may call reset(), cancel() and is_armed() at any time, even while another waits in the set; but not while
// a thread adds, removes or destroys this timer or its set. In the child of a fork, one that was a member may only be
// destroyed.
class wait_timer {
public:
    TOCSIN_API wait_timer() noexcept;  // not armed
    wait_timer(const wait_timer&) = delete;
    wait_timer& operator=(const wait_timer&) = delete;
    // Removes it from its set. It may also outlive the set.
    TOCSIN_API ~wait_timer();

    // Arms it, or moves it if it is armed: whatever no wait has reported yet will not be reported. One that is not a
    // member is armed when it is added. A deadline of `never` disarms it. `when` may be on any clock. A time point of a
    // clock of your own must exist while the timer is armed, and its now() is called under a lock: it must not block
    // or call this library.
    // Cost: a short lock. Moving it to a later time costs the same however many timers the set has; to an earlier one,
    // a number of steps that grows with their logarithm. No system call, unless a thread sleeps in the set and must
    // now wake earlier.
    TOCSIN_API void reset(const deadline& when) noexcept;
    void cancel() noexcept { reset(deadline::never()); }
    // Whether it has a deadline that no wait has reported. (The deadline may have passed.)
    [[nodiscard]] TOCSIN_API bool is_armed() const noexcept;

private:
    friend class wait_set;

    core::timer_member& member() const noexcept;

    alignas(8) mutable std::byte memory_[detail::wait_timer_size];
};

struct set_result {
    wait_status status;
    std::size_t count = 0;  // how many items are filled in, if status is `signaled`

    friend bool operator==(const set_result&, const set_result&) noexcept = default;
};

// Any thread may call add, change and remove at any time, even while another waits. Only one thread at a time may
// wait. Owns its records of the members, not the events and descriptors. A set without descriptors opens none. After
// fork it belongs to the parent: the child may only destroy it.
class wait_set {
public:
    TOCSIN_API wait_set();
    wait_set(const wait_set&) = delete;
    wait_set& operator=(const wait_set&) = delete;
    // No thread may still wait in it. Members need not be removed before, but must still exist.
    TOCSIN_API ~wait_set();

    // Waits report the tag when the member is ready; it may be any number except the greatest. An event must stay
    // where it is until it is removed; a descriptor must be removed before it is closed. If it is ready already, a
    // wait that is under way reports it. Allocates.
    // Cost: a short lock for an event, a system call for a descriptor.
    // Throws std::invalid_argument (after() or at(), a source of your own, that tag), std::system_error with the number
    // of the descriptor (EBADF; EEXIST, also for an event that is a member; EPERM for a regular file; ENOSPC; for the
    // first descriptor EMFILE or ENFILE), std::bad_alloc. The set is then as it was.
    TOCSIN_API void add(const source& what, std::uint64_t tag);
    // Changes the tag and, for a descriptor, the readiness. Throws std::invalid_argument as add() does, and
    // std::system_error (ENOENT if it is not a member).
    TOCSIN_API void change(const source& what, std::uint64_t tag);
    // Returns whether it was a member. Afterwards the event may be destroyed or the descriptor closed, and no wait
    // that begins later reports it. A wait under way in another thread may have found it before, and then still
    // reports it, with the token that it took.
    TOCSIN_API bool remove(const source& what) noexcept;

    // The same for timers. They may be destroyed while they are members, and after the set. Allocates nothing.
    TOCSIN_API void add(wait_timer& timer, std::uint64_t tag);
    TOCSIN_API void change(wait_timer& timer, std::uint64_t tag);
    TOCSIN_API bool remove(wait_timer& timer) noexcept;

    // Waits until a member is ready, then reports all that are, as many as fit into `out`. The next waits report what
    // did not fit: each member gets its turn. An auto-reset event is consumed, as by its own wait(): one report for
    // each token. While a thread waits here, the set and the event's other waiters are served first in, first out. The
    // set's place in that order dates from add() or from its last turn, not from the wait. A manual-reset event is
    // reported by every wait while it is set. It is also reported if it is set and reset while a thread waits here and
    // no other member is ready. A descriptor is reported by every wait while it is ready. A timer is reported once for
    // each reset(), never before its deadline has passed. Timers that are due take their turn behind what was found
    // ready before; of those on one clock, the earliest comes first. A sleep is on one clock: if the system clock is
    // set meanwhile, a timer on the other clock may be seen late. No spurious return. A timeout or a stop loses
    // nothing; what is ready at the start is reported first. Ignores the spin policy.
    // Cost: a few short locks for each event found ready; one system call to sleep, and one to wake it. With
    // descriptors, also one to look at them if an event is ready.
    // With timers, a look at the clock.
    // Throws std::invalid_argument (`out` is empty), std::logic_error (another thread waits in it), std::system_error
    // (ENOMEM). It has then taken nothing.
    TOCSIN_API set_result wait(std::span<ready_item> out);
    [[nodiscard]] TOCSIN_API set_result wait(const limits& how, std::span<ready_item> out);
    template <class Never = void>
    set_result wait(std::span<ready_item>, const limits&) {
        static_assert(detail::never<Never>, "tocsin: limits come first: wait({.until = 50ms}, items)");
        return {};
    }

private:
    class state;

    std::unique_ptr<state> state_;
};

}  // namespace tocsin

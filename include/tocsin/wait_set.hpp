// A set of events and descriptors, registered once and waited on often: the cost of a wait depends on what is ready,
// not on how many members are idle. (Idle descriptors do cost something where the system has neither epoll nor kqueue,
// as on Windows.)
//
//     tocsin::wait_set set;
//     set.add(shutdown, 0);
//     set.add(tocsin::readable(listener), 1);
//     for (tocsin::ready_item ready[64];;) {
//         const auto found = set.wait(ready);
//         for (const auto& each : std::span(ready).first(found.count)) serve(each.tag, each.found);
//     }
//
// For a few sources in one place, wait_any() (wait.hpp) is simpler. A timer can't be a member: give wait() a
// deadline. Nor can a type of your own: let it set an event.
#pragma once

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
    // Throws std::invalid_argument (a timer, a source of your own, that tag), std::system_error with the number of
    // the descriptor (EBADF; EEXIST, also for an event that is a member; EPERM for a regular file; ENOSPC; for the
    // first descriptor EMFILE or ENFILE), std::bad_alloc. The set is then as it was.
    TOCSIN_API void add(const source& what, std::uint64_t tag);
    // Changes the tag and, for a descriptor, the readiness. Throws std::invalid_argument as add() does, and
    // std::system_error (ENOENT if it is not a member).
    TOCSIN_API void change(const source& what, std::uint64_t tag);
    // Returns whether it was a member. Afterwards the event may be destroyed or the descriptor closed, and no wait
    // that begins later reports it. A wait under way in another thread may have found it before, and then still
    // reports it, with the token that it took.
    TOCSIN_API bool remove(const source& what) noexcept;

    // Waits until a member is ready, then reports all that are, as many as fit into `out`. The next waits report what
    // did not fit: each member gets its turn. An auto-reset event is consumed, as by its own wait(): one report for
    // each token. While a thread waits here, the set and the event's other waiters are served first in, first out. The
    // set's place in that order dates from add() or from its last turn, not from the wait. A manual-reset event is
    // reported by every wait while it is set. It is also reported if it is set and reset while a thread waits here and
    // no other member is ready. A descriptor is reported by every wait while it is ready. No spurious return. A
    // timeout or a stop loses nothing; what is ready at the start is reported first. Ignores the spin policy.
    // Cost: a few short locks for each event found ready; one system call to sleep, and one to wake it. With
    // descriptors, also one to look at them if an event is ready.
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

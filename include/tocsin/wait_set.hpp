// A set of events and descriptors, registered once and waited on often: its waits cost what is ready, however many
// members are idle.
//
//     tocsin::wait_set set;
//     set.add(shutdown, 0);
//     set.add(tocsin::readable(listener), 1);
//     for (tocsin::ready_item ready[64];;) {
//         const auto found = set.wait(ready);
//         for (const auto& each : std::span(ready).first(found.count)) serve(each.tag, each.found);
//     }
//
// For a few sources in one place wait_any() (wait.hpp) is simpler. Timers are no members: give wait() a
// deadline. Nor are types of your own: let them set an event.
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

// add, change, remove: any thread, any time, also while another waits. wait: one thread at a time.
// Owns its members; a set without descriptors opens none. After fork it belongs to the parent: the child may only
// destroy it.
class wait_set {
public:
    TOCSIN_API wait_set();
    wait_set(const wait_set&) = delete;
    wait_set& operator=(const wait_set&) = delete;
    // Nobody may wait in it any more. Members need not be removed before, but must still exist.
    TOCSIN_API ~wait_set();

    // The tag is reported when it is ready: any number but the greatest. An event must stay where it is until it is
    // removed; a descriptor must be removed before it is closed. What is ready already is reported by a wait under
    // way, too. Allocates; events cost a short lock, descriptors a system call.
    // Throws std::invalid_argument (a timer, a source of your own, that tag), std::system_error with the number of
    // the descriptor (EBADF; EEXIST, also for an event that is in; EPERM, a regular file; ENOSPC; at the first
    // descriptor EMFILE, ENFILE), std::bad_alloc. The set is then as it was.
    TOCSIN_API void add(const source& what, std::uint64_t tag);
    // Another tag, and for a descriptor another readiness. Throws std::system_error (ENOENT: not in).
    TOCSIN_API void change(const source& what, std::uint64_t tag);
    // Whether it was in. When it returns, the event may be destroyed, the descriptor closed, and no wait that begins
    // later reports it. One under way in another thread may have found it before, and then still does: a token
    // that it took comes out there.
    TOCSIN_API bool remove(const source& what) noexcept;

    // Waits until something is ready and reports all that is, as much as there is room for. What doesn't fit comes
    // with the next waits: each member gets its turn.
    // An auto-reset event is consumed, as by its own wait(): one report for each token, FIFO among the set and
    // the other waiters while a thread waits here. A manual one is reported by every wait as long as it is set; one
    // that is set and reset while a thread waits here, and none of the others is ready, is reported, too. A
    // descriptor is reported by every wait as long as it is ready.
    // No spurious return, and nothing is lost by a timeout or a stop.
    // Cost: a few short locks for each event found ready; one system call to sleep, and one to wake it. With
    // descriptors, also one to look at them if an event is ready.
    // Throws std::invalid_argument (no room in `out`), std::logic_error (another thread waits in it),
    // std::system_error (ENOMEM). Nothing is taken then.
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

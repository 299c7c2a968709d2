// What every system must provide to wait for descriptors: sleep until one of them is ready, somebody rings,
// or a deadline passes. A new system is one file, poller_<mechanism>.cpp. Nothing here throws; all of it
// preserves errno, and goes on after signals. A wait that uses none of it opens no descriptor.
//
// Doorbells
//   A doorbell wakes a thread that sleeps here. It is known by a small number, also to other copies of the
//   library in the process. Its descriptors are never closed while the process lives: it goes to a pool and
//   from there to the next who needs one. So a ring that comes late rings at worst for somebody else, who
//   is woken for no reason and waits again: never a stranger's descriptor.
//
//   take_doorbell       for one wait: the one that the thread kept from its last, else one from the pool,
//                       else a new one; only that may fail, with the system's error (EMFILE, ENFILE, ENOMEM).
//   give_doorbell_back  after it. The thread keeps it for its next wait and, at its end, puts it into the
//                       pool; works in destructors of other thread-locals, too. It may have been rung, or
//                       be rung later.
//   ring_doorbell       any thread, any time, also in a signal handler and for a doorbell given back. Never
//                       blocks. One system call; none if it has been rung and the sleeper has not yet come
//                       back from it. What the caller did before is visible after the sleep that it ends.
//
// One poll
//   poll                looks at all, and sleeps until a descriptor is ready, the bell has been rung since
//                       the last poll that said so (also before this one began), or `until` has passed, which
//                       is never early. A deadline that has passed still gets its look. Sets `found` of every
//                       descriptor. More than `polled_without_allocation` descriptors need an allocation.
//                       `rung` may be said for no reason.
//                       A closed or impossible descriptor is found `invalid`, at once. One that is closed by
//                       another thread during the poll may go unnoticed (Linux keeps what is polled open):
//                       shut a socket down before closing it.
//
// A standing poll
//   What is added once and waited on often; the cost of a wait does not grow with what is idle, where the
//   system can do that. open_poll_set allocates and takes descriptors, and says why it can't.
//   One thread at a time waits in it; add, change, remove and ring from any thread, also meanwhile.
//
// Deadlines of the steady and the system clock are followed on that clock, also while it is set; those of
// other clocks as in futex.hpp.
//
// fork: poller_after_fork, in the child, closes the doorbells (which are the parent's, too) and forgets them.
// A standing poll belongs to the parent: in the child it may only be destroyed.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/readiness.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tocsin::platform {

using tocsin::has;
using tocsin::readiness;

struct poll_entry {
    int descriptor = -1;
    readiness asked = readiness::none;
    readiness found = readiness::none;
};

inline constexpr std::size_t no_culprit = ~std::size_t{0};

// What ended a poll. `timed_out` comes alone; `ready` and `rung` may come together.
struct poll_result {
    std::size_t ready = 0;  // how many descriptors
    bool rung = false;
    bool timed_out = false;
    int error = 0;  // the system could not do it, and nothing else is said: ENOMEM, EINVAL (more
                    // descriptors than the process may have), EMFILE, EBUSY (Windows)
    std::size_t culprit = no_culprit;  // whose error it is, if it is one's: the others could be polled

    // By something else than the bell.
    bool ended() const noexcept { return ready != 0 || timed_out || error != 0; }
};

using doorbell_id = std::uint32_t;
inline constexpr doorbell_id no_doorbell = ~doorbell_id{0};

struct taken_doorbell {
    doorbell_id id = no_doorbell;
    int error = 0;  // why there is none
};

inline constexpr std::size_t polled_without_allocation = 64;

class poll_set {
public:
    using item = ready_item;

    poll_set() noexcept = default;
    poll_set(const poll_set&) = delete;
    poll_set& operator=(const poll_set&) = delete;
    virtual ~poll_set() = default;  // nobody waits in it; late rings of its bell are harmless

    // 0 or an error: EBADF; EEXIST, it is in already; EPERM, it can't be waited for because it is always
    // ready (a regular file, a directory); ENOSPC, ENOMEM; ENOENT, it is not in. The tag is any number but
    // `no_tag`. What is ready when it is added or changed is reported, also by a wait under way.
    virtual int add(int descriptor, readiness asked, std::uint64_t tag) noexcept = 0;
    virtual int change(int descriptor, readiness asked, std::uint64_t tag) noexcept = 0;
    // A wait that begins after remove() has returned does not report the tag. One under way may have found it
    // before, and then still returns it. Remove a descriptor before closing it: one closed while it is in
    // is reported `invalid` or forgotten, as the system does it.
    virtual int remove(int descriptor) noexcept = 0;

    // Reports what is ready now, as many as there is room for, which is some (more come with the next wait,
    // and all get their turn); level-triggered: what stays ready is reported by every wait. Sleeps while
    // nothing is. `rung` may be said for no reason. Does not allocate unless the set has changed.
    virtual poll_result wait(std::span<item> out, const deadline& until) noexcept = 0;

    // The bell that ends a wait, or the next one that begins; ring_doorbell() it.
    virtual doorbell_id bell() const noexcept = 0;
    // A descriptor that is readable when a wait would not sleep, for someone else's loop; -1: there is none.
    virtual int descriptor() const noexcept = 0;

    static constexpr std::uint64_t no_tag = ~std::uint64_t{0};
};

taken_doorbell take_doorbell() noexcept;
void give_doorbell_back(doorbell_id bell) noexcept;
void ring_doorbell(doorbell_id bell) noexcept;
poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept;
std::unique_ptr<poll_set> open_poll_set(int& error) noexcept;
// The ends of a flag (flag.hpp), to write and to read; or the error.
int open_flag(int (&ends)[2]) noexcept;
void poller_after_fork() noexcept;
// The pool of doorbells, which all copies of the library in a process must share (shared_table.hpp).
void*& poller_doorbells() noexcept;

// The backends that may be on one machine, as in futex.hpp.
namespace linux_poller {
taken_doorbell take_doorbell() noexcept;
void give_doorbell_back(doorbell_id bell) noexcept;
void ring_doorbell(doorbell_id bell) noexcept;
poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept;
std::unique_ptr<poll_set> open_poll_set(int& error) noexcept;
int open_flag(int (&ends)[2]) noexcept;
void poller_after_fork() noexcept;
void*& poller_doorbells() noexcept;
}  // namespace linux_poller
namespace posix_poller {
taken_doorbell take_doorbell() noexcept;
void give_doorbell_back(doorbell_id bell) noexcept;
void ring_doorbell(doorbell_id bell) noexcept;
poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept;
std::unique_ptr<poll_set> open_poll_set(int& error) noexcept;
int open_flag(int (&ends)[2]) noexcept;
void poller_after_fork() noexcept;
void*& poller_doorbells() noexcept;
}  // namespace posix_poller
namespace kqueue_poller {
taken_doorbell take_doorbell() noexcept;
void give_doorbell_back(doorbell_id bell) noexcept;
void ring_doorbell(doorbell_id bell) noexcept;
poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept;
std::unique_ptr<poll_set> open_poll_set(int& error) noexcept;
int open_flag(int (&ends)[2]) noexcept;
void poller_after_fork() noexcept;
void*& poller_doorbells() noexcept;
}  // namespace kqueue_poller
namespace windows_poller {
taken_doorbell take_doorbell() noexcept;
void give_doorbell_back(doorbell_id bell) noexcept;
void ring_doorbell(doorbell_id bell) noexcept;
poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept;
std::unique_ptr<poll_set> open_poll_set(int& error) noexcept;
int open_flag(int (&ends)[2]) noexcept;
void poller_after_fork() noexcept;
void*& poller_doorbells() noexcept;
}  // namespace windows_poller

}  // namespace tocsin::platform

// What every system must provide to wait for descriptors: a thread sleeps until one of them is ready, its doorbell is
// rung, or a deadline passes.
//
// A new system is one file, <mechanism>.cpp. The file defines a mechanism; all mechanisms are listed below. backend.hpp
// says what a mechanism has, and makes the functions of poller_backend out of it. The build chooses the backend that
// the library calls. tests/internal/{doorbell,poll,poll_set}_test.cpp run over every backend of the machine.
//
// No function throws. All preserve errno and continue after signals. A wait that uses none of them opens no descriptor.
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
    int error = 0;  // the system could not poll, and nothing else is set: ENOMEM, EINVAL (more descriptors
                    // than the process may have), EMFILE, EBUSY (Windows)
    // Which descriptor caused the error, if one did: the others could be polled.
    std::size_t culprit = no_culprit;

    // Whether anything but the bell ended the poll.
    bool ended() const noexcept { return ready != 0 || timed_out || error != 0; }
};

// A doorbell wakes a thread that sleeps here. It is known by a small number, which other copies of the library in the
// process understand too. When its owner needs it no more, it returns to a pool, and its number goes to the next thread
// that needs one. The pool closes the descriptors of all but a few (doorbell_pool::most_idle), and none of a doorbell
// that is being rung. So a ring that comes late reaches at worst the next owner, which wakes for no reason and waits
// again. It never reaches a stranger's descriptor.
using doorbell_id = std::uint32_t;
inline constexpr doorbell_id no_doorbell = ~doorbell_id{0};

struct taken_doorbell {
    doorbell_id id = no_doorbell;
    int error = 0;  // why there is none
};

inline constexpr std::size_t polled_without_allocation = 64;

// Descriptors that are added once and polled again and again. Where the system can do that, the cost of a wait does not
// grow with the number of idle members.
//
// One thread at a time may wait; any thread may add, change, remove and ring at any time, also during a wait.
class poll_set {
public:
    using item = ready_item;

    poll_set() noexcept = default;
    poll_set(const poll_set&) = delete;
    poll_set& operator=(const poll_set&) = delete;
    virtual ~poll_set() = default;  // no thread waits in it; late rings of its bell are harmless

    // These three functions return 0 or one of these errors: EBADF, ENOSPC, ENOMEM; EEXIST, the descriptor is a member
    // already; ENOENT, it is no member; EPERM, a set refuses it because it is always ready (a regular file, a
    // directory). The tag is any number but `no_tag`. A wait, even one under way, reports a descriptor that is ready
    // when it is added or changed.
    virtual int add(int descriptor, readiness asked, std::uint64_t tag) noexcept = 0;
    virtual int change(int descriptor, readiness asked, std::uint64_t tag) noexcept = 0;
    // A wait that begins after remove() has returned does not report the tag. A wait under way may have found the
    // descriptor before, and then still reports its tag. Remove a descriptor before closing it: depending on the
    // system, the set reports a closed member as `invalid` or forgets it.
    virtual int remove(int descriptor) noexcept = 0;

    // Reports what is ready now, as much as fits into `out`, which is not empty. Later waits report what did not fit,
    // so every member gets its turn. Level-triggered: every wait reports what is still ready. Sleeps while nothing is
    // ready. `rung` may be set for no reason. Allocates only if the set has changed.
    virtual poll_result wait(std::span<item> out, const deadline& until) noexcept = 0;

    // The bell for ring_doorbell(). It ends the wait under way or, if no thread waits, the next wait.
    virtual doorbell_id bell() const noexcept = 0;

    static constexpr std::uint64_t no_tag = ~std::uint64_t{0};
};

// A deadline on the steady or the system clock passes when that clock says so, even while somebody sets it. A deadline
// on another clock works as in futex.hpp.
template <class Mechanism>
struct poller_backend {
    // Gives the doorbell for one wait: the one that the thread kept from its last wait, else one from the pool, else a
    // new one. Only making a new one can fail, with the system's error (EMFILE, ENFILE, ENOMEM).
    static taken_doorbell take_doorbell() noexcept;

    // Called after that wait. The thread keeps the doorbell for its next wait and, when the thread ends, puts it into
    // the pool. Works in destructors of other thread-local objects too. The doorbell may have been rung, or be rung
    // later.
    static void give_doorbell_back(doorbell_id bell) noexcept;

    // Callable by any thread at any time, even in a signal handler or for a doorbell given back. Never blocks. Costs
    // one system call, or none if the doorbell was rung before and the sleeper has not yet returned because of that.
    // What the caller did before is visible after the sleep that the ring ends.
    static void ring_doorbell(doorbell_id bell) noexcept;

    // Looks at all descriptors. Sleeps until one is ready, the bell has been rung or `until` has passed, never earlier.
    // A ring counts even if it came before this poll began, unless an earlier poll has reported it. Looks once even if
    // the deadline has passed already. Sets `found` of every descriptor. Allocates for more than
    // `polled_without_allocation` descriptors. `rung` may be set for no reason.
    //
    // A closed or impossible descriptor is found `invalid` at once. If another thread closes a descriptor during the
    // poll, the poll may not notice (Linux keeps open what is polled). So shut a socket down before closing it.
    static poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept;

    // Allocates, and takes descriptors. If it returns null, `error` says why. The set belongs to the process that
    // opened it: in the child of a fork it may only be destroyed.
    static std::unique_ptr<poll_set> open_poll_set(int& error) noexcept;

    // Opens the ends of a flag (readable_flag.hpp), to write and to read. Returns 0 or the error.
    static int open_flag(int (&ends)[2]) noexcept;

    // Called in the child of a fork: closes the doorbells, which belong to the parent too, and forgets them.
    static void after_fork() noexcept;

    // The pointer to what all copies of the library in a process must share: the pool of doorbells, and on Windows the
    // list of threads that sleep on sockets (shared_table.hpp).
    static void*& shared_state() noexcept;
};

using linux_poller = poller_backend<struct linux_polling>;
using posix_poller = poller_backend<struct posix_polling>;
using kqueue_poller = poller_backend<struct kqueue_polling>;
using windows_poller = poller_backend<struct windows_polling>;
using model_poller = poller_backend<struct model_polling>;  // of tests/model

using poller = TOCSIN_POLLER_CHOSEN;

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// What every system must provide to wait for descriptors: a thread sleeps until a descriptor is ready, until another
// thread rings the sleeper's doorbell, or until a deadline passes.
//
// To support a new system, add one file, <mechanism>.cpp, that defines a mechanism. Add the mechanism to the list below
// and to src/CMakeLists.txt. backend.hpp says what a mechanism has, and defines the functions of poller_backend in
// terms of it. The build chooses the backend that the library calls. tests/internal/{doorbell,poll,poll_set}_test.cpp
// run over every backend that the machine has.
//
// These functions throw nothing, preserve errno, and continue after signals. A wait that uses none of them opens no
// descriptor.
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

// What ended a poll. If `timed_out` is set, nothing else is. `ready` and `rung` may both be set.
struct poll_result {
    std::size_t ready = 0;  // how many descriptors
    bool rung = false;
    bool timed_out = false;
    // Why the system could not poll, for example: ENOMEM, EINVAL (more descriptors than the process may have), EMFILE,
    // ENFILE, EAGAIN (no thread for the system clock: posix.cpp), EBUSY or ENOSYS (Windows). If it is not 0, nothing
    // else is set except `culprit`.
    int error = 0;
    // The index of the descriptor that caused the error, if one descriptor did. The other descriptors could be polled.
    std::size_t culprit = no_culprit;

    // Whether anything but the bell ended the poll.
    bool ended() const noexcept { return ready != 0 || timed_out || error != 0; }
};

// A doorbell wakes a thread that sleeps in a poll. It has a number, which all copies of the library in the process
// understand. An owner that no longer needs its doorbell puts it into a pool, and the next owner gets it with the same
// number. So a ring that comes late, after the owner has put the doorbell back, reaches at worst the next owner. That
// owner wakes for no reason and waits again.
//
// Of the doorbells that nobody owns, the pool keeps only a few open (doorbell_pool::max_idle), and closes the
// descriptors of the others. It never closes the descriptors of a doorbell that is being rung, and a ring of a closed
// doorbell makes no system call. So a late ring never reaches a descriptor whose number the system has given to
// something else.
using doorbell_id = std::uint32_t;
inline constexpr doorbell_id no_doorbell = ~doorbell_id{0};

struct taken_doorbell {
    doorbell_id id = no_doorbell;
    int error = 0;  // why there is no doorbell
};

inline constexpr std::size_t polled_without_allocation = 64;

// A descriptor for somebody else's loop. It is readable while a flag (readable_flag.hpp) is raised, while a member of a
// poll_set is ready or the set's bell has been rung, and after deadlines have passed. Destroy it before the set.
class poll_view {
public:
    poll_view() noexcept = default;
    poll_view(const poll_view&) = delete;
    poll_view& operator=(const poll_view&) = delete;
    virtual ~poll_view() = default;

    virtual int descriptor() const noexcept = 0;
    // Replaces the deadlines, which are on the clocks of their names, or `never`. A passed deadline keeps the
    // descriptor readable until the next call. A deadline on the system clock that was passed before may be set again,
    // because somebody may have set that clock back: the descriptor then becomes readable once more when it passes.
    // Only one thread at a time may call this. Returns 0 or an error.
    virtual int set_deadlines(const deadline& steady, const deadline& system) noexcept = 0;
};

// A set of descriptors that are added once and polled again and again. Where the system keeps such sets, the cost of a
// wait does not grow with the number of idle members.
//
// One thread at a time may wait. Any thread may add, change, remove and ring at any time, even during a wait.
class poll_set {
public:
    using item = ready_item;

    poll_set() noexcept = default;
    poll_set(const poll_set&) = delete;
    poll_set& operator=(const poll_set&) = delete;
    virtual ~poll_set() = default;  // no thread may wait in the set; late rings of its bell are harmless

    // These three functions return 0 or an error, usually one of these:
    //   - EBADF, ENOSPC, ENOMEM;
    //   - EEXIST if the descriptor is already a member;
    //   - ENOENT if the descriptor is no member;
    //   - EPERM if a set refuses the descriptor because it is always ready (a regular file, a directory).
    // The tag is any number but `no_tag`. If a descriptor is ready when it is added or changed, a wait reports it, even
    // a wait that is under way.
    virtual int add(int descriptor, readiness asked, std::uint64_t tag) noexcept = 0;
    virtual int change(int descriptor, readiness asked, std::uint64_t tag) noexcept = 0;
    // A wait that begins after remove() has returned does not report the descriptor's tag. A wait that is under way may
    // have found the descriptor before the removal, and may then still report the tag. Remove a descriptor before you
    // close it: depending on the system, the set reports a closed member as `invalid`, forgets it, or reports what its
    // duplicates are ready for. A remove() after the close ends that.
    virtual int remove(int descriptor) noexcept = 0;

    // Sleeps until a member is ready, the bell has been rung, or the deadline has passed. Writes as many of the ready
    // members to `out` as fit, but at most 128 if the kernel keeps the set. `out` must not be empty. Later waits report
    // those that did not fit, so no member is passed over. The set is level-triggered: every wait reports a member
    // again while it is still ready. `rung` may be set for no reason. Allocates only if the set has changed.
    virtual poll_result wait(std::span<item> out, const deadline& until) noexcept = 0;

    // The set's doorbell, for ring_doorbell(). A ring ends the wait that is under way or, if no thread waits, the next
    // wait.
    virtual doorbell_id bell() const noexcept = 0;

    // A view of this set, of the flag with this descriptor, and of deadlines, or null. Then `error` says why. It is 0
    // where no descriptor can stand for a set, because the kernel keeps no sets. A set has one view at most.
    virtual std::unique_ptr<poll_view> open_view(int /*flag*/, int& error) noexcept {
        error = 0;
        return nullptr;
    }

    static constexpr std::uint64_t no_tag = ~std::uint64_t{0};
};

// For a deadline on the steady or the system clock, these functions follow that clock, even while somebody sets it. For
// a deadline on another clock, the thread asks the deadline how much time is left, and sleeps that long on the steady
// clock. That length is an estimate, so after the sleep the thread asks whether the deadline has passed.
template <class Mechanism>
struct poller_backend {
    // Returns a doorbell for one wait: the one that the thread kept from its last wait, else one from the pool, else a
    // new one. If a new one can't be made, returns the system's error (EMFILE, ENFILE, ENOMEM).
    static taken_doorbell take_doorbell() noexcept;

    // Gives a doorbell back after its wait. The doorbell may have been rung, or be rung later. The thread keeps it for
    // its next wait, and puts it into the pool when the thread ends. If the thread already keeps a doorbell, or can
    // keep none, this function puts the doorbell into the pool at once. The destructors of thread-local objects may
    // also call this function.
    static void give_doorbell_back(doorbell_id bell) noexcept;

    // Any thread may call this at any time, even in a signal handler, and even for a doorbell that was given back.
    // Never blocks. Costs one system call, or none if the doorbell was rung before and the sleeper has not answered
    // yet. What the caller did before the ring is visible to the sleeper after the sleep that the ring ends.
    static void ring_doorbell(doorbell_id bell) noexcept;

    // Looks at all descriptors, even if the deadline has passed already. Sleeps until a descriptor is ready, the bell
    // has been rung, or `until` has passed. A timeout is never early. A ring from before this poll counts, too, unless
    // an earlier poll has reported it. `rung` may also be set for no reason. Unless it returns an error, sets `found`
    // of every descriptor. Allocates only if there are more than `polled_without_allocation` descriptors (on Windows,
    // also for more than 62 handles).
    //
    // The poll finds a closed or negative descriptor `invalid` at once. If another thread closes a descriptor during
    // the poll, the poll may not notice (Linux keeps open what is polled). So shut a socket down before you close it.
    static poll_result poll(std::span<poll_entry> what, doorbell_id bell, const deadline& until) noexcept;

    // Allocates memory and opens descriptors. If this returns null, `error` says why. The set belongs to the process
    // that opened it: in the child of a fork, the set may only be destroyed.
    static std::unique_ptr<poll_set> open_poll_set(int& error) noexcept;

    // Opens the two ends of a flag (readable_flag.hpp): first the one to write, then the one to read. Returns 0 or the
    // error.
    static int open_flag(int (&ends)[2]) noexcept;

    // Called in the child of a fork. Closes the doorbells, whose objects the child shares with its parent, and forgets
    // them.
    static void after_fork() noexcept;

    // The address of the pointer to the state that all copies of the library in a process must share
    // (shared_table.hpp): the pool of doorbells, and on Windows also the list of threads that sleep on sockets.
    static void*& shared_state() noexcept;
};

using linux_poller = poller_backend<struct linux_polling>;
using posix_poller = poller_backend<struct posix_polling>;
using kqueue_poller = poller_backend<struct kqueue_polling>;
using windows_poller = poller_backend<struct windows_polling>;
using model_poller = poller_backend<struct model_polling>;  // of tests/model

using poller = TOCSIN_POLLER_CHOSEN;

}  // namespace tocsin::platform

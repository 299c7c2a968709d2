// SPDX-License-Identifier: Apache-2.0
// A signal as a descriptor: a flag that a signal handler raises.
//
// State
//   slots    64 slots for signal_flags. Each has a word for its handlers (handler_uses.hpp), and says which signal,
//            which process and which flag it is for. Only the owner writes these, while the slot is closed.
//   actions  For each signal: the action that was there before this library's handler; how many flags the signal has;
//            and whether this library installed its handler and has not taken it away since.
//   lock     Guards everything that handlers do not change. Its holder blocks all signals, so no handler runs in its
//            thread. It is held across a fork, and then guards the forking thread's signal mask, too.
//
// Invariants
//   signal_flag-1  A handler touches a slot's contents only between enter() and leave(). The owner changes them only
//       when the slot is closed and unused. So no handler writes to a descriptor that was closed.
//   signal_flag-2  A handler raises only flags of its own process: it compares process numbers. The child of a fork
//       shares its parent's descriptors, and would otherwise wake the parent.
//   signal_flag-3  The record of a former action never changes once handlers can read it, and is never freed. A handler
//       may still read it long after that action was restored. A new record is made only if the former action differs
//       from the last record.
//   signal_flag-4  This library's handler is never installed over a handler that may call it. So the chain of handlers
//       has no cycle. open() installs only in one of two cases: this library's handler was never installed, or was
//       taken away by this library; or the present action is not a handler.
//
// No lost signal: a delivery raises the flag of every open slot of its signal. The flag stays up until a take() lowers
// it. If a handler raises the flag after that, the flag is up again. A slot is open before the handler is installed,
// so every delivery after open() has returned finds the slot.
//
// Before it calls the former handler, this library's handler uses only atomic operations, pthread_sigmask(), getpid()
// and write(), and restores errno. Meanwhile all signals are blocked in its thread. So no other handler runs between
// enter() and leave(): none can delay leave(), jump over it, or fork there.
//
// Memory order: that of handler_uses.hpp, and [former]: the store of a record releases, and the handler that reads the
// record acquires.
//
// Checked by: tests/unit/signal_test.cpp, tests/model/handler_uses_model_test.cpp (P21 of docs/proofs.md).
#include "platform/signals/signal_flag.hpp"

#include "platform/signals/handler_uses.hpp"
#include "platform/system/signals_blocked.hpp"
#include "platform/system/system.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace tocsin::platform {

struct signal_slot {
    handler_uses uses;
    int signal = 0;  // 0: free
    pid_t process = 0;
    readable_flag* flag = nullptr;
};

namespace {

struct former_action {
    struct sigaction action;
    const former_action* older;  // keeps every record reachable
};

struct signal_action {
    std::atomic<const former_action*> former{nullptr};
    int sources = 0;
    bool installed = false;
};

#if defined(NSIG)
constexpr int signal_count = NSIG;
#else
constexpr int signal_count = 65;
#endif

constinit signal_slot signal_slots[signal_flag::most];
constinit signal_action signal_actions[signal_count];
constinit std::mutex signal_lock;
constinit std::uint32_t fork_count = 0;  // how many forks this process descends from

// Holds the lock, with all signals blocked.
class signal_guard {
    const signals_blocked blocked_;
    const std::lock_guard<std::mutex> held_{signal_lock};
};

void on_signal(int number, siginfo_t* info, void* context);

bool is_handler(const struct sigaction& action) noexcept {
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

bool is_ours(const struct sigaction& action) noexcept {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

bool is_ignored_by_default(int number) noexcept {
    return number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT;
}

// Does what the signal would have done without this library. `taken`: a source has it, so no default action.
void pass_on(const struct sigaction& former, bool taken, int number, siginfo_t* info, void* context) {
    if (is_handler(former)) {
        if ((former.sa_flags & SA_SIGINFO) != 0) {
            former.sa_sigaction(number, info, context);
        } else {
            former.sa_handler(number);
        }
    } else if (former.sa_handler == SIG_DFL && !taken && !is_ignored_by_default(number)) {
        // The signal is blocked in its handler. It is delivered again, to the default action, when the handler returns.
        struct sigaction by_default{};
        by_default.sa_handler = SIG_DFL;
        ::sigaction(number, &by_default, nullptr);
        ::raise(number);
    }
}

void on_signal(int number, siginfo_t* info, void* context) {
    bool taken = false;
    {
        const errno_guard guard;
        const signals_blocked blocked;
        const pid_t process = ::getpid();
        for (signal_slot& each : signal_slots) {
            if (!each.uses.enter()) continue;
            if (each.signal == number && each.process == process) {  // signal_flag-2
                each.flag->raise();
                taken = true;
            }
            each.uses.leave();
        }
    }
    // [former] acquires the record
    const former_action* const former = signal_actions[number].former.load(std::memory_order_acquire);
    if (former != nullptr) pass_on(former->action, taken, number, info, context);
}

struct sigaction action_over(int number, const struct sigaction& former) noexcept {
    struct sigaction made{};
    if (is_handler(former)) {
        made = former;
    } else {
        sigemptyset(&made.sa_mask);
        made.sa_flags = SA_RESTART | (former.sa_flags & (SA_NOCLDSTOP | SA_NOCLDWAIT));
        // A process that ignores SIGCHLD leaves no zombies. It still shall not.
        if (number == SIGCHLD && former.sa_handler == SIG_IGN) made.sa_flags |= SA_NOCLDWAIT;
    }
    made.sa_flags |= SA_SIGINFO | SA_ONSTACK;
    made.sa_sigaction = on_signal;
    return made;
}

bool is_same(const struct sigaction& one, const struct sigaction& other) noexcept {
    for (int each = 1; each < signal_count; ++each) {
        if (sigismember(&one.sa_mask, each) != sigismember(&other.sa_mask, each)) return false;
    }
    return one.sa_flags == other.sa_flags && one.sa_handler == other.sa_handler;
}

// Locked: makes the library's handler the signal's action. `spare` is the record for a former action that differs from
// the last one. Returns 0 or an error.
int install(int number, std::unique_ptr<former_action>& spare) noexcept {
    signal_action& action = signal_actions[number];
    struct sigaction now{};
    if (::sigaction(number, nullptr, &now) != 0) return errno;
    if (is_ours(now)) return 0;
    if (is_handler(now)) {
        if (action.installed) return EBUSY;  // signal_flag-4
        if ((now.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) return ENOTSUP;
    }
    const former_action* const last = action.former.load(std::memory_order_relaxed);  // no order: locked
    if (last == nullptr || !is_same(last->action, now)) {
        *spare = {now, last};
        action.former.store(spare.release(), std::memory_order_release);  // [former] signal_flag-3
    }
    const struct sigaction ours = action_over(number, now);
    if (::sigaction(number, &ours, nullptr) != 0) return errno;
    action.installed = true;
    return 0;
}

// Locked: the signal has no source any more.
void uninstall(int number) noexcept {
    signal_action& action = signal_actions[number];
    struct sigaction now{};
    if (::sigaction(number, nullptr, &now) != 0 || !is_ours(now)) return;
    ::sigaction(number, &action.former.load(std::memory_order_relaxed)->action, nullptr);  // no order: locked
    action.installed = false;
}

// The lock is held across a fork, with all signals blocked, so the child finds everything whole. Several threads may
// fork at once, so only the holder of the lock touches the mask.
sigset_t mask_before_fork;

void before_fork() noexcept {
    const sigset_t before = signals_blocked::block_all();
    signal_lock.lock();
    mask_before_fork = before;
}
void end_fork() noexcept {
    const sigset_t before = mask_before_fork;
    signal_lock.unlock();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void after_fork_in_child() noexcept {
    for (signal_slot& each : signal_slots) {
        each.uses.forget();
        each.signal = 0;
    }
    for (signal_action& each : signal_actions) each.sources = 0;
    ++fork_count;
    end_fork();
}

int watch_forks() noexcept {
    static const int error = ::pthread_atfork(before_fork, end_fork, after_fork_in_child);
    return error;
}

// A thread waits until handlers in other threads have taken a few steps. It sleeps rather than spins: these threads may
// need its processor.
void wait_until_unused(const handler_uses& uses) noexcept {
    const errno_guard guard;
    while (!uses.unused()) {
        const timespec nap{0, 20'000};
        ::nanosleep(&nap, nullptr);
    }
}

}  // namespace

int signal_flag::open(int number) noexcept {
    const errno_guard errno_before;
    std::unique_ptr<former_action> spare(new (std::nothrow) former_action());
    if (spare == nullptr) return ENOMEM;
    if (const int error = watch_forks(); error != 0) return error;
    if (const int error = flag_.open(); error != 0) return error;
    const signal_guard guard;
    const auto found = std::find_if(std::begin(signal_slots), std::end(signal_slots),
                                    [](const signal_slot& each) { return each.signal == 0; });
    if (found == std::end(signal_slots)) return EAGAIN;
    found->signal = number;
    found->process = ::getpid();
    found->flag = &flag_;
    found->uses.open();
    if (const int error = install(number, spare); error != 0) {
        found->uses.close();
        wait_until_unused(found->uses);
        found->signal = 0;
        return error;
    }
    ++signal_actions[number].sources;
    slot_ = found;
    forks_ = fork_count;
    return 0;
}

signal_flag::~signal_flag() {
    if (slot_ == nullptr || forks_ != fork_count) return;  // after a fork the slot belongs to the parent
    {
        const signal_guard guard;
        slot_->uses.close();
        if (--signal_actions[slot_->signal].sources == 0) uninstall(slot_->signal);
    }
    wait_until_unused(slot_->uses);
    const signal_guard guard;
    slot_->signal = 0;
}

bool signal_flag::refuses(int number) noexcept {
    constexpr int refused[] = {SIGKILL, SIGSTOP, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    return number <= 0 || number >= signal_count ||
           std::find(std::begin(refused), std::end(refused), number) != std::end(refused);
}

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// A signal as a descriptor: a flag that a signal handler raises.
//
// State
//   slots    64 slots for signal_flags. Each has a word for its handlers (handler_uses.hpp), and says which signal,
//            which process and which flag it is for. Only the owner writes these, while the slot is closed.
//   actions  For each signal: the action that was there before this library's handler; how many flags the signal has;
//            `installed`; and a word for handlers, `idle`, which is closed while the signal has a flag, and before its
//            first one. `installed` is set when this library installs its handler, or finds that somebody has put the
//            handler back. It is cleared when this library takes the handler away.
//   lock     Guards everything that handlers do not change. Its holder blocks all signals, so no handler runs in the
//            holder's thread. The lock is held across a fork, and then guards the forking thread's signal mask, too.
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
//       has no cycle. open() installs it only in two cases. Either `installed` is not set: this library never installed
//       its handler, or has taken it away. Or the present action is not a handler.
//   signal_flag-5  A handler restores the former action only between enter() and leave() of `idle`. open() closes
//       `idle` and waits until it is unused before it looks at the present action. So no handler takes away the handler
//       of a new flag. (A child that ran no fork handlers may restore the former action at any time, because the child
//       has no flags.)
//   signal_flag-6  A copy of the library is never unloaded once it has installed its handler. A handler may still run
//       in another thread after its last flag is gone, and whoever has saved this library's action may call it at any
//       time. So open() keeps the copy loaded. In ~signal_flag() it would be too late: if dlclose() has called the
//       destructor, glibc unloads the object whatever the destructor does.
//
// The handler calls the former handler, if there is one, also when a flag takes the delivery. If no flag takes it, the
// handler does what would have happened without this library.
//   - If the present action is this handler, the handler takes itself away: it restores the former action. Then it
//     calls the former handler, if there is one. If the former action is the default one, and this does more than
//     ignore the signal, the handler raises the signal again.
//   - Otherwise, another handler has called this one. If there is a former handler, it is called. If there is none,
//     then without this library the other handler would have found SIG_DFL or SIG_IGN, which nobody can call. So
//     nothing happens, not even the default action.
//   - Several copies of the library may be in one chain. The upper copy takes its handler away before it calls the
//     lower one. So the lower copy in turn finds its own handler as the present action, unless another handler is
//     between them. The default action therefore happens exactly if no copy in the chain has a flag, and the chain has
//     no other handler.
//   Rejected: the upper copy could note in a thread slot, for the lower copy, that no flag has taken the delivery. But
//   the lower copy could not see whether the upper one or a handler between them has called it. A slot also takes
//   scarce memory of every copy.
//
// No lost signal: a delivery raises the flag of every open slot of its signal. The flag stays up until a take() lowers
// it. If a handler raises the flag after that, the flag is up again. A slot is open before the handler is installed,
// so every delivery after open() has returned finds the slot.
//
// Before it calls the former handler, this library's handler uses only atomic operations, pthread_sigmask(), getpid(),
// sigaction(), pthread_setcancelstate() (cancellation_disabled.hpp) and write(), and restores errno. Meanwhile all
// signals are blocked in its thread. So no other handler runs between enter() and leave(): none can delay leave(), jump
// over it, or fork there.
//
// Memory order: that of handler_uses.hpp, and [former]: the store of a record releases, and the handler that reads the
// record acquires.
//
// Checked by: tests/unit/signal_test.cpp, tests/copies/signals,
// tests/model/handler_uses_model_test.cpp (P21 of docs/proofs.md).
#include "platform/signals/signal_flag.hpp"

#include "platform/signals/handler_uses.hpp"
#include "platform/system/cancellation_disabled.hpp"
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
    std::atomic<bool> installed{false};
    handler_uses idle;
};

#if defined(NSIG)
constexpr int signal_count = NSIG;
#else
constexpr int signal_count = 65;
#endif

constinit signal_slot signal_slots[signal_flag::max];
constinit signal_action signal_actions[signal_count];
constinit std::mutex signal_lock;
constinit std::uint32_t fork_count = 0;        // how many forks this process descends from
constinit std::atomic<pid_t> this_process{0};  // the number of the process that made the flags: is_child()

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

// Whether this process is a child that ran no fork handlers: a child of vfork(), _Fork() or clone(). It may share the
// memory of its parent, and must not write there.
bool is_child(pid_t process) noexcept {
    return this_process.load(std::memory_order_relaxed) != process;  // no order: [former] has it
}

// Called by the handler if no source has taken the delivery. If the handler is the present action, restores the former
// one, and returns true.
bool take_away(int number, const struct sigaction& former, pid_t process) noexcept {
    signal_action& action = signal_actions[number];
    const bool may_write = !is_child(process);
    if (may_write && !action.idle.enter()) return false;  // signal_flag-5
    struct sigaction now{};
    const bool restores = ::sigaction(number, nullptr, &now) == 0 && is_ours(now);
    if (restores && may_write)
        action.installed.store(false, std::memory_order_relaxed);  // no order: `idle` has it
    if (restores) ::sigaction(number, &former, nullptr);
    if (may_write) action.idle.leave();
    return restores;
}

// Does what the signal would have done without this library. `restored`: take_away() has restored the former action.
void pass_on(const struct sigaction& former, bool restored, int number, siginfo_t* info, void* context) {
    if (is_handler(former)) {
        if ((former.sa_flags & SA_SIGINFO) != 0) {
            former.sa_sigaction(number, info, context);
        } else {
            former.sa_handler(number);
        }
    } else if (restored && former.sa_handler == SIG_DFL && !is_ignored_by_default(number)) {
        // The signal is blocked while its handler runs. When the handler returns, the signal raised here is delivered,
        // to the default action. (In the child of a vfork(), musl's raise() would reach the parent.)
        const pid_t process = ::getpid();
        is_child(process) ? ::kill(process, number) : ::raise(number);
    }
}

void on_signal(int number, siginfo_t* info, void* context) {
    const former_action* former = nullptr;
    bool restored = false;
    {
        const errno_guard guard;
        const signals_blocked blocked;
        const pid_t process = ::getpid();
        bool taken = false;
        for (signal_slot& each : signal_slots) {
            if (!each.uses.enter()) continue;
            if (each.signal == number && each.process == process) {  // signal_flag-2
                each.flag->raise();
                taken = true;
            }
            each.uses.leave();
        }
        // [former] acquires the record
        former = signal_actions[number].former.load(std::memory_order_acquire);
        if (former == nullptr) return;
        if (!taken) restored = take_away(number, former->action, process);
    }
    pass_on(former->action, restored, number, info, context);
}

struct sigaction action_over(int number, const struct sigaction& former) noexcept {
    struct sigaction made{};
    if (is_handler(former)) {
        made = former;
    } else {
        sigemptyset(&made.sa_mask);
        made.sa_flags = SA_RESTART | (former.sa_flags & (SA_NOCLDSTOP | SA_NOCLDWAIT));
        // A process that ignores SIGCHLD leaves no zombies. That must not change.
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
    if (is_ours(now)) {
        // Somebody may have put the handler back after it was taken away. No order: idle is unused.
        action.installed.store(true, std::memory_order_relaxed);
        return 0;
    }
    if (is_handler(now)) {
        // signal_flag-4. No order: idle is unused.
        if (action.installed.load(std::memory_order_relaxed)) return EBUSY;
        if ((now.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) return ENOTSUP;
    }
    const former_action* const last = action.former.load(std::memory_order_relaxed);  // no order: locked
    if (last == nullptr || !is_same(last->action, now)) {
        *spare = {now, last};
        action.former.store(spare.release(), std::memory_order_release);  // [former] signal_flag-3
    }
    const struct sigaction ours = action_over(number, now);
    if (::sigaction(number, &ours, nullptr) != 0) return errno;
    // No order: locked, and handlers cannot enter idle.
    action.installed.store(true, std::memory_order_relaxed);
    return 0;
}

// Locked: the signal has no source any more.
void uninstall(int number) noexcept {
    signal_action& action = signal_actions[number];
    struct sigaction now{};
    if (::sigaction(number, nullptr, &now) == 0 && is_ours(now)) {
        // No order: as in install().
        ::sigaction(number, &action.former.load(std::memory_order_relaxed)->action, nullptr);
        action.installed.store(false, std::memory_order_relaxed);
    }
    action.idle.open();
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
    for (signal_action& each : signal_actions) {
        each.sources = 0;
        each.idle.forget();
        each.idle.open();
    }
    this_process.store(::getpid(), std::memory_order_relaxed);  // no order: one thread
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
    const cancellation_disabled here;
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
    keep_loaded();  // signal_flag-6
    const signal_guard guard;
    const auto found = std::find_if(std::begin(signal_slots), std::end(signal_slots),
                                    [](const signal_slot& each) { return each.signal == 0; });
    if (found == std::end(signal_slots)) return EAGAIN;
    found->signal = number;
    found->process = ::getpid();
    found->flag = &flag_;
    found->uses.open();
    // No order: the [former] of the first record has it.
    this_process.store(found->process, std::memory_order_relaxed);
    signal_action& action = signal_actions[number];
    action.idle.close();
    wait_until_unused(action.idle);  // signal_flag-5
    if (const int error = install(number, spare); error != 0) {
        found->uses.close();
        wait_until_unused(found->uses);
        found->signal = 0;
        if (action.sources == 0) action.idle.open();
        return error;
    }
    ++action.sources;
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

const char* signal_flag::refuses(int number) noexcept {
    constexpr int fatal[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    if (number <= 0 || number >= signal_count) return "does not exist";
    if (number == SIGKILL || number == SIGSTOP) return "can't be handled: the system acts on it";
    const bool is_fatal = std::find(std::begin(fatal), std::end(fatal), number) != std::end(fatal);
    return is_fatal ? "is sent to a thread that can't continue: no source can have it" : nullptr;
}

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// The functions of system.hpp on POSIX systems. For a few things Linux has a better way, and Emscripten needs another.
#include "platform/system/cached_urgency.hpp"
#include "platform/system/cancellation_disabled.hpp"
#include "platform/system/signals_blocked.hpp"
#include "platform/system/system.hpp"
#if defined(__linux__)
#include "platform/system/scheduling_linux.hpp"
#endif

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <ratio>
#include <type_traits>
#include <utility>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if !defined(__EMSCRIPTEN__)
#include <unwind.h>
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif

namespace tocsin::platform {

#if defined(__linux__)
namespace {

// The first call comes while the library is being loaded: from the object below, or from processors() in
// core/lot/table.cpp.
const thread_scheduling& scheduling_at_load() noexcept {
    static const thread_scheduling noted = thread_scheduling::of_first_thread();
    return noted;
}
[[maybe_unused]] const thread_scheduling& noted_at_load = scheduling_at_load();

}  // namespace
#endif

unsigned processors() noexcept {
    static const unsigned count = [] {
#if defined(__linux__)
        if (const unsigned usable = scheduling_at_load().processors(); usable != 0) return usable;
#endif
        const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
        return online > 0 ? static_cast<unsigned>(online) : 1u;
    }();
    return count;
}

void yield_thread() noexcept {
    const errno_guard guard;
    ::sched_yield();
}

std::int64_t boot_time() noexcept {
#if defined(CLOCK_BOOTTIME)
    constexpr clockid_t clock = CLOCK_BOOTTIME;
#else
    constexpr clockid_t clock = CLOCK_MONOTONIC;  // on macOS it runs while the machine sleeps
#endif
    timespec now{};
    if (::clock_gettime(clock, &now) == 0) return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t recent_time() noexcept {
    using clock = std::chrono::steady_clock;
#if defined(__linux__)
    static_assert(std::is_same_v<clock::period, std::nano>);  // and it is CLOCK_MONOTONIC
    timespec now{};
    if (::clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0)
        return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
#endif
    return clock::now().time_since_epoch().count();
}

std::int64_t unique_time(std::int64_t time) noexcept {
    constinit thread_local std::uint32_t last = 0;
    return time_after(last, time);
}

#if defined(__linux__)
namespace {

// Either the thread's number, which is less than 2^31, or a nickname plus 2^31. 0 if the thread has neither. Both share
// one word, because thread-local memory is scarce (shared_table/thread_slots.hpp).
constinit thread_local std::uint32_t number_or_nickname = 0;
constexpr std::uint32_t is_nickname = std::uint32_t{1} << 31;
constinit std::atomic<std::uint32_t> nicknames_given{0};

// Returns 0 if all nicknames have been given away.
std::uint32_t new_nickname() noexcept {
    // No order: the number only has to differ each time.
    std::uint32_t given = nicknames_given.load(std::memory_order_relaxed);
    while (given != is_nickname - 1) {
        // No order, as above.
        if (nicknames_given.compare_exchange_weak(given, given + 1, std::memory_order_relaxed))
            return is_nickname | given;
    }
    return 0;
}

}  // namespace
#endif

std::uint64_t thread_number() noexcept {
#if defined(__linux__)
    const std::uint32_t known = number_or_nickname;
    if (known != 0 && (known & is_nickname) == 0) return known;
    const auto number = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    if (known == 0) number_or_nickname = number;
    return number;
#elif defined(__EMSCRIPTEN__)
    return static_cast<std::uint64_t>(::pthread_self());
#else
    thread_local char mark;
    return reinterpret_cast<std::uintptr_t>(&mark);
#endif
}

std::uint64_t thread_number_or_nickname() noexcept {
#if defined(__linux__)
    if (number_or_nickname == 0) number_or_nickname = new_nickname();
    if ((number_or_nickname & is_nickname) != 0) return nicknames_from + (number_or_nickname & ~is_nickname);
#endif
    return thread_number();
}

learnt_number learn_thread_number() noexcept {
    std::uint64_t nickname = 0;
#if defined(__linux__)
    if ((number_or_nickname & is_nickname) != 0) {
        nickname = thread_number_or_nickname();
        number_or_nickname = 0;
    }
#endif
    return {thread_number(), nickname};
}

void forget_thread_number() noexcept {
#if defined(__linux__)
    number_or_nickname = 0;
#endif
}

namespace {

constinit thread_local cached_urgency known_urgency;

#if defined(__linux__)
// The kernel's struct sched_attr, as it was first published.
struct scheduling {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime;
    std::uint64_t deadline;
    std::uint64_t period;
};
#endif

unsigned ask_urgency() noexcept {
#if defined(__linux__)
    constexpr std::uint32_t fifo = 1, round_robin = 2, idle = 5, by_deadline = 6;  // policies
    scheduling now{};
    if (::syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0) return ordinary_urgency;
    switch (now.policy) {
        case fifo:
        case round_robin: return real_time_urgency - 1 + now.priority;
        case by_deadline: return real_time_urgency + 99;
        case idle: return 0;
        default: return 1 + static_cast<unsigned>(20 - now.nice) * 9 / 20;  // nice 20 - 0 - -20: 1 - 10 - 19
    }
#elif defined(__EMSCRIPTEN__) || defined(__wasm__)
    return ordinary_urgency;
#else
    int policy = SCHED_OTHER;
    sched_param now{};
    if (::pthread_getschedparam(::pthread_self(), &policy, &now) != 0) return ordinary_urgency;
    if (policy != SCHED_FIFO && policy != SCHED_RR) return ordinary_urgency;
    const int above = now.sched_priority - ::sched_get_priority_min(policy);
    return real_time_urgency + static_cast<unsigned>(above < 0 ? 0 : above > 99 ? 99 : above);
#endif
}

}  // namespace

unsigned thread_urgency(std::int64_t now) noexcept {
    return known_urgency.at(now, []() noexcept {
        const errno_guard guard;
        return ask_urgency();
    });
}

unsigned known_thread_urgency() noexcept { return known_urgency.known(); }

void forget_thread_urgency() noexcept { known_urgency.forget(); }

bool exchange_look_due(bool due) noexcept {
    constinit thread_local bool is_due = false;
    return std::exchange(is_due, due);
}

std::uint32_t drawn_number() noexcept {
    static constinit std::atomic<std::uint32_t> drawn{0};  // of all threads: thread-local memory is scarce
    return static_cast<std::uint32_t>(
        mix(drawn.fetch_add(1, std::memory_order_relaxed), 0));  // no order: any will do
}

static_assert(sizeof(sigset_t) <= sizeof(signal_mask) && alignof(sigset_t) <= alignof(signal_mask));

signal_mask signal_mask::current() noexcept {
    signal_mask result;
    ::pthread_sigmask(SIG_SETMASK, nullptr, ::new (static_cast<void*>(result.set_)) sigset_t);
    return result;
}

signal_mask signal_mask::exchange() const noexcept {
    sigset_t now;
    std::memcpy(&now, set_, sizeof now);
    signal_mask before;
    ::pthread_sigmask(SIG_SETMASK, &now, ::new (static_cast<void*>(before.set_)) sigset_t);
    return before;
}

std::uint64_t random_number() noexcept {
    std::uint64_t drawn[2]{};
#if defined(__linux__)
    // The kernel gives each program 16 random bytes when it starts. The C library makes its stack guard of these bytes,
    // so this function returns them only mixed.
    const errno_guard guard;
    if (const auto bytes = ::getauxval(AT_RANDOM); bytes != 0)
        std::memcpy(drawn, reinterpret_cast<const void*>(bytes), sizeof drawn);
#elif defined(__EMSCRIPTEN__)
    const errno_guard guard;
    if (::getentropy(drawn, sizeof drawn) != 0) drawn[0] = 0;
#else
    ::arc4random_buf(drawn, sizeof drawn);
#endif
    return mix(drawn[0], drawn[1]);
}

void keep_loaded() noexcept {
#if !defined(__EMSCRIPTEN__)  // has one module; its dlopen() ends a program not linked for dlopen()
    static constinit std::atomic<bool> is_kept{false};
    if (is_kept.load(std::memory_order_relaxed)) return;  // no order: it only saves a second call
    const errno_guard guard;
    Dl_info where;
    if (::dladdr(reinterpret_cast<const void*>(keep_loaded), &where) != 0) {
        ::dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
    is_kept.store(true, std::memory_order_relaxed);  // no order
#endif
}

void schedule_this_thread() noexcept {
#if defined(__linux__)
    scheduling_at_load().apply();
#endif
}
void schedule_thread([[maybe_unused]] const void* pthread) noexcept {
#if defined(__linux__)
    scheduling_at_load().apply_to(*static_cast<const pthread_t*>(pthread));
#endif
}

int start_thread(void (*run)() noexcept) noexcept {
    const errno_guard guard;
    const signals_blocked blocked;  // also in the new thread
    const auto body = [](void* what) -> void* {
        schedule_this_thread();
        reinterpret_cast<void (*)() noexcept>(what)();
        return nullptr;
    };
    pthread_t thread;
    const int error = ::pthread_create(&thread, nullptr, body, reinterpret_cast<void*>(run));
    if (error != 0) return error;
    schedule_thread(&thread);
    ::pthread_detach(thread);
    return 0;
}

bool other_threads_are_gone() noexcept { return false; }

#if defined(__EMSCRIPTEN__)
bool is_exiting() noexcept { return false; }
#else
bool is_exiting() noexcept {
    const errno_guard guard;
    bool found = false;
    const auto look = [](_Unwind_Context* frame, void* result) -> _Unwind_Reason_Code {
        const auto return_address = static_cast<std::uintptr_t>(_Unwind_GetIP(frame));
        if (return_address == 0) return _URC_NO_REASON;
        // exit() does not return, so its call may be the last thing in it, and the return address behind it.
        Dl_info where{};
        const auto* const call = reinterpret_cast<const void*>(return_address - 1);
        bool is_exit = ::dladdr(call, &where) != 0 && where.dli_sname != nullptr &&
                       std::strcmp(where.dli_sname, "exit") == 0;
#if !defined(__ARM_EABI__)  // where the next function is not for this use
        // A static program has no names of functions.
        is_exit = is_exit || _Unwind_GetRegionStart(frame) == reinterpret_cast<std::uintptr_t>(&std::exit);
#endif
        if (!is_exit) return _URC_NO_REASON;
        *static_cast<bool*>(result) = true;
        return _URC_END_OF_STACK;
    };
    (void)_Unwind_Backtrace(look, &found);
    return found;
}
#endif

void on_fork_in_child(void (*child)() noexcept) noexcept { ::pthread_atfork(nullptr, nullptr, child); }

void close_descriptor(int descriptor) noexcept {
    const errno_guard guard;
    const cancellation_disabled here;
    ::close(descriptor);
}

std::uint32_t descriptor_identity(int descriptor) noexcept {
    const errno_guard guard;
    struct stat what{};
    if (::fstat(descriptor, &what) != 0) return 0;
    const std::uint64_t mixed = (static_cast<std::uint64_t>(what.st_dev) * 0x9e37'79b9'7f4a'7c15 +
                                 static_cast<std::uint64_t>(what.st_ino)) *
                                    0x9e37'79b9'7f4a'7c15 +
                                static_cast<std::uint64_t>(what.st_mode & S_IFMT);
    return static_cast<std::uint32_t>(mixed >> 32) | 1;
}

void say(const char* message) noexcept {
    const errno_guard guard;
    const cancellation_disabled here;
    // One write, so that messages of several threads do not mix. If it fails, there is nowhere to report that.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message, std::strlen(message));
}

void die(const char* message) noexcept {
    say(message);
    std::abort();
}

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// What the library asks of the system apart from sleeping and polling. Each family of systems has one file that defines
// these functions: posix.cpp, windows.cpp.
#pragma once

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace tocsin::platform {

// Restores errno to what it was when the guard was made.
class errno_guard {
public:
    errno_guard() noexcept : before_(errno) {}
    ~errno_guard() { errno = before_; }
    errno_guard(const errno_guard&) = delete;
    errno_guard& operator=(const errno_guard&) = delete;

private:
    const int before_;
};

// The category of the errors that the functions of src/platform return.
inline const std::error_category& error_category() noexcept {
#if defined(_WIN32)
    return std::generic_category();  // the system category has the numbers of GetLastError()
#else
    return std::system_category();
#endif
}

// How many processors the process may use, at least 1. (If the system does not say that: how many are online.) The
// first call asks the system; later calls return the same number.
unsigned processors() noexcept;

// If another thread is ready to run on this processor, lets that thread run first.
void yield_thread() noexcept;

// The time on the steady clock, in its ticks, as it is now or was at most 10 ms ago. Where the system has such a clock,
// this takes a fifth of the time that the exact one takes.
std::int64_t recent_time() noexcept;

// Nanoseconds on a steady clock that also runs while the machine is suspended, if the system has such a clock.
std::int64_t boot_time() noexcept;

// Makes times of the steady clock unique among those for which the calling thread calls this function: returns `time`
// or, if the thread has got about that time or a later one before, a time some 16 ticks after the last that it got. A
// wait takes longer than that, so this does not run ahead of the clock.
std::int64_t unique_time(std::int64_t time) noexcept;

// A number that identifies the calling thread among the running threads. People may read it, too: on Linux it is the
// kernel's id of the thread.
std::uint64_t thread_number() noexcept;
// Returns thread_number() if the thread knows its number. A thread that would have to ask the system gets a nickname
// instead, which is nicknames_from or greater. No other thread ever gets this nickname. The thread keeps it until it
// calls learn_thread_number().
inline constexpr std::uint64_t nicknames_from = std::uint64_t{1} << 63;
std::uint64_t thread_number_or_nickname() noexcept;
// Returns thread_number(), and the nickname that the thread had until now; 0 if it had none.
struct learnt_number {
    std::uint64_t number;
    std::uint64_t nickname;
};
learnt_number learn_thread_number() noexcept;
// Called in the child of a fork, whose only thread has another number than the thread that called fork. The thread's
// nickname is forgotten, too.
void forget_thread_number() noexcept;

// How urgent a thread is to the system's scheduler: a greater number gets a processor first. Two threads of equal
// urgency share the processors, whatever the system calls that. Numbers from `real_time_urgency` on are those of
// real-time policies.
inline constexpr unsigned urgency_bits = 7;
inline constexpr unsigned ordinary_urgency = 10;  // also of what is no thread, such as a coroutine
inline constexpr unsigned real_time_urgency = 21;
// The urgency of the calling thread, as it is now or was at most about a second before `now`, a time of the steady
// clock in ticks. So a thread asks the system once a second at most.
unsigned thread_urgency(std::int64_t now) noexcept;
// What the calling thread's last thread_urgency() has returned; ordinary_urgency before the first.
unsigned known_thread_urgency() noexcept;
// Makes the calling thread's next thread_urgency() ask the system.
void forget_thread_urgency() noexcept;

// Sets the calling thread's mark, which says whether its next wait_any() with descriptors looks at them first
// (src/wait.cpp). Returns the mark's former value. A new thread's mark is off.
bool exchange_look_due(bool due) noexcept;

// A number that differs from call to call, for choices that should be fair. Anybody may predict it.
std::uint32_t drawn_number() noexcept;

// The signals that a thread blocks. On Windows a mask is always empty.
class signal_mask {
public:
    // The mask of the calling thread.
    static signal_mask current() noexcept;
    // Makes this the mask of the calling thread, and returns the thread's former mask.
    signal_mask exchange() const noexcept;

private:
    alignas(8) unsigned char set_[128] = {};
};

// A scope in which a thread that start_thread() made runs the user's code. In this scope, the thread blocks only the
// signals that its maker blocked. So threads and processes that the user's code starts inherit only those blocked
// signals.
class with_signals_of {
public:
    explicit with_signals_of(const signal_mask& makers) noexcept : before_(makers.exchange()) {}
    ~with_signals_of() { (void)before_.exchange(); }
    with_signals_of(const with_signals_of&) = delete;
    with_signals_of& operator=(const with_signals_of&) = delete;

private:
    const signal_mask before_;
};

// 64 bits that differ each time a program starts, and that nobody outside the process can predict. They are not fit for
// cryptography. This function neither fails nor blocks. The library calls it once, while it is being loaded.
std::uint64_t random_number() noexcept;

// Mixes a number that others may know with one that they don't, so that neither can be told from the result.
constexpr std::uint64_t mix(std::uint64_t one, std::uint64_t other) noexcept {
    // The finalizer of SplitMix64, twice: https://prng.di.unimi.it/splitmix64.c
    constexpr auto stir = [](std::uint64_t number) {
        number = (number ^ (number >> 30)) * 0xBF58'476D'1CE4'E5B9u;
        number = (number ^ (number >> 27)) * 0x94D0'49BB'1331'11EBu;
        return number ^ (number >> 31);
    };
    return stir(stir(one) + other);
}

// What unique_time() does, where `last` is all that the thread remembers: when its last time was, in units of 16 ticks,
// modulo 2^32; zero only before the first one. (Thread-local memory is scarce: shared_table/thread_slots.hpp.) A `time`
// is behind the last one by as much as a recent_time() may be late, or it comes later. A time that comes 68 s later may
// look as if it were behind, in one of 4,000 cases. The result is then up to 17 ms late, and still unique.
inline std::int64_t time_after(std::uint32_t& last, std::int64_t time) noexcept {
    constexpr int unit_bits = 4;
    constexpr std::uint32_t max_behind = std::uint32_t{1} << 20;
    const auto unit = static_cast<std::uint32_t>(static_cast<std::uint64_t>(time) >> unit_bits);
    const std::uint32_t behind = last - unit;
    if (last == 0 || behind >= max_behind) {
        last = unit != 0 ? unit : 1;
        return time;
    }
    if (++last == 0) last = 1;
    return time + ((std::int64_t{behind} + 1) << unit_bits);
}

// Keeps this copy of the library from being unloaded. After the first call, this is only a load. Call it under no lock
// that code of a plug-in may take: the dynamic linker has a lock of its own, which it also holds while it runs
// constructors and destructors.
void keep_loaded() noexcept;

// Starts a thread that runs as long as the process does, and handles no signals. On Linux it is scheduled as the
// program's first thread was when the library was loaded, not as its maker (scheduling_linux.hpp). On Windows a new
// thread inherits nothing. On other systems it inherits what the system lets it inherit. Call keep_loaded() first.
// Returns 0 or the system's error.
int start_thread(void (*run)() noexcept) noexcept;

#if !defined(_WIN32)
// What start_thread() does about the scheduling of its thread, for a thread that another library has made: a call in
// the new thread, and a call in its maker with a pointer to the thread's pthread_t.
void schedule_this_thread() noexcept;
void schedule_thread(const void* pthread) noexcept;
#endif

// Whether the process is ending and the system has already ended its other threads, wherever they were. Windows does
// that before it runs the destructors of a DLL's static objects.
bool other_threads_are_gone() noexcept;

// Whether the calling thread is inside exit(), which destroys the program's static objects while other threads run on.
// Systems don't tell this to a program. So this function looks for exit() in the thread's stack, which takes some
// microseconds. It says false where it can't look: under musl and Emscripten, and on Windows in a program's own static
// objects (it knows those of DLLs).
bool is_exiting() noexcept;

// Calls `child` in the child process of every later fork, before fork returns there.
void on_fork_in_child(void (*child)() noexcept) noexcept;

// Closes a descriptor that the library opened; on Windows a kernel handle.
void close_descriptor(int descriptor) noexcept;

// A hash of what the descriptor refers to. Two pipes have different numbers, and so do a pipe and a file. But all
// things without an inode of their own have one number, even if they are of different kinds. (On Linux these are event
// counters, epoll instances and timers.) The number is 0 if the descriptor is closed, if the system does not say, and
// always on Windows.
std::uint32_t descriptor_identity(int descriptor) noexcept;

// Both write the message to the standard error stream. die() then ends the process.
void say(const char* message) noexcept;
[[noreturn]] void die(const char* message) noexcept;

}  // namespace tocsin::platform

// What else the algorithms ask of the system. One file per family of systems: posix.cpp, windows.cpp.
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

// The category of the errors that these functions, the poller's and readable_flag's return.
inline const std::error_category& error_category() noexcept {
#if defined(_WIN32)
    return std::generic_category();  // the system category has the numbers of GetLastError()
#else
    return std::system_category();
#endif
}

// How many processors the process may use, at least 1. Asked of the system once, at the first call.
unsigned processors() noexcept;

// Lets another thread that is ready run on this processor first, if there is one.
void yield_thread() noexcept;

// Identifies the calling thread among the running threads, also for people to read (on Linux by the kernel's id).
std::uint64_t thread_number() noexcept;
// In the child of a fork, whose only thread has a number of its own.
void forget_thread_number() noexcept;

// A mark of the calling thread, off when it begins: its next wait for descriptors looks at them first (src/wait.cpp).
// Returns what it was.
bool exchange_look_due(bool due) noexcept;

// The signals that a thread blocks; on Windows nothing.
class signal_mask {
public:
    // Of the calling thread.
    static signal_mask current() noexcept;
    // Makes it the calling thread's, and returns the thread's former one.
    signal_mask exchange() const noexcept;

private:
    alignas(8) unsigned char set_[128] = {};
};

// In its scope, a thread that start_thread() made runs code of the user, with the signals blocked that the thread's
// maker blocked. So threads and processes that this code starts inherit no more than that.
class with_signals_of {
public:
    explicit with_signals_of(const signal_mask& makers) noexcept : before_(makers.exchange()) {}
    ~with_signals_of() { (void)before_.exchange(); }
    with_signals_of(const with_signals_of&) = delete;
    with_signals_of& operator=(const with_signals_of&) = delete;

private:
    const signal_mask before_;
};

// 64 bits that differ from process to process and that nobody outside can predict; not for cryptography. Asked once,
// while the library is loaded. Neither fails nor blocks.
std::uint64_t random_number() noexcept;

// Mixes what is known with what is not, so that neither can be told from the result.
constexpr std::uint64_t mix(std::uint64_t one, std::uint64_t other) noexcept {
    // The finalizer of SplitMix64, twice: https://prng.di.unimi.it/splitmix64.c
    constexpr auto stir = [](std::uint64_t number) {
        number = (number ^ (number >> 30)) * 0xBF58'476D'1CE4'E5B9u;
        number = (number ^ (number >> 27)) * 0x94D0'49BB'1331'11EBu;
        return number ^ (number >> 31);
    };
    return stir(stir(one) + other);
}

// Starts a thread that runs as long as the process. It handles no signals, and this copy of the library stays loaded.
// Returns 0 or the system's error.
int start_thread(void (*run)() noexcept) noexcept;

// Whether the process is ending and the system has already ended its other threads wherever they were. That is so on
// Windows, in the destructors of a DLL's static objects.
bool other_threads_are_gone() noexcept;

// Calls `child` in the child process of every later fork, before fork returns there.
void on_fork_in_child(void (*child)() noexcept) noexcept;

// Closes a descriptor that the library opened; on Windows a kernel handle.
void close_descriptor(int descriptor) noexcept;

// A number for what the descriptor refers to: different for two pipes, and for things of different kinds, but the same
// for all things that have no file (on Linux event counters, epoll instances, timers). 0: it is closed, or the system
// does not say. On Windows always 0.
std::uint32_t descriptor_identity(int descriptor) noexcept;

// Write the message to the standard error stream; die() also ends the process.
void say(const char* message) noexcept;
[[noreturn]] void die(const char* message) noexcept;

}  // namespace tocsin::platform

// What else the algorithms ask of the system. One file per family of systems: system_<family>.cpp.
#pragma once

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace tocsin::platform {

// Keeps errno as it was at its construction.
class errno_guard {
public:
    errno_guard() noexcept : kept_(errno) {}
    ~errno_guard() { errno = kept_; }
    errno_guard(const errno_guard&) = delete;
    errno_guard& operator=(const errno_guard&) = delete;

private:
    const int kept_;
};

// What the errors are numbers of that these functions, the poller's and the flag's return.
inline const std::error_category& error_category() noexcept {
#if defined(_WIN32)
    return std::generic_category();  // the system category has the numbers of GetLastError()
#else
    return std::system_category();
#endif
}

// How many processors the process may use, at least 1. Read once, at the first call.
unsigned processors() noexcept;

// Lets another thread that is ready to run go first on this processor, if there is one.
void yield_thread() noexcept;

// A number by which the system knows the calling thread, for people to read (the kernel's id on Linux).
std::uint64_t thread_number() noexcept;

// Starts a thread that runs as long as the process, out of the way: no signal is handled there, and this copy of the
// library stays loaded. 0 or the system's error.
int start_thread(void (*run)() noexcept) noexcept;

// Whether the process is about to end and its other threads have been ended where they were: on Windows, in the
// destructors of a DLL's static objects.
bool other_threads_are_gone() noexcept;

// Calls `child` in the child process of every later fork, before fork returns there.
void on_fork_in_child(void (*child)() noexcept) noexcept;

// A descriptor of the library's own; on Windows a kernel handle.
void close_descriptor(int descriptor) noexcept;

// Writes the message to the standard error stream; the second form also ends the process.
void say(const char* message) noexcept;
[[noreturn]] void die(const char* message) noexcept;

}  // namespace tocsin::platform

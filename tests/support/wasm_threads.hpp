// What the tests must know of a thread from outside, for WebAssembly.
//
// The suites run under Node on Linux, where a thread is one of the host's, and the host's kernel says what it does: the
// program sees the host's files, its number is asked of JavaScript. In a browser these facts are not to be had.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <emscripten.h>
#include <pthread.h>
#include <sys/types.h>

namespace support {

namespace detail {
inline std::mutex numbered_mutex;
inline std::map<pthread_t, pid_t> numbered;  // a handle is used again when its thread has ended
}  // namespace detail

inline pid_t thread_id() {
    const pid_t number =
        emscripten_run_script_int("Number(require('fs').readlinkSync('/proc/thread-self').split('/')[2])");
    const std::lock_guard lock(detail::numbered_mutex);
    detail::numbered[pthread_self()] = number;
    return number;
}

// Of a thread that has asked for its own.
inline pid_t thread_id_of(pthread_t thread) {
    if (thread == pthread_self()) return thread_id();
    const std::lock_guard lock(detail::numbered_mutex);
    return detail::numbered[thread];
}

// By what number the library names the calling thread.
inline std::uint64_t thread_number() { return static_cast<std::uint64_t>(pthread_self()); }

// The host's folder about a thread of this process.
inline std::string about_thread(pid_t thread) { return "/proc/self/task/" + std::to_string(thread) + '/'; }

}  // namespace support

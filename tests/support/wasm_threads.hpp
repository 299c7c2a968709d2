// SPDX-License-Identifier: Apache-2.0
// What the tests ask about a thread from outside, for WebAssembly.
//
// The suites run under Node on Linux. There each thread is a thread of the host, and the host's kernel says what the
// thread does. The program sees the host's files. A thread asks JavaScript for its number. In a browser these facts are
// not available.
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
inline std::map<pthread_t, pid_t> numbered;  // a new thread may get the handle of one that has ended
}  // namespace detail

inline pid_t thread_id() {
    const pid_t number =
        emscripten_run_script_int("Number(require('fs').readlinkSync('/proc/thread-self').split('/')[2])");
    const std::lock_guard lock(detail::numbered_mutex);
    detail::numbered[pthread_self()] = number;
    return number;
}

// Works only for a thread that has asked for its own number before, with thread_id().
inline pid_t thread_id_of(pthread_t thread) {
    if (thread == pthread_self()) return thread_id();
    const std::lock_guard lock(detail::numbered_mutex);
    return detail::numbered[thread];
}

// The number by which the library names the calling thread.
inline std::uint64_t thread_number() { return static_cast<std::uint64_t>(pthread_self()); }

// The host's folder about a thread of this process.
inline std::string about_thread(pid_t thread) { return "/proc/self/task/" + std::to_string(thread) + '/'; }

}  // namespace support

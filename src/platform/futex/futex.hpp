// The one contract every system must provide: sleep on a word of one's own until somebody says so or a
// deadline passes; wake whoever sleeps on that word. A new system is one file, futex_<mechanism>.cpp.
//
//   futex_wait  returns at once if the word does not hold `expected`. Otherwise sleeps until a wake on that
//               word (`returned`), until `until` has passed (`timed_out`), or for no reason at all
//               (`returned`): callers look at the word again. The look and falling asleep are one step
//               with respect to futex_wake_one. `timed_out` is never early. The wait gives no memory
//               order: the caller's own loads do. Signals do not end it. Preserves errno.
//   futex_wake_one
//               wakes one thread that sleeps on the word at this address, if any. The word may be gone
//               and its memory unmapped or in other use by then: at worst somebody returns for no reason.
//               Preserves errno.
//
//   futex_after_fork
//               in the child of a fork: forgets what the backend knew of threads that the child does not have.
//
//   futex_sleepers
//               the backend's own table of sleepers, which all copies of the library in a process must share
//               (shared_table.hpp); null if the system keeps it.
//
// Deadlines of the steady and the system clock are followed on that clock, also while it is set. For a
// clock of the user's own the backend sleeps until the estimated end and the deadline itself says whether
// it has passed (sleep_until below).
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>

#include <cstdint>

namespace tocsin::platform {

using futex_word = detail::atomic<std::uint32_t>;

enum class sleep_result : std::uint8_t { returned, timed_out };

sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;

// The backends that may be on one machine; the build points the two functions above to one of them, and
// the internal tests run over all.
namespace linux_futex {
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace linux_futex
namespace apple_futex {
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace apple_futex
namespace freebsd_futex {
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace freebsd_futex
namespace openbsd_futex {
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace openbsd_futex
namespace wasm_futex {
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace wasm_futex
namespace portable_futex {
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace portable_futex
namespace windows_futex {  // one of the three below, as the system has them
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace windows_futex
namespace waitonaddress_futex {
bool is_there() noexcept;
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace waitonaddress_futex
namespace srw_futex {
bool is_there() noexcept;
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace srw_futex
namespace kernel_event_futex {
sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept;
void futex_wake_one(const void* word) noexcept;
void futex_after_fork() noexcept;
void*& futex_sleepers() noexcept;
}  // namespace kernel_event_futex

// Runs `sleep(until)` for a deadline of the steady or the system clock or never. A deadline on another
// clock is slept for as a steady one at its estimated end, and asked again when that comes.
template <class Sleep>
sleep_result sleep_until(const deadline& until, Sleep sleep) noexcept {
    switch (until.which()) {
        case deadline::clock::passed: return sleep_result::timed_out;
        case deadline::clock::never:
        case deadline::clock::steady:
        case deadline::clock::system: return sleep(until);
        case deadline::clock::other: break;
    }
    for (;;) {
        const std::int64_t left = until.remaining();
        if (left <= 0) return sleep_result::timed_out;
        if (sleep(deadline(std::chrono::nanoseconds(left))) == sleep_result::returned) {
            return sleep_result::returned;
        }
    }
}

}  // namespace tocsin::platform

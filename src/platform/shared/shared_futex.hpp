// SPDX-License-Identifier: Apache-2.0
// What a system must provide for objects that processes share: threads of several processes sleep on a word, and the
// kernel marks a word and wakes a thread when the process that the word names has died.
//
// The kernel's promises, of Linux (Documentation/locking/robust-futex-ABI.rst; kernel/futex/core.c):
//   dies-1  A thread has at most one *covered* word: list_op_pending of its list of robust futexes. When the thread
//           ends, however it ends, and the lower 30 bits of that word are the thread's number, then the kernel sets
//           these bits to 0 and `died`, and wakes one thread that sleeps on the word, if the word has `sleepers_bit`.
//           Which one is not promised (real-time threads come first). Since Linux 2.6.17.
//   dies-2  The same holds for the *held* words, those in the list itself: at most 2,048.
//   dies-3  The kernel does this after the thread's last instruction, and after the thread has left its sleep.
//   dies-4  A system call that changes a word and wakes its sleepers (FUTEX_WAKE_OP) is not cut in two by a SIGKILL:
//           the thread ends only on its way back to its program.
//   dies-5  A thread that sleeps on several words, and is woken through one, stays queued on the others until it runs.
//           A wake of one thread that meets it there is spent on it. (So it must pass the news on.) A thread on which
//           a wake of dies-1 was spent sees the mark when it returns.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>

#include <cstddef>
#include <cstdint>

namespace tocsin::platform {

using narrow_word = detail::atomic<std::uint32_t>;
using wide_word = detail::atomic<std::uint64_t>;  // the kernel knows its lower half

inline constexpr std::uint32_t owner_mask = 0x3FFF'FFFF;
inline constexpr std::uint32_t died = 0x4000'0000;
inline constexpr std::uint32_t sleepers_bit = 0x8000'0000;

// A word, and the value with which the thread may sleep on it: of a wide word, the value of its lower half. `own`: a
// word in the memory of this process alone.
struct watched_word {
    const wide_word* wide = nullptr;
    const narrow_word* narrow = nullptr;
    std::uint32_t expected = 0;
    bool own = false;
};
inline constexpr std::size_t max_watched = 128;

enum class shared_sleep : std::uint8_t { woken, timed_out };

struct shared_futex {
    // Whether processes of this system can wait for each other like this.
    static bool is_available() noexcept;
    // Whether the kernel notices deaths (dies-1, dies-2). If not, all else works.
    static bool notices_deaths() noexcept;

    // Sleeps while all words have their expected values, until a wake on one of them. May return for no reason. There
    // are at most max_watched words. If the kernel can't watch several words (Linux before 5.16), the thread sleeps on
    // the first word, for at most 10 ms.
    static shared_sleep sleep(const watched_word* words, std::size_t count, const deadline& until) noexcept;

    static void wake_all(const wide_word& word) noexcept;
    static void wake_all(const narrow_word& word) noexcept;
    static void wake_own(const narrow_word& word) noexcept;
    // In one step with respect to deaths (dies-4): sets bit 0 and wakes all.
    static void set_lowest_bit_and_wake_all(narrow_word& word) noexcept;

    // The number of this thread with sleepers_bit, as it is in owner words.
    static std::uint32_t thread_mark() noexcept;

    // Covers a word until uncover() (dies-1).
    static void cover(const narrow_word& word) noexcept;
    static void cover(const wide_word& word) noexcept;
    static void uncover() noexcept;

    // Adds the word to those that this thread holds, or removes it (dies-2). Ask has_room_to_hold() before.
    static bool has_room_to_hold() noexcept;
    static void hold(narrow_word& word) noexcept;
    static void let_go(const narrow_word& word) noexcept;
    // Whether this thread holds the word.
    static bool holds(const narrow_word& word) noexcept;
};

}  // namespace tocsin::platform

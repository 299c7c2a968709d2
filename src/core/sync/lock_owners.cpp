// SPDX-License-Identifier: Apache-2.0
// A table of which thread has which lock, in checked builds.
//
// State: a table, which a lock of its own guards. An entry says which thread has taken the lock in one bit of a word
// (or a mutex of win32.h: event_as_lock.hpp), and not freed that lock. A thread makes its entry after it has taken the
// lock, and removes the entry before it frees the lock. So if the thread that took a lock also frees it, the lock's
// entry is never wrong. (The readers of a shared lock are an exception: while several read, the entry names the first
// of them, even after that one has left.) For a moment a lock that is held has no entry. A lock that is taken while the
// table is full never gets one.
// On Linux it costs a system call to learn a thread's number, and a lock that nobody contends makes no system call. So
// until a thread knows its number, its entries have a nickname in place of the number (platform/system). No other
// thread ever gets the same nickname. A thread learns its number when it first parks a wait, and then puts the number
// into its entries. So a thread that waits is always known as an owner. On Linux, a thread that has never waited
// usually is not.
//
// Locks: a thread may take the table's lock while it holds any other lock, even a bucket's. While it holds the table's
// lock, it takes no other.
//
// Copies: each copy of the library in the process has a table of its own. If a lock is taken with one copy and freed
// with another, its entry stays in the first copy's table. (A search usually finds a later entry for this lock before
// that old one.)
//
// Fork: the child's table begins empty. So the child does not know the owners of locks that were held at the fork.
// Checked by: tests/unit/diagnose_test.cpp, tests/internal/thread_number_test.cpp.
#include "core/sync/lock_owners.hpp"

#include "core/sync/fork.hpp"
#include "core/sync/futex_lock.hpp"
#include "core/sync/signal_deferral.hpp"
#include "platform/system/system.hpp"

#include <mutex>
#include <new>
#include <span>

namespace tocsin::core {

constinit held_bit held_bits[max_held_bits]{};
constinit std::uint32_t held_bits_in_use = 0;

namespace {

constinit futex_lock owners_lock;

const in_child forgets_owners(child_duty::lock_owners, []() noexcept {
    new (&owners_lock) futex_lock;
    held_bits_in_use = 0;
});

// Few locks are held at one time, and the last to be taken is usually the first to be freed.
held_bit* find_owner(const void* word, unsigned bit) noexcept {
    for (std::uint32_t i = held_bits_in_use; i-- != 0;) {
        if (held_bits[i].word == word && held_bits[i].bit == bit) return &held_bits[i];
    }
    return nullptr;
}

}  // namespace

void enter_lock_owner(const void* word, unsigned bit) noexcept {
    const std::uint64_t thread = platform::thread_number_or_nickname();
    const signal_deferral inside;
    const std::lock_guard held(owners_lock);
    if (held_bits_in_use != max_held_bits) held_bits[held_bits_in_use++] = {word, thread, bit};
}

void name_lock_owner(std::uint64_t nickname, std::uint64_t number) noexcept {
    const signal_deferral inside;
    const std::lock_guard held(owners_lock);
    for (held_bit& each : std::span(held_bits).first(held_bits_in_use)) {
        if (each.thread == nickname) each.thread = number;
    }
}

void remove_lock_owner(const void* word, unsigned bit) noexcept {
    const signal_deferral inside;
    const std::lock_guard held(owners_lock);
    if (held_bit* const found = find_owner(word, bit)) *found = held_bits[--held_bits_in_use];
}

std::uint64_t lock_owner(const void* word, unsigned bit) noexcept {
    const signal_deferral inside;
    const std::lock_guard held(owners_lock);
    const held_bit* const found = find_owner(word, bit);
    return found == nullptr || found->thread >= platform::nicknames_from ? 0 : found->thread;
}

}  // namespace tocsin::core

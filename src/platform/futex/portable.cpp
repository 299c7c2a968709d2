// Any system with a C++ standard library: a sleeper brings a condition variable on its own stack and
// queues it under its word's address.
//
// State: a fixed table of slots, each a mutex and a list of the sleepers whose words hash there.
//
// Invariants
//   portable-1  A sleeper is in its slot's list exactly while it is inside futex_wait, between its look at the word
//       and its return. The list changes only under the slot's mutex.
//   portable-2  A woken sleeper has been taken off the list by its waker, under the mutex: a second wake finds
//       the next one.
//
// No lost wake-up: the look at the word and the enqueueing happen under the slot's mutex, which a waker
// takes after its change of the word. A waker that gets the mutex first makes the change visible to the
// look; one that gets it later finds the sleeper.
//
// A sleeper's condition variable lives on its stack; it is notified under the mutex, which the sleeper
// needs to return, so it cannot vanish under the waker.
//
// Not promised: that a sleeper is not a pthread cancellation point (the others are none); on some systems,
// that a steady deadline is kept while the system clock is set back (condition_wait.hpp).
//
// Checked by: tests/internal/futex_test.cpp and every suite once more in the portable build.
#include "platform/futex/condition_wait.hpp"
#include "platform/futex/futex.hpp"
#include "platform/system/system.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <new>

namespace tocsin::platform {
namespace {

struct sleeper {
    const void* word;
    sleeper* next = nullptr;
    bool woken = false;
    std::condition_variable wake{};
};

struct slot {
    std::mutex mutex;
    sleeper* first = nullptr;

    void append(sleeper& who) noexcept {
        sleeper** link = &first;
        while (*link != nullptr) link = &(*link)->next;
        *link = &who;
    }

    // Takes out the first that `matches`, or null.
    template <class Matches>
    sleeper* remove(Matches matches) noexcept {
        for (sleeper** link = &first; *link != nullptr; link = &(*link)->next) {
            if (!matches(**link)) continue;
            sleeper* const found = *link;
            *link = found->next;
            return found;
        }
        return nullptr;
    }
};

// Never destroyed: waits and wakes are allowed after main.
constexpr std::size_t slot_count = 512;
union slots {
    slot at[slot_count];
    constexpr slots() noexcept : at{} {}
    ~slots() {}
};
constinit slots table;
constinit void* in_use = &table;  // of the process, also if it holds several copies of the library

slot& slot_of(const void* word) noexcept {
    const auto mixed = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(word)) *
                       0x9E37'79B9'7F4A'7C15u;  // 2^64 / golden ratio: spreads aligned addresses
    return static_cast<slots*>(in_use)->at[(mixed >> 32) % slot_count];
}

sleep_result sleep(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    slot& key_hash = slot_of(&word);
    std::unique_lock lock(key_hash.mutex);
    if (word.load(std::memory_order_relaxed) != expected) return sleep_result::returned;  // no order: the
                                                                                          // mutex gives it
    sleeper self{&word};
    key_hash.append(self);
    const auto woken = [&self] { return self.woken; };
    if (until.is_never()) {
        self.wake.wait(lock, woken);
    } else if (until.which() == deadline::clock::steady) {
        wait_until<std::chrono::steady_clock>(self.wake, lock, until.nanoseconds(), woken);
    } else {
        wait_until<std::chrono::system_clock>(self.wake, lock, until.nanoseconds(), woken);
    }
    if (self.woken) return sleep_result::returned;
    key_hash.remove([&self](const sleeper& other) { return &other == &self; });
    return sleep_result::timed_out;
}

}  // namespace

template <>
sleep_result portable_futex::wait(const futex_word& word, std::uint32_t expected,
                                  const deadline& until) noexcept {
    const errno_guard kept;
    return sleep_until(until, [&](const deadline& end) { return sleep(word, expected, end); });
}

template <>
void portable_futex::wake_one(const void* word) noexcept {
    const errno_guard kept;
    slot& key_hash = slot_of(word);
    const std::lock_guard lock(key_hash.mutex);
    if (sleeper* found = key_hash.remove([word](const sleeper& other) { return other.word == word; })) {
        found->woken = true;
        found->wake.notify_one();
    }
}

template <>
void portable_futex::after_fork() noexcept {
    new (in_use) slots;
}

template <>
void** portable_futex::sleepers() noexcept {
    return &in_use;
}

}  // namespace tocsin::platform

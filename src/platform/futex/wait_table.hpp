// The table of sleepers of the Windows backends that need one, futex_srw.cpp and futex_kernel_event.cpp: queues by the
// address of the word, first in, first out. They differ in the slot's lock and in what a sleeper sleeps on.
//
// Invariants
//   wait_table-1  A sleeper is in its slot's list exactly while it is inside futex_wait, between its look at the word and its
//       return, unless a waker has taken it off. The list changes only under the slot's lock.
//   wait_table-2  A woken sleeper has been taken off the list by its waker, under the lock: a second wake finds the next one.
//   wait_table-3  What a sleeper sleeps on is struck under the lock, which the sleeper takes before it returns: it can't vanish
//       under the waker.
//
// No lost wake-up: the look at the word and the enqueueing happen under the slot's lock, which a waker takes after its
// change of the word. A waker that gets the lock first makes the change visible to the look; one that gets it later
// finds the sleeper.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tocsin::platform {

struct queued_sleeper {
    explicit queued_sleeper(const void* its_word) noexcept : word(its_word) {}

    const void* const word;
    queued_sleeper* next = nullptr;
    bool woken = false;
};

class sleeper_queue {
public:
    void append(queued_sleeper& who) noexcept {
        queued_sleeper** link = &first_;
        while (*link != nullptr) link = &(*link)->next;
        *link = &who;
    }

    void remove(queued_sleeper& who) noexcept {
        queued_sleeper** link = &first_;
        while (*link != &who) link = &(*link)->next;
        *link = who.next;
    }

    // Takes out the longest asleep on the word and marks it woken; or null.
    queued_sleeper* take(const void* word) noexcept {
        for (queued_sleeper** link = &first_; *link != nullptr; link = &(*link)->next) {
            if ((*link)->word != word) continue;
            queued_sleeper* const found = *link;
            *link = found->next;
            found->woken = true;
            return found;
        }
        return nullptr;
    }

private:
    queued_sleeper* first_ = nullptr;
};

// Shared by all copies of the library in a process, so it begins with what it is a table of (shared_table/windows.cpp).
// Never destroyed: waits and wakes are allowed after main.
template <class Slot>
struct wait_table {
    static constexpr std::size_t count = 512;

    const std::uint32_t kind;
    Slot at[count]{};

    Slot& of(const void* word) noexcept {
        const auto mixed = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(word)) *
                           0x9E37'79B9'7F4A'7C15u;  // 2^64 / golden ratio: spreads aligned addresses
        return at[(mixed >> 32) % count];
    }
};

}  // namespace tocsin::platform

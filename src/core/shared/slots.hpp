// SPDX-License-Identifier: Apache-2.0
// The slots of an object that processes share. token_queue.cpp and shared_lock.cpp use them.
//
// Watching. A thread that sleeps on an object also sleeps on owner words of the object's slots (it *watches* them),
// because the kernel wakes one thread that sleeps on the owner word of a thread that dies (dies-1).
//   slots-1  A thread that sleeps watches each slot whose claim has returned, except the slot of the wait itself. Or
//       its word has changed, and whoever has changed it wakes the thread, or the kernel does.
// A thread *arms* its word: it makes the word `waiting`, or loads it and finds it `waiting`. It then looks at all owner
// words, and sleeps on its own word and on those that were not 0. An owner word never becomes 0 again. A claim that
// finds `free_again` needs no more, because an earlier claim of the slot has returned. Any other claim changes the
// word of each thread that waits, and wakes the thread. There is a fence between the claim and these changes, and one
// between arming and the look at the owners ([watch]). So either the thread sees the owner, or the claim sees the armed
// word and changes it, and the thread does not fall asleep on it.
// Only a keeper of waits at several objects may have more owners than fit into its sleep (sleep_list). Then it sleeps
// for at most 10 ms, and looks at all owners again.
//
// So no death is lost, however many die at the same time. A death that concerns others wakes one thread. If that thread
// is killed before it has looked, its death wakes another: a dying thread has left its sleep, so no wake is spent on
// itself (dies-3). This continues until a woken thread lives, or nobody sleeps. If a thread dies in a claim before it
// has woken everybody, the owner word says `died`, and the next claim of the slot wakes them.
//
// Every value here may have been written by a process that means harm. So nothing that is read from the object is used
// as an index or an address, unless it is compared with the caller's own bounds first, and every loop has a bound.
#pragma once

#include "platform/shared/shared_futex.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/shared_layout.hpp>
#include <tocsin/detail/stop_callback.hpp>
#include <tocsin/detail/wait_options.hpp>
#include <tocsin/status.hpp>

#include <atomic>
#include <cstdint>
#include <optional>

namespace tocsin::core {

using detail::shared_header;
using detail::shared_kind;
using detail::shared_parts;
using detail::shared_slot;

// The word of a slot. Upper half: the state in the two lowest bits, above them the ticket of the wait. Lower half: what
// the waiting thread sleeps on. It is `armed` with some of the ticket, or the mark of a thread that has covered it
// (shared_futex.hpp), or what the kernel has made of that mark.
enum class slot_state : std::uint32_t { idle, waiting, granted };

inline constexpr std::uint32_t armed = 1u << 29;  // no number of a thread has this bit: Linux ends at 2^22
inline constexpr std::uint32_t ticket_mask = 0x3FFF'FFFF;

constexpr std::uint32_t lower(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word); }
constexpr std::uint32_t upper(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32); }
constexpr std::uint64_t joined(std::uint32_t above, std::uint32_t below) noexcept {
    return std::uint64_t{above} << 32 | below;
}
constexpr slot_state state_of(std::uint64_t word) noexcept {
    return static_cast<slot_state>(upper(word) & 3);
}
constexpr std::uint32_t ticket_of(std::uint64_t word) noexcept { return upper(word) >> 2; }
constexpr std::uint32_t above(slot_state state, std::uint32_t ticket) noexcept {
    return ticket << 2 | static_cast<std::uint32_t>(state);
}
// Whether ticket `a` is older than `b`. They wrap around.
constexpr bool is_older(std::uint32_t a, std::uint32_t b) noexcept {
    return ((a - b) & ticket_mask) > ticket_mask / 2;
}

// The owner word of a free slot that somebody has owned. That of a slot that nobody has ever owned is 0.
inline constexpr std::uint32_t free_again = platform::sleepers_bit;
// Whether nobody owns a slot whose owner word is this: it is free, or its owner has died.
constexpr bool is_ownerless(std::uint32_t owner) noexcept { return (owner & platform::owner_mask) == 0; }

// Refuse with an exception that names the object and what is wrong.
[[noreturn]] void shared_refuse_no_room(const shared_parts& object);
[[noreturn]] void shared_refuse_endless(const shared_parts& object);
[[noreturn]] void shared_refuse_system();
// Checks that the object is of this kind, version and size, and stamps it if it has no stamp yet. Throws.
void shared_check_stamp(const shared_parts& object);
const char* shared_kind_name(shared_kind which) noexcept;

// Counts the rounds of a loop that ends unless another process keeps changing the object. An honest process changes it
// a few times for each call it makes.
class shared_rounds {
public:
    explicit shared_rounds(const shared_parts& object) noexcept : object_(object) {}
    void next() {
        if (++count_ == max) shared_refuse_endless(object_);
    }

private:
    static constexpr std::uint32_t max = 1u << 22;
    const shared_parts& object_;
    std::uint32_t count_ = 0;
};

// Gives up a slot that this thread owns and covers, whose word is idle.
inline void shared_free_slot(shared_slot& slot) noexcept {
    std::uint32_t mine = platform::shared_futex::thread_mark();
    // [slot-free] with the acquire of the next claim. It fails if somebody has taken the slot for a dead thread's.
    (void)slot.owner.compare_exchange_strong(mine, free_again, std::memory_order_release,
                                             std::memory_order_relaxed);
}

// Claims a slot for this thread, and covers it. Null if there is none.
shared_slot* shared_claim_slot(const shared_parts& object, std::uint32_t& index) noexcept;

// A slot that this thread has claimed and that is covered. The destructor frees the slot.
class claimed_slot {
public:
    explicit claimed_slot(const shared_parts& object);
    ~claimed_slot() {
        if (owned_) free();
    }
    claimed_slot(const claimed_slot&) = delete;
    claimed_slot& operator=(const claimed_slot&) = delete;

    shared_slot& slot() const noexcept { return *slot_; }
    std::uint32_t index() const noexcept { return index_; }
    // Leaves the slot to the caller: it is not freed, and still covered.
    void keep() noexcept { owned_ = false; }

private:
    void free() noexcept {
        shared_free_slot(*slot_);
        platform::shared_futex::uncover();
    }

    std::uint32_t index_ = 0;
    shared_slot* slot_;
    bool owned_ = true;
};

inline std::uint32_t new_ticket(const shared_parts& object) noexcept {
    // no order: whoever has seen another wait draws a later ticket
    return object.header.tickets.fetch_add(1, std::memory_order_relaxed) & ticket_mask;
}

// Ends a sleep when a stop is requested.
class shared_stop {
public:
    explicit shared_stop(const detail::stop_token* token) {
        if (token != nullptr) callback_.emplace(*token, wake{*this});
        has_ = token != nullptr;
    }
    bool is_requested() const noexcept {
        return word_.load(std::memory_order_relaxed) != 0;  // no order: the stop alone matters
    }
    const platform::narrow_word* word() const noexcept { return has_ ? &word_ : nullptr; }

private:
    struct wake {
        void operator()() const noexcept {
            self.word_.store(1, std::memory_order_relaxed);  // no order: as above
            platform::shared_futex::wake_own(self.word_);
        }
        shared_stop& self;
    };
    platform::narrow_word word_{0};
    bool has_ = false;
    std::optional<detail::sound_stop_callback<wake>> callback_;
};

// The words on which a thread sleeps that waits, or that keeps waits. First come those that others change for it: of
// its own slots, of gates, of a stop, the doorbell of a keeper. Behind them come the owners of all slots that have ever
// been owned. If not all fit, owners are left out, so all but a death still ends the sleep at once.
class sleep_list {
public:
    sleep_list() noexcept = default;
    explicit sleep_list(const platform::watched_word& first) noexcept { add(first); }

    // Several waits may be about the same word. There is room for one word of each wait of a keeper.
    void add(const platform::watched_word& one) noexcept {
        if (has(one, 0, owners_)) return;
        if (owners_ == platform::max_watched) {
            lacks_some_ = true;
            return;
        }
        append(words_[owners_]);  // to make room in front of the owners
        words_[owners_++] = one;
    }
    void add_owner(const platform::watched_word& one) noexcept {
        if (!has(one, owners_, count_)) append(one);
    }
    void add_stop(const shared_stop& stop) noexcept {
        if (stop.word() != nullptr) add({.narrow = stop.word(), .expected = 0, .own = true});
    }
    std::size_t count() const noexcept { return count_; }
    // Forgets all but the first `count` words, if those behind them are owners.
    void cut_to(std::size_t count) noexcept { count_ = count; }
    // Whether there were more than a thread can sleep on.
    bool lacks_some() const noexcept { return lacks_some_; }
    platform::shared_sleep sleep(const deadline& until) const noexcept {
        return platform::shared_futex::sleep(words_, count_, until);
    }

private:
    bool has(const platform::watched_word& one, std::size_t from, std::size_t to) const noexcept {
        while (from != to && (words_[from].narrow != one.narrow || words_[from].wide != one.wide)) ++from;
        return from != to;
    }
    void append(const platform::watched_word& one) noexcept {
        if (count_ == platform::max_watched)
            lacks_some_ = true;
        else
            words_[count_++] = one;
    }

    platform::watched_word words_[platform::max_watched];
    std::size_t owners_ = 0;  // where they begin
    std::size_t count_ = 0;
    bool lacks_some_ = false;
};

}  // namespace tocsin::core

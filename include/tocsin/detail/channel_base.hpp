// SPDX-License-Identifier: Apache-2.0
// The part of a channel that does not depend on the type of its items. Why it is correct: src/channel.cpp.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/intrusive_list.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/source.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/stop_token.hpp>
#include <tocsin/word_lock.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tocsin {

// How a transfer on a channel ended.
enum class channel_status : std::uint8_t {
    done,       // an item was sent or received
    closed,     // the channel is closed, and nothing is left to receive
    not_ready,  // a try: the channel is full (sending) or empty (receiving). A source: it has not happened yet
    timed_out,
    stopped,
};

namespace detail {

// A send or a receive that may wait. While the transfer is enlisted, other threads touch it only under both locks of
// its channel.
class channel_transfer : public list_links<channel_transfer> {
public:
    channel_transfer() noexcept = default;
    channel_transfer(const channel_transfer&) = delete;
    channel_transfer& operator=(const channel_transfer&) = delete;

protected:
    ~channel_transfer() = default;

    // Called by each try_wait() with its result. Returns whether the transfer is over: it has happened, or the channel
    // is closed.
    bool tried(channel_status result) noexcept {
        status_ = result;
        if (meets_) [[unlikely]]
            end_meeting();
        return result != channel_status::not_ready;
    }

    channel_status status_ = channel_status::not_ready;

private:
    friend class channel_base;

    void begin_meeting() noexcept;
    TOCSIN_API void end_meeting() noexcept;

    entry_list entries_;  // of one wait; several if the wait names the transfer several times
    plain<const wait_entry*> first_{nullptr};  // one of them, while the transfer is listed
    plain<bool> listed_{false};                // in its channel's list
    plain<bool> claimed_{false};               // by another thread, after it was listed
    bool enlisted_ = false;                    // its wait has been listed, and has not left
    bool meets_ = false;                       // its thread holds the lock for meetings (src/channel.cpp)
};

// Everything of a channel that does not depend on T. Why it is correct: src/channel.cpp.
class channel_base {
public:
    channel_base(const channel_base&) = delete;
    channel_base& operator=(const channel_base&) = delete;

    // Closes the channel, and ends the waits of all senders and receivers. Returns whether this call has closed it:
    // false if it was closed already. Never blocks on a waiter, but coroutines that it releases may run inside it.
    TOCSIN_API bool close() noexcept;
    // Whether the channel is closed. Items may be left.
    [[nodiscard]] bool is_closed() const noexcept {
        return (marks_.load(std::memory_order_acquire) & closed) != 0;  // [closed]
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    // How many items the channel holds. While other threads use the channel, this is an estimate, and at most the
    // capacity.
    [[nodiscard]] std::size_t size() const noexcept {
        // [slot] acquires. The receiver has seen these items sent, so the difference is not negative.
        const std::size_t received = receiving_.passed.load(std::memory_order_acquire);
        const std::size_t items =
            sending_.passed.load(std::memory_order_relaxed) - received;  // no order: any later value will do
        return items < capacity_ ? items : capacity_;
    }

protected:
    static constexpr std::uint32_t closed = 0b001;
    static constexpr std::uint32_t senders_wait = 0b010;
    static constexpr std::uint32_t receivers_wait = 0b100;

    // What the threads of one side use: those that send, or those that receive. Each side has a cache line of its own,
    // so that a sender and a receiver do not slow each other down.
    struct alignas(64) side {
        word_lock<> lock;
        atomic<std::size_t> passed{0};    // how many items have passed this end of the ring, ever
        plain<std::size_t> next_slot{0};  // where the next one goes or is
        plain<std::size_t> limit{0};      // how far `passed` may go, by the last look at the other side
        plain<std::uint32_t> mark{0};     // says in `marks_` that `waiting` is not empty
        intrusive_list<channel_transfer> waiting;  // oldest first
    };

    constexpr explicit channel_base(std::size_t capacity) noexcept : capacity_(capacity) {
        sending_.limit = capacity;
        sending_.mark = senders_wait;
        receiving_.mark = receivers_wait;
    }
    ~channel_base() = default;
    // For the destructor. Takes both locks once, because a call that has given this thread an item may not have freed
    // its lock yet. In checked builds, also ends the program if a thread waits.
    TOCSIN_API void end_calls() noexcept;

    // These look without a lock, and see at least what happened before the call. If may_send() returns false, the ring
    // of slots was full at a moment during the call. If may_receive() returns false, the ring was empty at a moment
    // during the call. Before a wait sleeps, it looks again under both locks, and enlists the transfer before it frees
    // them.
    bool may_send() const noexcept {
        const std::size_t sent =
            sending_.passed.load(std::memory_order_acquire);  // [look] before the next load
        const std::size_t items =
            sent - receiving_.passed.load(std::memory_order_relaxed);  // no order: [look]
        return static_cast<std::ptrdiff_t>(items) < static_cast<std::ptrdiff_t>(capacity_) ||
               (marks() & (closed | receivers_wait)) != 0;
    }
    bool may_receive() const noexcept {
        const std::size_t received =
            receiving_.passed.load(std::memory_order_acquire);                 // [look] before the next load
        return sending_.passed.load(std::memory_order_relaxed) != received ||  // no order: [look]
               (marks() & (closed | senders_wait)) != 0;
    }

    std::uint32_t marks() const noexcept {
        return marks_.load(
            std::memory_order_relaxed);  // no order: under a lock, or a look that proves nothing
    }

    // Called under the lock of the sending side. While it is held, the receiving side can only make more room.
    bool has_room() noexcept { return may_pass(sending_, receiving_, capacity_); }
    // Called under the lock of the receiving side. While it is held, the sending side can only add items.
    bool has_items() noexcept { return may_pass(receiving_, sending_, 0); }
    // The slot that an item is to be moved to or from. After the move, the caller calls end_move().
    std::size_t begin_move(side& at) noexcept {
        const std::size_t slot = at.next_slot;
        at.next_slot = slot + 1 == capacity_ ? 0 : slot + 1;
        return slot;
    }
    static void end_move(side& at) noexcept {
        // [slot] releases the slot to the other side.
        at.passed.store(at.passed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    // Holds both locks.
    class both_locked {
    public:
        explicit both_locked(channel_base& of) noexcept
            : sending_(of.sending_.lock), receiving_(of.receiving_.lock) {}

    private:
        const std::lock_guard<word_lock<>> sending_;
        const std::lock_guard<word_lock<>> receiving_;
    };

    // Called under both locks. Claims the oldest transfer of this side whose wait has not ended, takes it off the
    // list, and returns it. The transfer has then happened. Returns null if there is none. The caller moves the item.
    // After it has freed the locks, it wakes `freed`.
    channel_transfer* claim(side& of, wake_list& freed) noexcept {
        return (marks() & of.mark) == 0 ? nullptr : claim_oldest(of, freed);
    }

    // Called by a thread that tries a transfer, as soon as it has agreed with another thread or has found none.
    static void agreed(channel_transfer* own) noexcept {
        if (own != nullptr && own->meets_) own->end_meeting();
    }

    // enlist() takes both locks. So does delist(), unless the transfer is not enlisted or another thread has claimed
    // it.
    TOCSIN_API bool enlist(side& mine, channel_transfer& transfer, wait_entry& entry) noexcept;
    TOCSIN_API void delist(side& mine, channel_transfer& transfer, wait_entry& entry) noexcept;

    // Waits for one transfer, and returns how it ended. `transfer` is that transfer as a source, and `status` is its
    // status.
    TOCSIN_API static channel_status wait(const source& transfer, const channel_status& status,
                                          const limits& how) noexcept;

    side sending_;
    side receiving_;

private:
    TOCSIN_API channel_transfer* claim_oldest(side& of, wake_list& freed) noexcept;
    [[noreturn]] void die(const char* reason) const noexcept;
    void append(channel_transfer& transfer, wait_entry& entry, side& to) noexcept;
    static bool has_other_waits(const side& in, const wait_entry& than) noexcept;

    static bool may_pass(side& mine, const side& other, std::size_t ahead) noexcept {
        const std::size_t passed = mine.passed.load(std::memory_order_relaxed);  // no order: the lock
        if (passed != mine.limit) return true;
        // [slot] acquires the slots that the other side has used.
        mine.limit = other.passed.load(std::memory_order_acquire) + ahead;
        return passed != mine.limit;
    }
    void set_mark(std::uint32_t mark, bool on) noexcept {
        marks_.store(on ? marks() | mark : marks() & ~mark,
                     std::memory_order_relaxed);  // no order: the locks
    }

    alignas(64) atomic<std::uint32_t> marks_{0};
    const std::size_t capacity_;
};

// The limits of a wait from what its caller gave: nothing, a stop token, a spin policy, or a token and a policy.
inline limits channel_limits(const deadline& until, spin_policy spin = {}) noexcept {
    return {.until = until, .spin = spin};
}
inline limits channel_limits(const deadline& until, const stop_token& stop, spin_policy spin = {}) noexcept {
    return {.until = until, .stop = stop, .spin = spin};
}

}  // namespace detail
}  // namespace tocsin

// SPDX-License-Identifier: Apache-2.0
// Channels: threads send items of one type, and other threads receive them, first in, first out.
//
//     tocsin::channel<job> jobs(64);
//     std::jthread worker([&] { while (auto next = jobs.receive()) next->run(); });
//     jobs.send(job(1));
//     jobs.close();          // the worker receives what is left, and then leaves its loop
//
// A channel holds up to `capacity` items. A channel of capacity 0 holds none: it is a rendezvous, at which a send and a
// receive meet. Any number of threads may send and receive.
//
// Sending and receiving are sources. A wait_any() over several of them, and over events, sockets and timers, makes
// exactly one of them happen, and the result says which:
//
//     auto next = jobs.receiving();
//     auto report = results.sending(result);
//     switch (tocsin::wait_any({.until = 1s}, next, report, shutdown).index) {
//         case 0: next ? next->run() : finish(); break;   // without an item: the channel is closed and empty
//         case 1: ...                                     // `result` has been moved into the channel
//     }
//
// Coroutines co_await the same objects: co_await tocsin::async_wait(next).
//
// Order
//   A receiver gets the items in the order in which the channel accepted them. Waiting receivers are served first in,
//   first out, and so are waiting senders. A thread that arrives later never overtakes a thread that sleeps.
//
// Exactness
//   A transfer, that is, a send or a receive, happens completely or not at all. If a wait for a transfer ends by a
//   deadline, a stop or another source, that transfer has not happened. If such a wait was to send an item and the item
//   is a T, the item is still the caller's, not moved from. If the item is anything else, a send makes a T from it
//   before it tries. So an rvalue of another type may be used up even if nothing is sent. If a transfer has happened,
//   the wait says so, even after its deadline.
//
// Closing
//   close() ends sending. Sends that are waiting at that moment, and all later ones, return `closed`. Their items, if
//   these are Ts, stay with the callers. Receives take what is left, and then return `closed`. On a closed channel, a
//   sending() is ready at once, and its status() is then `closed`. A receiving() is ready at once, too: while items are
//   left, it receives one, and afterwards its status() is `closed`. Sending on a closed channel is not a mistake.
//
// Items
//   T is an object type whose move constructor and destructor do not throw: a transfer that two threads have agreed on
//   can't be undone. (For another type, send std::unique_ptr<T>.) T need not be copyable. Items are moved, and items
//   that have been moved from are destroyed, under a short lock of the channel. So T's move constructor and destructor
//   must not call a channel, and should not block. Items that are still in the channel when it is destroyed are
//   destroyed with it.
//
// Memory
//   What a thread did before it sent an item is visible to the thread that receives this item. At a rendezvous, what
//   the receiver did before the transfer is also visible to the sender after the transfer. What a thread did before
//   close() is visible to a thread whose send or receive returns `closed`.
//
// Cost
//   While nobody waits, a transfer costs a short lock (two read-modify-writes) and the move of the item. It makes no
//   system call unless several threads want the lock at once. While threads wait, and after close(), a transfer takes
//   three short locks, two of them together. In wait_any(), a look at a transfer that can't happen costs three loads. A
//   wait that sleeps takes up to six more short locks, and one system call to sleep. A channel with a capacity
//   allocates its slots once, in the constructor; nothing else allocates. What send() or receive() needs while it waits
//   is on the waiting thread's stack. A channel is 192 bytes on 64-bit systems.
//
// Lifetime
//   Destroy a channel once no other thread is inside a call on it, or will call it. A thread that has received an item
//   may destroy the channel even if the call that sent this item has not returned yet, unless that call is a wait_any()
//   that names this channel more than once. Likewise, a thread whose send or receive returned `closed` may destroy the
//   channel even if the call of close() has not returned yet. Checked builds stop the program if a channel is destroyed
//   while threads wait on it.
//
// Restrictions
//   - Do not call a channel in a signal handler. In the child of a fork, do not use a channel that threads of the
//     parent were using.
//   - wait_all() and wait_set refuse sending() and receiving() with std::invalid_argument. wait_all() needs sources
//     that stay ready, but another thread may take an item at any time. A wait_set takes no custom sources
//     (source.hpp).
//   - Locks guard each channel, and a thread holds them for some nanoseconds at a time. If a thread loses its processor
//     while it holds one, it delays others. These then sleep, and do not spin for long.
//   - A sending() or receiving() may be named in one wait at a time, once or several times. The program ends with a
//     message if the library sees one in two waits.
//   - A wait that is about to sleep at a rendezvous, and finds that its counterpart has just been enlisted there, takes
//     a lock for some nanoseconds. All rendezvous of the process share this lock, even if the process has several
//     copies of the library.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/channel_base.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/source.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace tocsin {

template <class T>
class channel;

namespace detail {

// A receive. `into` becomes the item.
template <class T>
class channel_receiving : public channel_transfer {
public:
    channel_receiving(channel<T>& from TOCSIN_LIFETIMEBOUND,
                      std::optional<T>& into TOCSIN_LIFETIMEBOUND) noexcept
        : channel_(from), into_(into) {}

    // What makes it a source (source.hpp). Only waits call these three.
    bool try_wait() noexcept;
    bool enlist(wait_entry& entry) noexcept { return channel_.enlist(channel_.receiving_, *this, entry); }
    void delist(wait_entry& entry) noexcept { channel_.delist(channel_.receiving_, *this, entry); }
    source_label label() const noexcept { return {"channel receive", &channel_}; }

    // How the receive ended: `done` or `closed`.
    channel_status status() const noexcept { return status_; }

private:
    friend class channel<T>;

    channel<T>& channel_;
    std::optional<T>& into_;
};

// A base class, so that the item exists before the receive that refers to it.
template <class T>
class channel_item {
protected:
    std::optional<T> item_;
};

}  // namespace detail

// What a receive returns: an item, or the reason why there is none.
template <class T>
class [[nodiscard]] received {
public:
    explicit operator bool() const noexcept { return item_.has_value(); }
    T& operator*() & noexcept { return *item_; }
    const T& operator*() const& noexcept { return *item_; }
    T&& operator*() && noexcept { return *std::move(item_); }
    T* operator->() noexcept { return std::addressof(*item_); }
    const T* operator->() const noexcept { return std::addressof(*item_); }

    // `done` if there is an item, otherwise the reason why there is none.
    channel_status status() const noexcept { return status_; }

private:
    friend class channel<T>;

    received() noexcept = default;

    std::optional<T> item_;
    channel_status status_ = channel_status::not_ready;
};

// A send as a source, made by channel::sending(). It serves one wait at a time. Each wait with it is a new send.
template <class T>
class [[nodiscard]] send_transfer : public detail::channel_transfer {
public:
    // How the send ended: `done` or `closed`. Call it after a wait whose result names this send.
    channel_status status() const noexcept { return status_; }

    // For the waits (custom_source in source.hpp).
    bool try_wait() noexcept {
        return tried(channel_.may_send() ? channel_.put(item_, this) : channel_status::not_ready);
    }
    bool enlist(wait_entry& entry) noexcept { return channel_.enlist(channel_.sending_, *this, entry); }
    void delist(wait_entry& entry) noexcept { channel_.delist(channel_.sending_, *this, entry); }
    source_label label() const noexcept { return {"channel send", &channel_}; }

private:
    friend class channel<T>;

    send_transfer(channel<T>& to TOCSIN_LIFETIMEBOUND, T& item TOCSIN_LIFETIMEBOUND) noexcept
        : channel_(to), item_(item) {}

    channel<T>& channel_;
    T& item_;
};

// A receive as a source, made by channel::receiving(). It serves one wait at a time. Each wait with it is a new
// receive, which destroys the item of an earlier one. If a coroutine is destroyed after its receive has happened, the
// item is destroyed with this object.
template <class T>
class [[nodiscard]] receive_transfer : detail::channel_item<T>, public detail::channel_receiving<T> {
public:
    // After a wait whose result names this receive: whether it has received an item. If not, the channel is closed, and
    // nothing is left. (After a wait whose result names another source, this object may still have the item of an
    // earlier receive.)
    explicit operator bool() const noexcept { return this->item_.has_value(); }
    T& operator*() noexcept { return *this->item_; }
    T* operator->() noexcept { return std::addressof(*this->item_); }

private:
    friend class channel<T>;

    explicit receive_transfer(channel<T>& from TOCSIN_LIFETIMEBOUND) noexcept
        : detail::channel_receiving<T>(from, this->item_) {}
};

// A channel. Its members that do not depend on T, such as close() and size(), are in detail/channel_base.hpp.
template <class T>
class channel : public detail::channel_base {
    static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T> && !std::is_array_v<T>,
                  "tocsin: the items of a channel are objects that can be moved");
    static_assert(
        std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
        "tocsin: a channel moves its items after two threads have agreed on it, so the moves and the "
        "destructor of T must not throw: declare them noexcept, or send std::unique_ptr<T>");

public:
    using value_type = T;

    // Allocates the slots: throws std::bad_alloc (std::bad_array_new_length if there can't be so many). A rendezvous,
    // with a capacity of 0, allocates nothing, and is constant-initialized.
    constexpr explicit channel(std::size_t capacity)
        : channel_base(capacity), slots_(capacity == 0 ? nullptr : std::allocator<T>().allocate(capacity)) {}
    ~channel() {
        end_calls();
        while (has_items()) destroy_first();
        if (slots_ != nullptr) std::allocator<T>().deallocate(slots_, capacity());
    }

    // Sends `item`: a T, or something from which a T is made (a copy, if it is an lvalue). Waits while the channel is
    // full, or at a rendezvous until a receiver takes the item. Returns `done` or `closed`. If a T is given as an
    // rvalue, it is moved from if the result is `done`, and only then. `how` is nothing, a stop token, a spin policy
    // (spin.hpp), or a token and a policy. With a token, the result may be `stopped`. If the channel has room, the send
    // takes place even if the stop was requested before.
    template <class Item = T, class... How>
        requires std::convertible_to<Item, T>
    channel_status send(Item&& item, const How&... how) {
        return send_within(std::forward<Item>(item), deadline::never(), how...);
    }
    // The same, but these return `timed_out` if the time passes first: a duration from now, or a time point of any
    // clock (deadline.hpp). With a duration of zero or less, or a time in the past, a call only tries.
    template <class Item = T, class Rep, class Period, class... How>
        requires std::convertible_to<Item, T>
    [[nodiscard]] channel_status send_for(Item&& item, std::chrono::duration<Rep, Period> longest,
                                          const How&... how) {
        return send_within(std::forward<Item>(item), longest, how...);
    }
    template <class Item = T, std::convertible_to<deadline> When, class... How>
        requires std::convertible_to<Item, T>
    [[nodiscard]] channel_status send_until(Item&& item, const When& until, const How&... how) {
        return send_within(std::forward<Item>(item), until, how...);
    }
    // Sends without waiting. Returns `done`, `closed`, or `not_ready` if the channel is full (a rendezvous: if no
    // receiver waits).
    template <class Item = T>
        requires std::convertible_to<Item, T>
    [[nodiscard]] channel_status try_send(Item&& item) {
        return with(std::forward<Item>(item), [&](T& own) noexcept { return put(own); });
    }

    // Receives an item. Waits while the channel is empty, or at a rendezvous until a sender gives one. The result has
    // an item, or none if the channel is closed and nothing is left. The variants are those of send.
    template <class... How>
    [[nodiscard]] received<T> receive(const How&... how) noexcept {
        return receive_within(deadline::never(), how...);
    }
    template <class Rep, class Period, class... How>
    [[nodiscard]] received<T> receive_for(std::chrono::duration<Rep, Period> longest,
                                          const How&... how) noexcept {
        return receive_within(longest, how...);
    }
    template <std::convertible_to<deadline> When, class... How>
    [[nodiscard]] received<T> receive_until(const When& until, const How&... how) noexcept {
        return receive_within(until, how...);
    }
    [[nodiscard]] received<T> try_receive() noexcept {
        received<T> result;
        result.status_ = take(result.item_);
        return result;
    }

    // For wait_any() and co_await. The transfer refers to the channel and to `item`. A send that happens moves from
    // `item`.
    send_transfer<T> sending(T& item TOCSIN_LIFETIMEBOUND) noexcept TOCSIN_LIFETIMEBOUND {
        return send_transfer<T>(*this, item);
    }
    receive_transfer<T> receiving() noexcept TOCSIN_LIFETIMEBOUND { return receive_transfer<T>(*this); }

private:
    friend class send_transfer<T>;
    friend class detail::channel_receiving<T>;

    using receiving_type = detail::channel_receiving<T>;

    // Calls `send` with the item itself if it is a T that may be moved from, else with a T made from it.
    template <class Item, class Send>
    static channel_status with(Item&& item, Send send) {
        if constexpr (std::same_as<Item, T>) {
            return send(item);
        } else {
            T own(std::forward<Item>(item));
            return send(own);
        }
    }

    // Both read the clock only if they have to wait.
    template <class Item, class Limit, class... How>
    channel_status send_within(Item&& item, const Limit& limit, const How&... how) {
        return with(std::forward<Item>(item), [&](T& own) noexcept {
            const channel_status tried = put(own);
            if (tried != channel_status::not_ready) return tried;
            send_transfer<T> transfer(*this, own);
            return wait(transfer, transfer.status_, detail::channel_limits(limit, how...));
        });
    }
    template <class Limit, class... How>
    received<T> receive_within(const Limit& limit, const How&... how) noexcept {
        received<T> result = try_receive();
        if (result.status_ == channel_status::not_ready) {
            receiving_type transfer(*this, result.item_);
            result.status_ = wait(transfer, transfer.status_, detail::channel_limits(limit, how...));
        }
        return result;
    }

    // `own` is the transfer of a wait that tries it, or null.
    channel_status put(T& item, detail::channel_transfer* own = nullptr) noexcept {
        sending_.lock.lock();
        if (marks() != 0) [[unlikely]] {
            sending_.lock.unlock();
            return put_slow(item, own);
        }
        const bool room = has_room();
        if (room) push(item);
        sending_.lock.unlock();
        return room ? channel_status::done : channel_status::not_ready;
    }
    channel_status take(std::optional<T>& into, detail::channel_transfer* own = nullptr) noexcept {
        receiving_.lock.lock();
        if (marks() != 0) [[unlikely]] {
            receiving_.lock.unlock();
            return take_slow(into, own);
        }
        const bool items = has_items();
        if (items) take_first(into);
        receiving_.lock.unlock();
        return items ? channel_status::done : channel_status::not_ready;
    }

    // While threads wait, or after close().
    channel_status put_slow(T& item, detail::channel_transfer* own) noexcept {
        wake_list freed;
        channel_status status = channel_status::done;
        {
            const both_locked held(*this);
            if ((marks() & closed) != 0) {
                status = channel_status::closed;
            } else if (auto* const receiver = static_cast<receiving_type*>(claim(receiving_, freed))) {
                receiver->into_.emplace(std::move(item));  // channel-2: no older item is in the slots
                receiver->status_ = channel_status::done;
            } else if (has_room()) {
                push(item);
            } else {
                status = channel_status::not_ready;
            }
        }
        agreed(own);  // before a coroutine or an executor runs
        freed.wake();
        return status;
    }
    channel_status take_slow(std::optional<T>& into, detail::channel_transfer* own) noexcept {
        wake_list freed;
        channel_status status = channel_status::done;
        {
            const both_locked held(*this);
            const bool items = has_items();
            if (items) take_first(into);
            if (auto* const sender = static_cast<send_transfer<T>*>(claim(sending_, freed))) {
                items&& has_room() ? push(sender -> item_) : void(into.emplace(std::move(sender->item_)));
                sender->status_ = channel_status::done;
            } else if (!items) {
                status = (marks() & closed) != 0 ? channel_status::closed : channel_status::not_ready;
            }
        }
        agreed(own);  // before a coroutine or an executor runs
        freed.wake();
        return status;
    }

    void push(T& item) noexcept {
        std::construct_at(slots_ + begin_move(sending_), std::move(item));
        end_move(sending_);
    }
    void take_first(std::optional<T>& into) noexcept {
        T* const first = slots_ + begin_move(receiving_);
        into.emplace(std::move(*first));
        std::destroy_at(first);
        end_move(receiving_);
    }
    void destroy_first() noexcept {
        std::destroy_at(slots_ + begin_move(receiving_));
        end_move(receiving_);
    }

    T* const slots_;
};

template <class T>
bool detail::channel_receiving<T>::try_wait() noexcept {
    into_.reset();
    return tried(channel_.may_receive() ? channel_.take(into_, this) : channel_status::not_ready);
}

}  // namespace tocsin

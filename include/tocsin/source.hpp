// SPDX-License-Identifier: Apache-2.0
// What wait_any() and wait_all() (wait.hpp) wait for: events, semaphores, latches, wait groups, a barrier's tokens,
// sends and receives of channels (channel.hpp), descriptors (fd.hpp), timers (wait.hpp), tickers (ticker.hpp), and any
// custom source, a type with three operations:
//
//     class countdown {
//     public:
//         bool try_wait() noexcept;                          // whether it is ready (other types are taken by it)
//         bool enlist(tocsin::wait_entry& entry) noexcept;   // appends `entry` to `waiting_`; false if ready already
//         void delist(tocsin::wait_entry& entry) noexcept;   // removes `entry`, if it is still in `waiting_`
//         static constexpr bool stays_ready = true;          // once ready, it stays ready (for wait_all)
//
//         void count_down() {
//             tocsin::wake_list freed;
//             {
//                 const std::lock_guard lock(mutex_);
//                 if (--left_ == 0) freed = waiting_.notify_all();
//             }
//             freed.wake();
//         }
//     };
//
// examples/countdown has the complete class. (It is an example: tocsin::latch in latch.hpp is a ready-made countdown.)
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/event_use.hpp>
#include <tocsin/detail/intrusive_list.hpp>
#include <tocsin/detail/repetition.hpp>
#include <tocsin/queue_order.hpp>
#include <tocsin/readiness.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tocsin {

class entry_list;
class wake_list;

namespace core {
class multi_wait;
class release_list;
struct wait_node;
}  // namespace core

namespace detail {

// How to wait for a source whose waiters queue in the lot, the library's table of waiters. `object` is the byte of an
// event (event_state.hpp) or the word of a semaphore (semaphore.hpp), and the waiters wait on its address. The
// functions marked "locked" are called under the lock of that address's bucket. Why it is correct:
// src/core/wait/multi_wait.cpp.
struct lot_source {
    std::uint8_t wait_kind;                            // core::wait_kind
    bool (*try_take)(void* object) noexcept;           // if it is ready, takes it
    bool (*looks_ready)(const void* object) noexcept;  // a look that takes nothing
    bool (*hold)(void* object) noexcept;               // locked: if it is ready, keeps it so
    void (*take_held)(void* object) noexcept;          // locked: takes what is held
    void (*unhold)(void* object) noexcept;             // locked: ends the hold, takes nothing
    // Locked: notes that a node is about to be queued, and returns true. If the source is ready and `even_if_ready` is
    // false, does nothing and returns false.
    bool (*mark_parked)(void* object, bool even_if_ready) noexcept;
    void (*clear_parked)(void* object) noexcept;         // locked: no node is queued any more
    void (*give_back)(void* object) noexcept = nullptr;  // makes it ready again; null: it stays ready
    event_use use = event_use::event;
    // A bit of the object's first byte, on whenever the source is ready. A first look reads it without a call. 0: none.
    std::uint8_t ready_bit = 0;
    queue_order order = queue_order::arrival;
};

// The part of a first look that needs no call. False: the source is not ready. True: it may be, and try_take tells. (A
// wait for all may be taking it at this moment.)
inline bool may_be_ready(const lot_source& how, const void* object) noexcept {
    // [all-taken] acquires: a thread that finds this event taken by a wait for all sees that wait's other events held.
    return how.ready_bit == 0 ||
           (static_cast<const atomic<std::uint8_t>*>(object)->load(std::memory_order_acquire) &
            how.ready_bit) != 0;
}

// Lets an event's set(wake_list&) add to a wake_list.
struct left_wakes {
    static void add(wake_list& to, core::release_list&& freed) noexcept;
};

}  // namespace detail

// The entry of one wait in the entry_list of one source. It is valid from enlist() until delist() returns.
class wait_entry : public detail::list_links<wait_entry> {
public:
    wait_entry(core::multi_wait& wait TOCSIN_LIFETIMEBOUND, std::uint32_t index) noexcept
        : wait_(&wait), index_(index) {}
    wait_entry(const wait_entry&) = delete;
    wait_entry& operator=(const wait_entry&) = delete;

    // Whether both are entries of one wait. A source at which two waits meet (channel.hpp) never pairs a wait with
    // itself.
    bool is_of_same_wait(const wait_entry& other) const noexcept { return wait_ == other.wait_; }

private:
    friend class entry_list;
    friend class wake_list;

    core::multi_wait* wait_;
    std::uint32_t index_;
    detail::plain<bool> listed_{false};
};

// A list of waits that have been notified, and whose threads and coroutines are still to be released. The notify
// functions of entry_list return such a list or add to one, and an event's set(wake_list&) adds to one. The owner of
// the list calls wake() once, under no lock. Until then no wait in the list returns, and nobody may destroy a coroutine
// or an operation whose wait is in the list. Each wait in the list already has what it waited for, unless it waits for
// all of several sources: see entry_list::notify_one().
//
//     tocsin::wake_list freed;
//     {
//         const std::lock_guard lock(mutex);
//         for (reader& each : readers) each.may_go.set(freed);
//     }
//     freed.wake();      // wakes all these readers
class [[nodiscard]] wake_list {
public:
    wake_list() noexcept = default;
    wake_list(wake_list&& from) noexcept
        : entries_(std::move(from.entries_)),
          nodes_(std::move(from.nodes_)),
          last_coroutine_(std::exchange(from.last_coroutine_, nullptr)),
          differs_(std::exchange(from.differs_, false)) {}
    // This list must be empty. To add to a list that is not empty, call append().
    wake_list& operator=(wake_list&& from) noexcept {
        if (!empty()) [[unlikely]]
            wake_dropped(TOCSIN_CHECKED);
        entries_ = std::move(from.entries_);
        nodes_ = std::move(from.nodes_);
        last_coroutine_ = std::exchange(from.last_coroutine_, nullptr);
        differs_ = std::exchange(from.differs_, false);
        return *this;
    }
    // Destroying a list that is not empty is a mistake, and so is assigning to one. Checked builds then stop the
    // program; other builds call wake().
    ~wake_list() {
        if (!empty()) [[unlikely]]
            wake_dropped(TOCSIN_CHECKED);
    }

    // Whether it holds no waits.
    bool empty() const noexcept { return entries_.empty() && nodes_.empty(); }

    // Moves the waits of `more` to this list. `more` is empty afterwards.
    TOCSIN_API void append(wake_list&& more) noexcept;

    // Releases all waits in the list (a wait for all its sources only if all are ready), and empties the list. Threads
    // that waited for events wake each other, so the calling thread makes only a few system calls for them, however
    // many there are. Coroutines without an executor are resumed after everybody else has been released: in this call,
    // unless this thread is already running such a coroutine (await.hpp).
    TOCSIN_API void wake() noexcept;

private:
    friend class entry_list;
    friend struct detail::left_wakes;

    TOCSIN_API void wake_dropped(bool checked) noexcept;

    detail::intrusive_list<wait_entry> entries_;     // waits for custom sources
    detail::intrusive_list<core::wait_node> nodes_;  // waits for events: coroutines first
    core::wait_node* last_coroutine_ = nullptr;
    bool differs_ = false;  // whether the threads may differ in urgency
};

// The queue of the waits for one source, first in, first out. It owns and allocates nothing. Guard it with a lock of
// your own: enlist(), delist() and every function that makes the source ready take that lock.
class entry_list {
public:
    entry_list() noexcept = default;
    entry_list(const entry_list&) = delete;
    entry_list& operator=(const entry_list&) = delete;

    // Whether nobody waits. Hold the lock of the source when you call this or any other function of this class.
    bool empty() const noexcept { return entries_.empty(); }
    TOCSIN_API void append(wait_entry& entry) noexcept;
    TOCSIN_API void remove(wait_entry& entry) noexcept;  // does nothing if it was removed before

    // Notifies the wait that has queued longest, and returns a list with only that wait. Passes over a wait_any() that
    // has ended already, for instance by a timeout. If no wait is left, returns an empty list, and nobody has taken the
    // source. (wait_any() and wait_all() here mean the waits of coroutines, too.)
    // - A notified wait_any() has taken this source, and wake() on the list ends it.
    // - A notified wait_all() has taken nothing yet: it only counts this source as ready. wake() ends it only if all
    //   its sources are ready by then. So this source must stay ready (`custom_source` below).
    TOCSIN_API wake_list notify_one() noexcept;
    // Does the same up to `max` times. Adds the waits to `freed`, and returns how many it added.
    TOCSIN_API std::size_t notify_n(std::size_t max, wake_list& freed) noexcept;
    // Notifies all waits. For a source that stays ready.
    TOCSIN_API wake_list notify_all() noexcept;

private:
    detail::intrusive_list<wait_entry> entries_;
};

// How diagnose.hpp shows a wait for a source: as a wait for a thing of this type, at this address.
struct source_label {
    const char* type;     // such as "channel receive"; never freed
    const void* address;  // of what the source belongs to, such as the channel
};

// A type with the operations try_wait(), enlist() and delist(). No operation may throw, block for long, or call back
// into the wait that called it. The library holds no lock of its own when it calls them. If a type declares that it
// `stays_ready`, an object of the type must not become unready again while a thread waits for it. Of custom sources,
// wait_all() accepts only those that declare this. A call that names an object of another type does not compile,
// and a call with one in its list throws. If a type has a member function `source_label label() const noexcept`,
// diagnose.hpp shows a wait for an object of the type under this label. Otherwise it shows a wait for a "source" at the
// object's address. A wait calls label() when it is enlisted.
template <class T>
concept custom_source = requires(T& object, wait_entry& entry) {
    { object.try_wait() } noexcept -> std::same_as<bool>;
    { object.enlist(entry) } noexcept -> std::same_as<bool>;
    { object.delist(entry) } noexcept -> std::same_as<void>;
};

namespace detail {

// A concept with a name, because Clang 17 crashes where a lambda in a variable template has this requirement.
template <class T>
concept labelled = requires(const T& object) {
    { object.label() } noexcept -> std::same_as<source_label>;
};

}  // namespace detail

// Refers to one thing to wait for. Converts implicitly from events, semaphores, latches, a barrier's tokens,
// process_end, signal_source and every custom source.
class source {
public:
    // What a source is. `lot`: a source for which the library itself queues the waiters, such as an event or a
    // semaphore.
    enum class kind : std::uint8_t { lot, timer, descriptor, custom };

    // How a wait uses a custom source. The constructor for such objects fills it in.
    struct operations {
        // Calls the object's try_wait().
        bool (*try_take)(void* object) noexcept;
        // Calls the object's enlist().
        bool (*enlist)(void* object, wait_entry& entry) noexcept;
        // Calls the object's delist().
        void (*delist)(void* object, wait_entry& entry) noexcept;
        // Whether the object's type declares that it stays ready, as wait_all() asks.
        bool stays_ready;
        // Calls the object's label(), or is null if the type has none.
        source_label (*label)(const void* object) noexcept = nullptr;
        // Makes ready again what a wait had taken that was then destroyed, or is null if it stays taken. If not null,
        // a wait may call try_take() again and again before it enlists.
        void (*give_back)(void* object) noexcept = nullptr;
    };

    // An empty source, for arrays that are filled at run time. A wait that is given one throws std::invalid_argument
    // (wait.hpp has an exception).
    source() noexcept : kind_(kind::custom) {}
    template <custom_source T>
    source(T& object TOCSIN_LIFETIMEBOUND) noexcept  // implicit on purpose
        : kind_(kind::custom), object_(&object), operations_(&custom_operations<T>) {}
    source(void* object TOCSIN_LIFETIMEBOUND, const operations& how TOCSIN_LIFETIMEBOUND) noexcept
        : kind_(kind::custom), object_(object), operations_(&how) {}
    source(void* object TOCSIN_LIFETIMEBOUND, const detail::lot_source& how TOCSIN_LIFETIMEBOUND) noexcept
        : kind_(kind::lot), object_(object), lot_(&how) {}
    explicit source(const deadline& when) noexcept : kind_(kind::timer), when_(when) {}
    explicit source(detail::repetition& ticks TOCSIN_LIFETIMEBOUND) noexcept
        : kind_(kind::timer), object_(&ticks) {}
    source(int descriptor, readiness asked) noexcept
        : kind_(kind::descriptor), asked_(asked), descriptor_(descriptor) {}

    // What the library asks a source. empty(), what(), object() and has_ready_bit() may be called for every source,
    // each of the other functions only for a source of its kind.
    bool empty() const noexcept { return kind_ == kind::custom && operations_ == nullptr; }
    kind what() const noexcept { return kind_; }
    void* object() const noexcept { return object_; }
    const operations& custom() const noexcept { return *operations_; }
    const detail::lot_source& lot() const noexcept { return *lot_; }
    // For a custom source. The label refers to the object, not to this source, so `this` has no mark.
    source_label label() const noexcept {
        if (operations_->label != nullptr) return operations_->label(object_);
        return {"source", object_};
    }
    bool has_ready_bit() const noexcept { return kind_ == kind::lot && lot_->ready_bit != 0; }
    // The deadline of a timer. For a ticker, it moves when a wait takes the ticker.
    const deadline& when() const noexcept { return repeats() != nullptr ? repeats()->next : when_; }
    // The ticks of a timer that repeats; otherwise null.
    detail::repetition* repeats() const noexcept {
        return kind_ == kind::timer ? static_cast<detail::repetition*>(object_) : nullptr;
    }
    int descriptor() const noexcept { return descriptor_; }
    readiness asked() const noexcept { return asked_; }

private:
    template <class T>
    static constexpr bool says_it_stays = [] {
        if constexpr (requires { T::stays_ready; }) {
            return T::stays_ready;
        } else {
            return false;
        }
    }();

    template <class T>
    static constexpr auto label_of = [] {
        source_label (*function)(const void*) noexcept = nullptr;
        if constexpr (detail::labelled<T>)
            function = [](const void* object) noexcept { return static_cast<const T*>(object)->label(); };
        return function;
    }();

    template <class T>
    static constexpr operations custom_operations{
        [](void* object) noexcept { return static_cast<T*>(object)->try_wait(); },
        [](void* object, wait_entry& entry) noexcept { return static_cast<T*>(object)->enlist(entry); },
        [](void* object, wait_entry& entry) noexcept { static_cast<T*>(object)->delist(entry); },
        says_it_stays<T>, label_of<T>};

    kind kind_;
    readiness asked_ = readiness::none;
    int descriptor_ = -1;
    void* object_ = nullptr;
    const operations* operations_ = nullptr;
    const detail::lot_source* lot_ = nullptr;
    deadline when_ = deadline::never();
};

// A source whose type says that it is a descriptor: what readable(), writable() and ready() return (fd.hpp). It is a
// `source` with the same value, so a list of `source` takes it. If a wait for all is given one outside a list, it does
// not compile.
class descriptor_source : public source {
public:
    // As in a custom source: wait_all() refuses it.
    static constexpr bool stays_ready = false;

    // See fd.hpp.
    descriptor_source(int descriptor, readiness asked) noexcept : source(descriptor, asked) {}
};

}  // namespace tocsin

// What wait_any() and wait_all() (wait.hpp) wait for: events, descriptors (fd.hpp), timers (wait.hpp), and any type of
// your own that has three operations:
//
//     class countdown {
//     public:
//         bool try_wait() noexcept;                          // takes it if it is ready
//         bool enlist(tocsin::wait_entry& entry) noexcept;   // appends `entry` to the list; false if it is ready
//         void delist(tocsin::wait_entry& entry) noexcept;   // removes `entry`, if it is still in the list
//         static constexpr bool stays_ready = true;          // nobody can make it unready again (for wait_all)
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
// examples/countdown has the complete class.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/intrusive_list.hpp>
#include <tocsin/readiness.hpp>

#include <concepts>
#include <cstdint>
#include <utility>

namespace tocsin {

class waiting_list;
class wake_list;

namespace core {
class multi_wait;
}

namespace detail {

// How to wait for a source whose waiters queue in the lot. `object` is the byte of an event (event_state.hpp), and the
// waiters wait on its address. The functions marked "locked" are called under the lock of that address's bucket. The
// argument: src/core/wait/multi_wait.cpp.
struct lot_source {
    std::uint8_t wait_kind;                            // core::wait_kind
    bool (*try_take)(void* object) noexcept;           // takes it if it is ready
    bool (*looks_ready)(const void* object) noexcept;  // a peek
    bool (*hold)(void* object) noexcept;               // locked: if ready, nobody else changes it until ...
    void (*take_held)(void* object) noexcept;          // locked: ... it is taken,
    void (*unhold)(void* object) noexcept;             // locked: or left as it was
    // Locked: a node is about to be queued. If the source is ready and not `even_if_ready`, returns false and does
    // nothing.
    bool (*mark_parked)(void* object, bool even_if_ready) noexcept;
    void (*clear_parked)(void* object) noexcept;         // locked: no node is queued any more
    void (*give_back)(void* object) noexcept = nullptr;  // makes it ready again, if taking uses it up
};

}  // namespace detail

// One wait's entry in the waiting_list of one source. Valid from enlist() until delist() returns.
class wait_entry : public detail::list_links<wait_entry> {
public:
    wait_entry(core::multi_wait& wait, std::uint32_t index) noexcept : wait_(&wait), index_(index) {}
    wait_entry(const wait_entry&) = delete;
    wait_entry& operator=(const wait_entry&) = delete;

private:
    friend class waiting_list;
    friend class wake_list;

    core::multi_wait* wait_;
    std::uint32_t index_;
    detail::plain<bool> listed_{false};
};

// The waits to which a notify function has handed the source. None of them returns before wake(). The caller of the
// notify function keeps the list and calls wake() once, under no lock, because wake() wakes threads and may resume
// coroutines.
class [[nodiscard]] wake_list {
public:
    bool empty() const noexcept { return entries_.empty(); }
    TOCSIN_API void wake() noexcept;

private:
    friend class waiting_list;

    detail::intrusive_list<wait_entry> entries_;
};

// The waits for one source: a first-in, first-out queue that owns and allocates nothing. Guard it by a lock of your
// own. enlist(), delist() and every function that makes the source ready take that lock.
class waiting_list {
public:
    waiting_list() noexcept = default;
    waiting_list(const waiting_list&) = delete;
    waiting_list& operator=(const waiting_list&) = delete;

    bool empty() const noexcept { return entries_.empty(); }
    TOCSIN_API void append(wait_entry& entry) noexcept;
    TOCSIN_API void remove(wait_entry& entry) noexcept;  // does nothing if it has been removed already

    // Hands the source to the wait that has queued longest among those that can take it; that wait then ends. Returns
    // an empty list if no wait can take it; the source is then still there to take. (A wait for all never takes it
    // here: see stays_ready.)
    TOCSIN_API wake_list notify_one() noexcept;
    // Hands the source to all waits. For a source that stays ready.
    TOCSIN_API wake_list notify_all() noexcept;

private:
    detail::intrusive_list<wait_entry> entries_;
};

// The three operations. None of them may throw, block for long, or call back into the wait that called it. The library
// calls none of them under a lock of its own. An object whose type declares `stays_ready` must not become unready again
// while a thread waits for it; wait_all() accepts only such types.
template <class T>
concept waitable = requires(T& object, wait_entry& entry) {
    { object.try_wait() } noexcept -> std::same_as<bool>;
    { object.enlist(entry) } noexcept -> std::same_as<bool>;
    { object.delist(entry) } noexcept -> std::same_as<void>;
};

// A reference to one thing to wait for. Converts implicitly from events and from every `waitable` type.
class source {
public:
    enum class kind : std::uint8_t { lot, timer, descriptor, custom };

    struct operations {
        bool (*try_take)(void* object) noexcept;
        bool (*enlist)(void* object, wait_entry& entry) noexcept;
        void (*delist)(void* object, wait_entry& entry) noexcept;
        bool stays_ready;
    };

    template <waitable T>
    source(T& object TOCSIN_LIFETIMEBOUND) noexcept  // implicit on purpose
        : source(&object, custom_operations<T>) {}
    source(void* object, const operations& how) noexcept
        : kind_(kind::custom), object_(object), operations_(&how) {}
    source(void* object, const detail::lot_source& how) noexcept
        : kind_(kind::lot), object_(object), lot_(&how) {}
    explicit source(const deadline& when) noexcept : kind_(kind::timer), when_(when) {}
    source(int descriptor, readiness asked) noexcept
        : kind_(kind::descriptor), asked_(asked), descriptor_(descriptor) {}

    kind what() const noexcept { return kind_; }
    void* object() const noexcept { return object_; }
    const operations& custom() const noexcept { return *operations_; }
    const detail::lot_source& lot() const noexcept { return *lot_; }
    const deadline& when() const noexcept { return when_; }
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
    static constexpr operations custom_operations{
        [](void* object) noexcept { return static_cast<T*>(object)->try_wait(); },
        [](void* object, wait_entry& entry) noexcept { return static_cast<T*>(object)->enlist(entry); },
        [](void* object, wait_entry& entry) noexcept { static_cast<T*>(object)->delist(entry); },
        says_it_stays<T>};

    kind kind_;
    readiness asked_ = readiness::none;
    int descriptor_ = -1;
    void* object_ = nullptr;
    const operations* operations_ = nullptr;
    const detail::lot_source* lot_ = nullptr;
    deadline when_ = deadline::never();
};

}  // namespace tocsin

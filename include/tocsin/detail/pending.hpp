// SPDX-License-Identifier: Apache-2.0
// What operations (operation.hpp) and awaiters (await.hpp) share: a wait that blocks no thread, stored in the object
// that waits. Why it is correct: src/pending.cpp.
#pragma once

#include <tocsin/deadline.hpp>
#include <tocsin/detail/atomic.hpp>
#include <tocsin/detail/config.hpp>
#include <tocsin/detail/event_state.hpp>
#include <tocsin/detail/executor_reference.hpp>
#include <tocsin/detail/source_arguments.hpp>
#include <tocsin/driver.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/source.hpp>
#include <tocsin/status.hpp>
#include <tocsin/wait.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace tocsin::detail {

class pending_wait;  // src/pending.hpp

// The bytes that a wait needs inside the library. src/pending.cpp checks that they are enough.
inline constexpr std::size_t wait_slot_size = 128;
inline constexpr std::size_t wait_core_size = 192;
inline constexpr std::size_t wait_limits_size = 224;
inline constexpr std::size_t wait_mixture_size = 592;

// An event that can be waited for.
template <class T>
concept settable_event = requires(const T& event) { mode_of(event); };

template <settable_event Event>
using mode_type = decltype(mode_of(std::declval<const Event&>()));

// How many sources at the front of the list are events whose mode the compiler knows.
template <class... Sources>
constexpr std::size_t leading_events() noexcept {
    std::size_t count = 0;
    bool all_are = true;
    const auto look = [&]<class Source>(const Source*) {
        bool is_one = false;
        if constexpr (settable_event<Source>) is_one = std::is_empty_v<mode_type<Source>>;
        all_are = all_are && is_one;
        if (all_are) ++count;
    };
    (look(static_cast<const Sources*>(nullptr)), ...);
    return count;
}

// Whether an argument of this type may be a timer or a descriptor. A `source` may be, and so may whatever converts to
// one, unless its type declares `is_polled = false`. Events and custom sources never are.
template <class T>
concept may_be_polled = !settable_event<T> && !custom_source<T> && !requires { requires !T::is_polled; };

// What a wait may contain. Each value includes the values before it.
enum class wait_needs : std::uint8_t {
    objects,  // events and custom sources
    limits,   // a deadline and a stop token
    mixture,  // timers and descriptors
};

// What waits: a coroutine, or an operation. The messages of exceptions name it.
enum class wait_form : std::uint8_t { awaited, operation };

struct wait_traits {
    wait_form form;
    bool all;
    wait_needs needs;
};

constexpr std::size_t wait_memory_size(wait_needs what) noexcept {
    return wait_core_size + (what >= wait_needs::limits ? wait_limits_size : 0) +
           (what >= wait_needs::mixture ? wait_mixture_size : 0);
}
template <class... Sources>
constexpr wait_needs needs_of(bool with_limits) noexcept {
    if ((may_be_polled<std::remove_cvref_t<Sources>> || ...)) return wait_needs::mixture;
    return with_limits ? wait_needs::limits : wait_needs::objects;
}

struct wait_storage {
    void* slots;
    std::uint16_t* buckets;
    void* descriptors;
};

// The memory of a wait whose number of sources is known when it is compiled, apart from the sources and buckets.
template <std::size_t Sources, wait_needs Needs>
struct wait_memory {
    static constexpr std::size_t polled = Needs == wait_needs::mixture ? Sources : 1;

    alignas(std::max_align_t) std::byte slots[Sources * wait_slot_size];
    alignas(std::max_align_t) std::byte descriptors[polled * 16];
    alignas(std::max_align_t) std::byte pending[wait_memory_size(Needs)];  // what pending_base::begin() makes
};

// The part of a wait that does not depend on the number of sources, nor on what happens at its end.
class pending_base {
public:
    pending_base(const pending_base&) = delete;
    pending_base& operator=(const pending_base&) = delete;

protected:
    pending_base(std::span<const source> sources TOCSIN_LIFETIMEBOUND, wait_traits what, const limits& how,
                 const wait_storage& storage) noexcept
        : sources_(sources), storage_(storage), traits_(what) {
        limit(how);
    }
    ~pending_base() {
        if (waiting_ != nullptr) destroy();
    }

    // Checks the sources. If the wait is for any of them, also looks at them. Returns true if this look has ended the
    // wait, so that the result is known.
    TOCSIN_API bool look();
    // Begins the wait in `memory`. The thread that ends the wait calls `run(who)`, or gives `who` to the executor. The
    // service `by` serves the wait's deadlines and descriptors; if `by` is null, the default service does. If begin()
    // throws, nothing has begun.
    enum class begun : std::uint8_t {
        waiting,  // waiting_->suspend() must follow
        ended,    // waiting_ knows how
        looked,   // another look() ended it
    };
    begun begin(void (*run)(void* who) noexcept, void* who, core::service* by, void* memory);
    // For coroutines: begins the wait. If this returns true, the coroutine suspends, and its wait ends as after
    // begin(). If it returns false, the wait has ended.
    TOCSIN_API bool suspend(void (*run)(void* who) noexcept, void* who, void* memory);
    // For coroutines, once the wait has ended.
    TOCSIN_API any_result result();
    TOCSIN_API void destroy() noexcept;
    // Called once the wait has taken what `how` says, right before the result is used.
    void note_taken(const any_result& how) const noexcept;

    // Takes the limits of the next wait.
    void limit(const limits& how) noexcept {
        until_ = how.until;
        stop_ = how.stop.get() != nullptr ? *how.stop.get() : stop_token();
        order_ = how.order;
        stop_first_ = how.stop_first;
    }
    // Whether a look may begin with the first source.
    bool looks_as_listed() const noexcept { return order_ == wait_order::listed && !stop_first_; }

    const std::span<const source>& sources() const noexcept TOCSIN_LIFETIMEBOUND { return sources_; }
    // Whether this is a wait for any of one source, the source is in the lot, and the wait has no limits.
    bool is_for_one_in_the_lot() const noexcept {
        return traits_.needs == wait_needs::objects && !traits_.all && sources_.size() == 1 &&
               sources_[0].what() == source::kind::lot;
    }
    // The memory for slots, free for use by an operation whose wait has ended before it had slots.
    void* unused_slots() const noexcept { return storage_.slots; }

    deadline until_ = deadline::never();
    stop_token stop_;
    executor_reference executor_;
    struct parts_of_begin {
        void* who = nullptr;          // what is passed to what runs at the end
        core::service* by = nullptr;  // for coroutines: that of by()
    };
    // Protected, as the class's other data: NOLINTBEGIN(readability-identifier-naming)
    union {
        parts_of_begin given_{};  // until a look has ended the wait
        any_result result_;       // then, if `waiting_` is null
    };
    // NOLINTEND(readability-identifier-naming)
    // Null if a look ended the wait. Otherwise in the memory of the object that waits.
    plain<pending_wait*> waiting_{nullptr};

private:
    friend class pending_wait;

    bool is_stopped_first() noexcept;

    const std::span<const source> sources_;
    const wait_storage storage_;
    const wait_traits traits_;
    wait_order order_ = wait_order::listed;
    bool stop_first_ = false;
};

}  // namespace tocsin::detail

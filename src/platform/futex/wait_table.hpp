// The table of sleepers of the backends whose system keeps none: portable.cpp, windows_srw.cpp and
// windows_kernel_event.cpp. A slot has a queue of the sleepers whose words hash there, first in, first out. The backends
// differ in the slot's lock and in what a sleeper sleeps on.
//
// Invariants
//   wait_table-1  A sleeper is in its slot's queue exactly while it is inside futex::wait, from its look at the word to
//       its return, unless a waker has taken it off. The queue changes only under the slot's lock.
//   wait_table-2  A waker takes the sleeper that it wakes off the queue, under the lock. So a second wake finds the
//       next sleeper.
//   wait_table-3  A waker signals what the sleeper sleeps on under the lock, and the sleeper takes the lock before it
//       returns. So what it sleeps on can't vanish while the waker uses it.
//
// No lost wake-up: a sleeper looks at the word and enqueues itself under the slot's lock. A waker takes that lock after
// it has changed the word. If the waker gets the lock first, the sleeper's look sees the change. If the sleeper gets it
// first, the waker finds the sleeper.
#pragma once

#include "platform/system/layout_hash.hpp"

#include <tocsin/detail/golden_hash.hpp>
#include <tocsin/detail/intrusive_list.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace tocsin::platform {

template <class Sleeper>
struct queued_sleeper : detail::list_links<Sleeper> {
    explicit queued_sleeper(const void* its_word) noexcept : word(its_word) {}

    const void* const word;
    bool woken = false;
};

template <class Sleeper>
class sleeper_queue : public detail::intrusive_list<Sleeper> {
public:
    // Takes off the sleeper that has slept longest on the word, and marks it woken; null if there is none.
    Sleeper* take(const void* word) noexcept {
        Sleeper* found = this->first();
        while (found != nullptr && found->word != word) found = this->next(*found);
        if (found == nullptr) return nullptr;
        this->remove(*found);
        found->woken = true;
        return found;
    }
};

// A backend's table. All copies of the library in a process use the slots of the first copy (shared_table.hpp).
template <class Slot>
class wait_table {
public:
    // `kind` differs between backends: one copy of the library must not use another backend's slots, nor slots or
    // sleepers of another size.
    constexpr explicit wait_table(std::uint32_t kind) noexcept : own_(kind_of(kind)), in_use_(&own_) {}
    wait_table(const wait_table&) = delete;
    wait_table& operator=(const wait_table&) = delete;

    Slot& slot_of(const void* word) noexcept {
        const auto hash = detail::golden_hash(reinterpret_cast<std::uintptr_t>(word));
        return static_cast<slots*>(in_use_)->at[(hash >> 32) % count];
    }

    // The pointer to the slots in use, which begin with their kind (shared_table/windows.cpp).
    void** in_use() noexcept { return &in_use_; }

    // In the child of a fork: no thread sleeps.
    void forget_sleepers() noexcept { new (in_use_) slots(own_.kind); }

private:
    static constexpr std::size_t count = 512;

    static constexpr std::uint32_t kind_of(std::uint32_t backend) noexcept {
        using sleeper = std::remove_pointer_t<decltype(std::declval<Slot&>().queue.first())>;
        const auto hash =
            layout_hash("wait_table").add(backend).add(count).add(sizeof(Slot)).add(sizeof(sleeper));
        return static_cast<std::uint32_t>(hash.value()) | 1;  // 0: there is no table
    }

    // Never destroyed: waits and wakes are allowed after main.
    struct slots {
        constexpr explicit slots(std::uint32_t its_kind) noexcept : kind(its_kind), at{} {}
        ~slots() {}

        const std::uint32_t kind;
        union {
            Slot at[count];
        };
    };

    slots own_;
    void* in_use_;
};

}  // namespace tocsin::platform

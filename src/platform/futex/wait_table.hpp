// SPDX-License-Identifier: Apache-2.0
// The table of sleepers for the backends whose system keeps no such table: portable.cpp and
// windows_srw.cpp. A slot of the table has a lock and a queue. The queue holds the sleepers whose words hash to that
// slot, first in, first out. The backends differ in the slot's lock and in the object on which a sleeper sleeps.
//
// Invariants
//   wait_table-1  A sleeper enters its slot's queue inside futex::wait, after it has looked at the word. Before that
//       call returns, the sleeper takes itself off, unless a waker has taken it off. The queue changes only under the
//       slot's lock.
//   wait_table-2  Before a waker signals a sleeper, it removes that sleeper from the queue, under the lock. So a second
//       wake finds the next sleeper.
//   wait_table-3  A waker holds the lock while it signals the object on which the sleeper sleeps. The sleeper takes the
//       lock before it returns. So the object can't vanish while the waker uses it.
//
// No lost wake-up: a sleeper looks at the word and enqueues itself while it holds the slot's lock. A waker changes the
// word and then takes that lock. If the waker gets the lock first, the sleeper sees the change when it looks. If the
// sleeper gets the lock first, the waker finds the sleeper in the queue.
//
// Checked by: tests/internal/futex_test.cpp, for each of the two backends on the systems that have it.
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
    // Takes the sleeper that has slept longest on the word off the queue and marks it woken. Returns null if no thread
    // sleeps on the word.
    Sleeper* take(const void* word) noexcept {
        Sleeper* found = this->first();
        while (found != nullptr && found->word != word) found = this->next(*found);
        if (found == nullptr) return nullptr;
        this->remove(*found);
        found->woken = true;
        return found;
    }

    // How many sleep on the word.
    std::size_t count(const void* word) noexcept {
        std::size_t found = 0;
        for (Sleeper* each = this->first(); each != nullptr; each = this->next(*each)) {
            if (each->word == word) ++found;
        }
        return found;
    }
};

// A backend's table. All copies of the library that share a table of waiters use the slots of the first of them
// (shared_table.hpp).
template <class Slot>
class wait_table {
public:
    // `kind` differs between backends, so that no copy of the library uses the slots of another backend. The table's
    // own kind also depends on the sizes of slots and sleepers, so that no copy uses those of another size.
    constexpr explicit wait_table(std::uint32_t kind) noexcept : own_(kind_of(kind)), in_use_(&own_) {}
    wait_table(const wait_table&) = delete;
    wait_table& operator=(const wait_table&) = delete;

    Slot& slot_of(const void* word) noexcept {
        const auto hash = detail::golden_hash(reinterpret_cast<std::uintptr_t>(word));
        return static_cast<slots*>(in_use_)->at[(hash >> 32) % count];
    }

    // The address of the pointer to the slots in use. The slots begin with their kind, which
    // shared_table/{elf,windows}.cpp read.
    void** in_use() noexcept { return &in_use_; }

    // Called in the child of a fork, where no other thread exists, so none sleeps.
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

// Many sources of the lot, registered once and often waited on by one thread: the core of wait_set. The argument:
// ready_list.cpp.
//
//     if (std::size_t found = list.take_ready(items, nullptr)) return found;
//     ready_list::sleeper self(list);
//     if (list.begin_sleep(self)) how = self.waiting.sleep(options);
//     list.end_sleep(self);
#pragma once

#include "core/lot/lot.hpp"

#include <tocsin/detail/atomic.hpp>
#include <tocsin/readiness.hpp>
#include <tocsin/source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::core {

class ready_list;

// A source that is registered in a ready_list.
class member final : public detail::list_links<member>, subscriber {
public:
    member(ready_list& list, const source& what, std::uint64_t tag) noexcept;
    member(const member&) = delete;
    member& operator=(const member&) = delete;

private:
    friend class ready_list;

    reply on_wake(wait_node& node, bool exclusive, release_list& freed) noexcept override;

    ready_list& list_;
    const source source_;
    wait_node node_;
    // Under the lock of the ready_list:
    detail::plain<std::uint64_t> tag_;
    detail::plain<bool> ready_{false};  // it is in the list
    // The waiting thread has taken it off the list and looks at it.
    detail::plain<bool> being_examined_{false};
};

class ready_list {
public:
    // A thread that sleeps here, for one sleep.
    struct sleeper {
        explicit sleeper(ready_list& list) noexcept : node({&list, wait_kind::event}, waiting, true) {}

        waiter waiting;
        wait_node node;  // never queued: it is for release_list, which consists of nodes
        // The member that it was released for, which may be gone: only compare it. Null: it is to look again.
        detail::plain<const member*> by{nullptr};
        detail::plain<std::uint64_t> tag{0};
    };

    ready_list() noexcept = default;
    ready_list(const ready_list&) = delete;
    ready_list& operator=(const ready_list&) = delete;

    // Any thread. A member is new, allocated by `new`, and is added, tagged and removed by one thread at a time.
    void add(member& joining) noexcept;
    void set_tag(member& which, std::uint64_t tag) noexcept;
    // Deletes it, or makes the waiting thread delete it. Afterwards the source may be destroyed.
    void remove(member* leaving) noexcept;
    // Makes the thread that sleeps, if there is one, look again.
    void wake() noexcept;

    // The waiting thread, one at a time. Takes as much of what is ready as `out` has room for, and returns how much.
    // `skipped` is passed over this once (may be null).
    std::size_t take_ready(std::span<ready_item> out, const member* skipped) noexcept;
    // False: something is ready.
    bool begin_sleep(sleeper& self) noexcept;
    void end_sleep(sleeper& self) noexcept;

private:
    friend class member;

    // Defers a set() in a signal handler, which would take the same lock.
    struct guard {
        explicit guard(ready_list& list) noexcept : lock(list.lock_) {}
        const signal_deferral inside;
        const std::lock_guard<futex_lock> lock;
    };

    reply deliver(member& which, bool exclusive, release_list& freed) noexcept;
    void release_sleeper(release_list& freed, const member* by) noexcept;
    bool examine(member& which, ready_item& found) noexcept;
    void make_ready(member& which) noexcept;
    void clear_ready(member& which) noexcept;

    futex_lock lock_;
    detail::intrusive_list<member> ready_;  // the longest ready first
    detail::plain<std::size_t> ready_count_{0};
    detail::plain<sleeper*> sleeper_{nullptr};
};

}  // namespace tocsin::core

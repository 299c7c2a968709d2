// SPDX-License-Identifier: Apache-2.0
// An event for asynchronous waits as a program writes it for itself: a flag and a list of waits under a mutex.
#pragma once

#include "../contestant.hpp"

#include <cstdint>
#include <mutex>

namespace lab {

class listed_event {
    struct links {
        links *previous = this, *next = this;
    };

public:
    class wait : links {
    public:
        explicit wait(listed_event& on) noexcept : event_(on) {}
        wait(const wait&) = delete;
        wait& operator=(const wait&) = delete;
        void start() {
            if (!event_.take_or_enlist(*this)) end();
        }
        bool cancel() {
            if (!event_.remove(*this)) return false;
            end();
            return true;
        }
        std::uint64_t ended() const noexcept { return ended_; }

    private:
        friend class listed_event;
        void end() noexcept { call_(*this); }
        static void count(wait& self) noexcept { ++self.ended_; }

        listed_event& event_;
        void (*call_)(wait&) noexcept = count;
        std::uint64_t ended_ = 0;
    };

    void set() {
        if (wait* const first = take_first()) first->end();
    }

private:
    // Returns false if the event was set, and resets it.
    bool take_or_enlist(wait& one) {
        const std::scoped_lock held(mutex_);
        if (is_set_) {
            is_set_ = false;
            return false;
        }
        one.previous = list_.previous;
        one.next = &list_;
        list_.previous = list_.previous->next = &one;
        return true;
    }
    bool remove(wait& one) {
        const std::scoped_lock held(mutex_);
        if (one.next == &one) return false;
        unlink(one);
        return true;
    }
    // Sets the event and returns nullptr if nobody waits.
    wait* take_first() {
        const std::scoped_lock held(mutex_);
        if (list_.next == &list_) {
            is_set_ = true;
            return nullptr;
        }
        wait& first = static_cast<wait&>(*list_.next);
        unlink(first);
        return &first;
    }
    static void unlink(links& one) noexcept {
        one.previous->next = one.next;
        one.next->previous = one.previous;
        one.previous = one.next = &one;
    }

    std::mutex mutex_;
    bool is_set_ = false;
    links list_;
};

struct hand_made_async {
    static constexpr contestant_info info{
        .name = "list_of_waits",
        .label = "list under a mutex",
        .role = role::peer,
        .about = "a flag and a list of functions to call, under a std::mutex",
        .limits = "waits for one event only; no deadlines",
        .no_manual_event = "is only an asynchronous wait",
        .no_auto_event = "is only an asynchronous wait",
        .no_lock = "is only an asynchronous wait",
        .no_address_wait = "is only an asynchronous wait",
        .no_committer = "is only an asynchronous wait",
    };
    using async_event = listed_event;
};

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// Windows before Vista: a sleeper queues itself in the slot of its word and waits for a kernel event that no other
// sleeper uses at that time. The event is a spare one of the slot or, if the slot has none, a new one. wait_table.hpp
// explains the slots, and why no wake-up is lost. This mechanism is slower than the other two Windows mechanisms: a
// wake of a sleeper makes at least one system call, and a sleep makes at least two.
//
// The system promises (Microsoft's reference of CreateEvent, Windows 2000): each SetEvent of an auto-reset event lets
// one thread through, even a thread that begins to wait later. If no thread is let through between two calls of
// SetEvent, the two count as one. The system doesn't promise that an event can be made. If a thread can't get one, it
// tries again every millisecond.
//
// We have never run this mechanism on a system before Vista. Tests force it on newer systems.
//
// The slot's lock consists of a counter `users` and an auto-reset event `handoff`. A thread that raises `users` from
// zero has the lock at once. Every other thread waits for `handoff`. When a holder unlocks and is not the only user, it
// sets `handoff` once, which gives the lock to one waiting thread. Two sets never merge into one, so no set is lost:
// only a holder that unlocks sets `handoff`, and the next holder is the thread that this set has let through.
//
// Memory order
//   [slot-lock]     Each user of the lock changes `users`, so a thread that raises it from zero sees what earlier
//                   holders wrote. A thread that waits for `handoff` sees it too, because setting an event and waiting
//                   for it are full fences.
//   [slot-handoff]  The variable `handoff` holds only the event's handle, and nothing else is published through it. So
//                   the orders with this tag are stronger than necessary. They document that the event was made before
//                   it is used. They cost nothing compared with the system call that follows.
//
// Checked by: tests/internal/futex_test.cpp; the unit and stress suites, run again with
// TOCSIN_WINDOWS_SLEEP=kernel_event in the environment.
#include "platform/futex/futex.hpp"
#include "platform/futex/wait_table.hpp"
#include "platform/system/alarm_windows.hpp"
#include "platform/system/system.hpp"
#include "platform/system/windows.hpp"

namespace tocsin::platform {
namespace {

HANDLE make_event() noexcept { return ::CreateEventW(nullptr, FALSE, FALSE, nullptr); }

struct sleeper : queued_sleeper<sleeper> {
    using queued_sleeper::queued_sleeper;
    HANDLE event = nullptr;
};

class slot {
public:
    void lock() noexcept {
        if (users_.fetch_add(1, std::memory_order_acq_rel) != 0) {  // [slot-lock]
            ::WaitForSingleObject(handoff(), INFINITE);
        }
    }
    void unlock() noexcept {
        if (users_.fetch_sub(1, std::memory_order_acq_rel) != 1) ::SetEvent(handoff());  // [slot-lock]
    }

    sleeper_queue<sleeper> queue;  // under the lock

    // Returns a spare event, else a new one. Returns null if the system can't make one. Events are made and closed
    // outside the lock, because that takes long.
    HANDLE take_event() noexcept {
        lock();
        const HANDLE spare = spares_ != 0 ? spare_[--spares_] : nullptr;
        unlock();
        return spare != nullptr ? spare : make_event();
    }
    // Keeps the event as a spare, or closes it. The event must not be set, and no other thread may use it any more.
    void give_back(HANDLE event) noexcept {
        lock();
        const bool is_kept = spares_ != most_spares;
        if (is_kept) spare_[spares_++] = event;
        unlock();
        if (!is_kept) ::CloseHandle(event);
    }

private:
    HANDLE handoff() noexcept {
        HANDLE found = handoff_.load(std::memory_order_acquire);  // [slot-handoff]
        while (found == nullptr) {
            const HANDLE made = make_event();
            if (made == nullptr) {
                ::Sleep(1);
                found = handoff_.load(std::memory_order_acquire);  // [slot-handoff]
            } else if (handoff_.compare_exchange_strong(found, made,
                                                        std::memory_order_acq_rel)) {  // [slot-handoff]
                found = made;
            } else {
                ::CloseHandle(made);
            }
        }
        return found;
    }

    static constexpr unsigned most_spares = 4;

    detail::atomic<std::uint32_t> users_{0};
    detail::atomic<HANDLE> handoff_{nullptr};
    HANDLE spare_[most_spares]{};
    unsigned spares_ = 0;
};

constinit wait_table<slot> table{2};

// Sleeps until a waker wakes `self`, which is in its slot's queue, or until the deadline has passed. The caller does
// not hold the slot's lock.
void sleep_enqueued(const sleeper& self, const deadline& until) noexcept {
    const system_alarm alarm(until, [](void* event) noexcept { ::SetEvent(event); }, self.event);
    do {
        if (::WaitForSingleObject(self.event, milliseconds_left(until)) == WAIT_OBJECT_0) return;
    } while (!until.has_passed());
}

sleep_result sleep(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    slot& its_slot = table.slot_of(&word);
    sleeper self(&word);
    self.event = its_slot.take_event();
    if (self.event == nullptr) {
        ::Sleep(1);
        return until.has_passed() ? sleep_result::timed_out : sleep_result::returned;
    }
    its_slot.lock();
    if (word.load(std::memory_order_relaxed) != expected) {  // no order: the lock gives it
        its_slot.unlock();
        its_slot.give_back(self.event);
        return sleep_result::returned;
    }
    its_slot.queue.append(self);
    its_slot.unlock();
    sleep_enqueued(self, until);
    its_slot.lock();
    if (!self.woken) its_slot.queue.remove(self);
    its_slot.unlock();
    ::ResetEvent(self.event);  // the alarm or a waker may have set it after the sleep ended
    its_slot.give_back(self.event);
    return self.woken || !until.has_passed() ? sleep_result::returned : sleep_result::timed_out;
}

}  // namespace

template <>
bool windows_kernel_event_futex::is_available() noexcept {
    return true;
}

template <>
sleep_result windows_kernel_event_futex::wait(const futex_word& word, std::uint32_t expected,
                                              const deadline& until) noexcept {
    const errno_guard guard;
    return sleep_until(until, [&](const deadline& end) { return sleep(word, expected, end); });
}

template <>
void windows_kernel_event_futex::wake_one(const void* word) noexcept {
    slot& its_slot = table.slot_of(word);
    its_slot.lock();
    if (sleeper* const found = its_slot.queue.take(word)) ::SetEvent(found->event);
    its_slot.unlock();
}

// Counts the sleepers on the word, then wakes that many, the oldest first. Does not keep the lock in between, because a
// woken sleeper takes the lock before it returns.
template <>
void windows_kernel_event_futex::wake_all(const void* word) noexcept {
    slot& its_slot = table.slot_of(word);
    its_slot.lock();
    std::size_t left = its_slot.queue.count(word);
    its_slot.unlock();
    for (; left != 0; --left) wake_one(word);
}

template <>
void windows_kernel_event_futex::after_fork() noexcept {}

template <>
void** windows_kernel_event_futex::sleepers() noexcept {
    return table.in_use();
}

}  // namespace tocsin::platform

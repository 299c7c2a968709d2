// Windows before Vista: a sleeper waits for a kernel event of its own, queued under its word's address
// (wait_table.hpp). Slow beside the others: a wake and a sleep are a system call each, and the event is
// made for a sleeper unless its slot has a spare one.
//
// The system promises (Microsoft's reference of CreateEvent, Windows 2000): an event that resets itself lets one waiter
// through for each time it is set, also if it was set before the wait. It doesn't promise: that there is an event to be
// had; without one a sleeper looks again every millisecond. Not tried on such a system: only forced on newer ones.
//
// The slot's lock: whoever raises `users` from zero has it; everyone else waits for `turn`, which each holder
// sets once if there are more users than itself. Of two settings the first has been taken before the second is made,
// because its taker makes it; so none is lost.
//
// Memory order
//   [slot-lock]   each user of the lock changes `users`: its holders' writes are visible to those after them, also
//                 through the event, whose setting and waiting are full fences.
//   [slot-turn]   `turn` is a handle only.
//
// Checked by: tests/internal/futex_test.cpp; unit and stress suites once more with
// TOCSIN_WINDOWS_SLEEP=kernel_event in the environment.
#include "platform/futex/futex.hpp"
#include "platform/futex/wait_table.hpp"
#include "platform/system/alarm_windows.hpp"
#include "platform/system/system.hpp"
#include "platform/system/windows.hpp"

namespace tocsin::platform {
namespace kernel_event_futex {
namespace {

HANDLE make_event() noexcept { return ::CreateEventW(nullptr, FALSE, FALSE, nullptr); }

class slot {
public:
    void lock() noexcept {
        if (users_.fetch_add(1, std::memory_order_acq_rel) != 0) {  // [slot-lock]
            ::WaitForSingleObject(turn(), INFINITE);
        }
    }
    void unlock() noexcept {
        if (users_.fetch_sub(1, std::memory_order_acq_rel) != 1) ::SetEvent(turn());  // [slot-lock]
    }

    sleeper_queue queue;  // under the lock

    // A spare one, else a new one, or null. The system makes and closes events without the lock: that takes long.
    HANDLE take_event() noexcept {
        lock();
        const HANDLE spare = spares_ != 0 ? spare_[--spares_] : nullptr;
        unlock();
        return spare != nullptr ? spare : make_event();
    }
    // It must not be set, and nobody may know it any more.
    void give_back(HANDLE event) noexcept {
        lock();
        const bool has_room = spares_ != most_spares;
        if (has_room) spare_[spares_++] = event;
        unlock();
        if (!has_room) ::CloseHandle(event);
    }

private:
    HANDLE turn() noexcept {
        HANDLE found = turn_.load(std::memory_order_acquire);  // [slot-turn]
        while (found == nullptr) {
            const HANDLE made = make_event();
            if (made == nullptr) {
                ::Sleep(1);
                found = turn_.load(std::memory_order_acquire);  // [slot-turn]
            } else if (turn_.compare_exchange_strong(found, made,
                                                     std::memory_order_acq_rel)) {  // [slot-turn]
                found = made;
            } else {
                ::CloseHandle(made);
            }
        }
        return found;
    }

    static constexpr unsigned most_spares = 4;

    detail::atomic<std::uint32_t> users_{0};
    detail::atomic<HANDLE> turn_{nullptr};
    HANDLE spare_[most_spares]{};
    unsigned spares_ = 0;
};

struct sleeper : queued_sleeper {
    using queued_sleeper::queued_sleeper;
    HANDLE event = nullptr;
};

constinit wait_table<slot> table{2};
constinit void* in_use = &table;  // of the process, also if it holds several copies of the library

slot& slot_of(const void* word) noexcept { return static_cast<wait_table<slot>*>(in_use)->of(word); }

// Until `self` is woken or the deadline has passed. Enqueued; the lock is free, before and after.
void sleep_enqueued(const sleeper& self, const deadline& until) noexcept {
    const system_alarm alarm(until, [](void* event) noexcept { ::SetEvent(event); }, self.event);
    do {
        if (::WaitForSingleObject(self.event, milliseconds_left(until)) == WAIT_OBJECT_0) return;
    } while (!until.has_passed());
}

sleep_result sleep(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    slot& key_hash = slot_of(&word);
    sleeper self(&word);
    self.event = key_hash.take_event();
    if (self.event == nullptr) {
        ::Sleep(1);
        return until.has_passed() ? sleep_result::timed_out : sleep_result::returned;
    }
    key_hash.lock();
    if (word.load(std::memory_order_relaxed) != expected) {  // no order: the lock gives it
        key_hash.unlock();
        key_hash.give_back(self.event);
        return sleep_result::returned;
    }
    key_hash.queue.append(self);
    key_hash.unlock();
    sleep_enqueued(self, until);
    key_hash.lock();
    if (!self.woken) key_hash.queue.remove(self);
    key_hash.unlock();
    ::ResetEvent(self.event);  // it may have been set after the sleep had ended in another way
    key_hash.give_back(self.event);
    return self.woken || !until.has_passed() ? sleep_result::returned : sleep_result::timed_out;
}

}  // namespace

sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    const errno_guard kept;
    return sleep_until(until, [&](const deadline& end) { return sleep(word, expected, end); });
}

void futex_wake_one(const void* word) noexcept {
    slot& key_hash = slot_of(word);
    key_hash.lock();
    if (queued_sleeper* const found = key_hash.queue.take(word))
        ::SetEvent(static_cast<sleeper*>(found)->event);
    key_hash.unlock();
}

void futex_after_fork() noexcept {}

void*& futex_sleepers() noexcept { return in_use; }

}  // namespace kernel_event_futex
}  // namespace tocsin::platform

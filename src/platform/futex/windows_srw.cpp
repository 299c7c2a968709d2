// SPDX-License-Identifier: Apache-2.0
// Windows Vista and 7, which have no WaitOnAddress. A sleeper has a condition variable on its own stack and queues
// itself in the slot of its word. A slot's lock is a slim reader/writer lock. wait_table.hpp explains the slots, and
// why no wake-up is lost.
//
// The system promises (Microsoft's reference of SleepConditionVariableSRW, Windows Vista):
//   - The call frees the lock and falls asleep in one step.
//   - The lock and the condition variable are one word each. They start as zero and need neither initialization nor
//     destruction.
// The sleep may return for no reason, so the sleeper then checks its own flag `woken`, which a waker sets. The system
// promises no exact timeout (windows_waitonaddress.cpp), so the sleeper asks the deadline whether it has passed.
//
// The library looks the system's functions up at run time, so that it can be loaded on systems without them.
//
// Checked by: tests/internal/futex_test.cpp; the unit and stress suites, run again with TOCSIN_WINDOWS_SLEEP=srw in the
// environment.
#include "platform/futex/futex.hpp"
#include "platform/futex/wait_table.hpp"
#include "platform/system/alarm_windows.hpp"
#include "platform/system/system.hpp"
#include "platform/system/windows.hpp"

namespace tocsin::platform {
namespace {

// One pointer, null at first: the size and the initial value that the system documents for SRWLOCK and
// CONDITION_VARIABLE.
struct system_word {
    void* word = nullptr;
};

struct functions {
    using lock_function = void WINAPI(system_word*);
    using sleep_function = BOOL WINAPI(system_word*, system_word*, DWORD, ULONG);

    lock_function* lock = exported<lock_function>(L"kernel32.dll", "AcquireSRWLockExclusive");
    lock_function* unlock = exported<lock_function>(L"kernel32.dll", "ReleaseSRWLockExclusive");
    sleep_function* sleep = exported<sleep_function>(L"kernel32.dll", "SleepConditionVariableSRW");
    lock_function* wake = exported<lock_function>(L"kernel32.dll", "WakeConditionVariable");
};

const functions& system() noexcept {
    static const functions found;
    return found;
}

struct sleeper : queued_sleeper<sleeper> {
    using queued_sleeper::queued_sleeper;
    system_word wake;
};

struct slot {
    system_word lock;
    sleeper_queue<sleeper> queue;
};

constinit wait_table<slot> table{1};

class locked_slot {
public:
    explicit locked_slot(const void* word) noexcept : slot_(table.slot_of(word)) {
        system().lock(&slot_.lock);
    }
    ~locked_slot() { system().unlock(&slot_.lock); }
    locked_slot(const locked_slot&) = delete;
    locked_slot& operator=(const locked_slot&) = delete;

    slot* operator->() const noexcept { return &slot_; }

private:
    slot& slot_;
};

sleep_result sleep(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    sleeper self(&word);
    const auto wake = [](void* what) noexcept {
        auto& sleeping = *static_cast<sleeper*>(what);
        const locked_slot slot(sleeping.word);
        system().wake(&sleeping.wake);
    };
    const system_alarm alarm(until, wake, &self);
    const locked_slot slot(&word);
    if (word.load(std::memory_order_relaxed) != expected)
        return sleep_result::returned;  // no order: the lock gives it
    slot->queue.append(self);
    while (!self.woken && !until.has_passed()) {
        system().sleep(&self.wake, &slot->lock, milliseconds_left(until), 0);
    }
    if (self.woken) return sleep_result::returned;
    slot->queue.remove(self);
    return sleep_result::timed_out;
}

}  // namespace

template <>
bool windows_srw_futex::is_available() noexcept {
    const functions& found = system();
    return found.lock != nullptr && found.unlock != nullptr && found.sleep != nullptr &&
           found.wake != nullptr;
}

template <>
sleep_result windows_srw_futex::wait(const futex_word& word, std::uint32_t expected,
                                     const deadline& until) noexcept {
    const errno_guard guard;
    return sleep_until(until, [&](const deadline& end) { return sleep(word, expected, end); });
}

template <>
void windows_srw_futex::wake_one(const void* word) noexcept {
    const locked_slot slot(word);
    if (sleeper* const found = slot->queue.take(word)) system().wake(&found->wake);
}

// Counts the sleepers on the word, then wakes that many, the oldest first. Does not keep the lock in between, because a
// woken sleeper takes the lock before it returns.
template <>
void windows_srw_futex::wake_all(const void* word) noexcept {
    std::size_t left = locked_slot(word)->queue.count(word);
    for (; left != 0; --left) wake_one(word);
}

template <>
void windows_srw_futex::after_fork() noexcept {}

template <>
void** windows_srw_futex::sleepers() noexcept {
    return table.in_use();
}

}  // namespace tocsin::platform

// Windows Vista and 7, which have no WaitOnAddress: a sleeper brings a condition variable on its own stack and queues
// it under its word's address (wait_table.hpp), in a slot locked by a slim reader/writer lock.
//
// The system promises (Microsoft's reference of SleepConditionVariableSRW, Windows Vista): it frees the lock and falls
// asleep as one step; both objects are one word that needs neither making nor destroying, zero to begin with; it may
// return for no reason, so `woken` says. It doesn't promise: how exactly a timeout is kept (as futex_waitonaddress.cpp).
//
// The functions are looked up at run time, so that the library still loads where they are missing.
//
// Checked by: tests/internal/futex_test.cpp; unit and stress suites once more with TOCSIN_WINDOWS_SLEEP=srw in the
// environment.
#include "platform/futex/futex.hpp"
#include "platform/futex/wait_table.hpp"
#include "platform/system/alarm_windows.hpp"
#include "platform/system/system.hpp"
#include "platform/system/windows.hpp"

namespace tocsin::platform {
namespace srw_futex {
namespace {

// Of the size and beginning that the system documents for SRWLOCK and CONDITION_VARIABLE: one pointer, null.
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

struct slot {
    system_word lock;
    sleeper_queue queue;
};

struct locked {
    explicit locked(slot& what) noexcept : it(what) { system().lock(&it.lock); }
    ~locked() { system().unlock(&it.lock); }
    locked(const locked&) = delete;
    locked& operator=(const locked&) = delete;

    slot& it;
};

struct sleeper : queued_sleeper {
    using queued_sleeper::queued_sleeper;
    system_word wake;
};

constinit wait_table<slot> table{1};
constinit void* in_use = &table;  // of the process, also if it holds several copies of the library

slot& slot_of(const void* word) noexcept { return static_cast<wait_table<slot>*>(in_use)->of(word); }

sleep_result sleep(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    sleeper self(&word);
    const auto ring = [](void* who) noexcept {
        auto& sleeping = *static_cast<sleeper*>(who);
        const locked slot(slot_of(sleeping.word));
        system().wake(&sleeping.wake);
    };
    const system_alarm alarm(until, ring, &self);
    const locked key_hash(slot_of(&word));
    if (word.load(std::memory_order_relaxed) != expected)
        return sleep_result::returned;  // no order: the lock gives it
    key_hash.it.queue.append(self);
    while (!self.woken && !until.has_passed()) {
        system().sleep(&self.wake, &key_hash.it.lock, milliseconds_left(until), 0);
    }
    if (self.woken) return sleep_result::returned;
    key_hash.it.queue.remove(self);
    return sleep_result::timed_out;
}

}  // namespace

bool is_there() noexcept {
    const functions& found = system();
    return found.lock != nullptr && found.unlock != nullptr && found.sleep != nullptr &&
           found.wake != nullptr;
}

sleep_result futex_wait(const futex_word& word, std::uint32_t expected, const deadline& until) noexcept {
    const errno_guard kept;
    return sleep_until(until, [&](const deadline& end) { return sleep(word, expected, end); });
}

void futex_wake_one(const void* word) noexcept {
    const locked key_hash(slot_of(word));
    if (queued_sleeper* const found = key_hash.it.queue.take(word))
        system().wake(&static_cast<sleeper*>(found)->wake);
}

void futex_after_fork() noexcept {}

void*& futex_sleepers() noexcept { return in_use; }

}  // namespace srw_futex
}  // namespace tocsin::platform

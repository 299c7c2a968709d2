// SPDX-License-Identifier: Apache-2.0
// Windows' calls, and what the tests of this folder share. Built for Windows, a test calls Windows (or Wine).
// Elsewhere, the same source calls tocsin/win32.h.
//
// The cases are written from Microsoft's documentation. Where a case rests on what was observed on Windows, or on what
// is likely, its comment says so. Where Wine answers differently, the case names Wine's answer, and accepts both
// answers under Wine. win32/docs/windows_differences.md lists these places.
#pragma once

#include "facts.hpp"
#include "threads.hpp"

#include <tocsin/win32.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace win32 {

using namespace std::chrono_literals;
using support::rounds;
using support::thread_group;
using support::until;

#if defined(_WIN32)
constexpr bool over_tocsin = false;
inline bool under_wine() { return support::runs_under_wine(); }
#else
constexpr bool over_tocsin = true;
inline bool under_wine() { return false; }
#endif

// How often a loop runs. A call that enters Wine's server takes a hundred times as long as a call that stays in the
// process.
inline int few(int plain, int slow) { return over_tocsin ? rounds(plain, slow) : slow; }

// No call sets this value, because bit 29 is reserved for applications.
constexpr DWORD untouched = 0x2000'0BAD;

inline bool failed(BOOL result) { return result == FALSE; }
inline bool failed(HANDLE result) { return result == nullptr; }
inline bool failed(DWORD result) { return result == WAIT_FAILED; }
inline bool failed(BOOLEAN result) { return result == FALSE; }

// What a call returned, and the last error that it left.
struct outcome {
    bool has_failed;
    long long result;
    DWORD error;
};
template <class Function, class... Arguments>
outcome outcome_of(Function function, const Arguments&... arguments) {
    SetLastError(untouched);
    const auto result = function(arguments...);
    const DWORD error = GetLastError();
    if constexpr (std::is_same_v<decltype(result), const HANDLE>) {
        return {failed(result), static_cast<long long>(reinterpret_cast<std::intptr_t>(result)), error};
    } else {
        return {failed(result), static_cast<long long>(result), error};
    }
}

inline testing::AssertionResult judged(bool good, const outcome& seen) {
    if (good) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "returned " << seen.result << ", last error " << seen.error;
}

// Whether a call fails and leaves this last error.
template <class Function, class... Arguments>
testing::AssertionResult fails(DWORD error, Function function, const Arguments&... arguments) {
    const outcome seen = outcome_of(function, arguments...);
    return judged(seen.has_failed && seen.error == error, seen);
}

// Whether a call returns this and leaves the last error alone, as a wait that succeeds or times out does.
template <class Function, class... Arguments>
testing::AssertionResult returns(DWORD wanted, Function function, const Arguments&... arguments) {
    const outcome seen = outcome_of(function, arguments...);
    return judged(seen.result == wanted && seen.error == untouched, seen);
}

// Whether a call succeeds. It must return exactly TRUE, because programs compare with TRUE.
template <class Function, class... Arguments>
testing::AssertionResult works(Function function, const Arguments&... arguments) {
    const outcome seen = outcome_of(function, arguments...);
    return judged(seen.result == TRUE, seen);
}

// A handle that is closed at the end.
class handle {
public:
    handle() = default;
    explicit handle(HANDLE owned) : owned_(owned) {}
    handle(handle&& other) noexcept : owned_(std::exchange(other.owned_, nullptr)) {}
    handle& operator=(handle&& other) noexcept {
        std::swap(owned_, other.owned_);
        return *this;
    }
    ~handle() { close(); }

    operator HANDLE() const { return owned_; }
    HANDLE release() { return std::exchange(owned_, nullptr); }
    void close() {
        if (owned_) {
            EXPECT_TRUE(works(CloseHandle, owned_));
        }
        owned_ = nullptr;
    }

private:
    HANDLE owned_ = nullptr;
};

inline handle automatic(bool set = false) { return handle(CreateEventW(nullptr, FALSE, set, nullptr)); }
inline handle manual(bool set = false) { return handle(CreateEventW(nullptr, TRUE, set, nullptr)); }
inline handle semaphore(LONG initial, LONG maximum) {
    return handle(CreateSemaphoreW(nullptr, initial, maximum, nullptr));
}
inline handle mutex(bool owned = false) { return handle(CreateMutexW(nullptr, owned, nullptr)); }
inline handle timer(bool manual_reset = false) {
    return handle(CreateWaitableTimerW(nullptr, manual_reset, nullptr));
}

inline handle duplicate(HANDLE of) {
    HANDLE copy = nullptr;
    EXPECT_TRUE(works(DuplicateHandle, GetCurrentProcess(), of, GetCurrentProcess(), &copy, 0u, FALSE,
                      DWORD{DUPLICATE_SAME_ACCESS}));
    return handle(copy);
}

// A handle that is closed already. While a test uses it, no other thread may create a handle.
inline HANDLE closed() { return HANDLE(automatic()); }

inline DWORD look(HANDLE object) { return WaitForSingleObject(object, 0); }
inline DWORD wait(HANDLE object) { return WaitForSingleObject(object, INFINITE); }
inline DWORD wait_any(const std::vector<HANDLE>& objects, DWORD milliseconds = INFINITE) {
    return WaitForMultipleObjects(static_cast<DWORD>(objects.size()), objects.data(), FALSE, milliseconds);
}
inline DWORD wait_all(const std::vector<HANDLE>& objects, DWORD milliseconds = INFINITE) {
    return WaitForMultipleObjects(static_cast<DWORD>(objects.size()), objects.data(), TRUE, milliseconds);
}

// Runs `body` in a new thread, and waits until it has ended.
template <class Body>
void elsewhere(Body body) {
    std::thread(std::move(body)).join();
}

// Waits until a thread sleeps in its wait, and has slept for a while.
inline void until_waits(const thread_group& threads, std::size_t index) {
    support::until_sound_asleep(threads.id(index));
}
inline void until_all_wait(const thread_group& threads) {
    for (std::size_t i = 0; i < threads.size(); ++i) until_waits(threads, i);
}

inline void nap(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

template <class Call>
std::chrono::nanoseconds time_of(Call call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::steady_clock::now() - begin;
}

// Windows may end a wait up to a tick early; tocsin never does.
inline std::chrono::milliseconds at_least(std::chrono::milliseconds time) {
    return over_tocsin ? time : time - std::min(time, std::chrono::milliseconds(16));
}

// Waits until every timer has been set that was due before this call.
inline void until_timers_are_set() {
    const handle witness = timer();
    LARGE_INTEGER due{};
    due.QuadPart = -1;
    EXPECT_TRUE(works(SetWaitableTimer, witness, &due, 0, nullptr, nullptr, FALSE));
    EXPECT_EQ(wait(witness), WAIT_OBJECT_0);
}

}  // namespace win32

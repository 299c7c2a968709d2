// SPDX-License-Identifier: Apache-2.0
// What the tests of tocsin/win32.h share.
#pragma once

#include "facts.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/win32.h>

#include <gtest/gtest.h>

#include <chrono>

namespace win32_test {

using support::thread_group;

constexpr int rounds(int count) { return support::rounds(count, count / 5 + 1); }

inline LARGE_INTEGER relative(std::chrono::milliseconds after) {
    LARGE_INTEGER due;
    due.QuadPart = -10'000 * after.count();
    return due;
}

// An event that is closed at the end.
class event {
public:
    event(bool manual, bool set) : handle_(CreateEvent(nullptr, manual, set, nullptr)) {}
    event(const event&) = delete;
    event& operator=(const event&) = delete;
    ~event() { CloseHandle(handle_); }
    HANDLE get() const { return handle_; }

private:
    HANDLE handle_;
};

// A thread of CreateThread() that runs a function object, joined at the end.
class win32_thread {
public:
    template <class Body>
    explicit win32_thread(Body& body)
        : handle_(CreateThread(
              nullptr, 0, [](void* of) -> DWORD { return (*static_cast<Body*>(of))(); }, &body, 0, nullptr)) {
    }
    win32_thread(const win32_thread&) = delete;
    win32_thread& operator=(const win32_thread&) = delete;
    ~win32_thread() {
        EXPECT_EQ(WaitForSingleObject(handle_, INFINITE), WAIT_OBJECT_0);
        CloseHandle(handle_);
    }
    HANDLE get() const { return handle_; }

private:
    HANDLE handle_;
};

}  // namespace win32_test

// SPDX-License-Identifier: Apache-2.0
// Checks that the library sleeps and wakes in a program without std::thread, which MinGW-w64's thread model win32
// lacks.
#include <tocsin/address.hpp>
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/word_lock.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include <windows.h>

namespace {

using namespace std::chrono_literals;

constexpr int rounds = 2'000;
constinit tocsin::auto_reset_event there;
constinit tocsin::auto_reset_event back;
constinit tocsin::manual_reset_event done;
constinit std::atomic<std::uint32_t> word{0};
constinit tocsin::word_lock<> lock;
int counted = 0;

DWORD WINAPI answer(void*) {
    for (int i = 0; i < rounds; ++i) {
        there.wait();
        lock.lock();
        ++counted;
        lock.unlock();
        back.set();
    }
    word.store(1);
    tocsin::wake_by_address_all(&word);
    done.set();
    return 0;
}

bool works() {
    const HANDLE thread = CreateThread(nullptr, 0, answer, nullptr, 0, nullptr);
    for (int i = 0; i < rounds; ++i) {
        there.set();
        if (tocsin::wait_any(back, done).index != 0) return false;  // in the last round both may be set
    }
    while (word.load() == 0) (void)tocsin::wait_on_address(&word, 0u);
    done.wait();
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    const auto begin = std::chrono::steady_clock::now();
    return counted == rounds && back.wait_for(20ms) == tocsin::wait_status::timed_out &&
           std::chrono::steady_clock::now() - begin >= 20ms;
}

}  // namespace

int main() {
    const bool worked = works();
    std::printf("%s\n", worked ? "works" : "does not work");
    return worked ? 0 : 1;
}

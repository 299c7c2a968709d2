// SPDX-License-Identifier: Apache-2.0
// A program in which each thread calls the library in another way. gdb_test.py looks with gdb, and expects that each
// call is attributed to the function here. The folders and the names of functions resemble the library's and the
// system's. Prints "ready" when all threads are parked, and exits when its input ends.
#include "../../tocsin/of_program.hpp"

#include <tocsin/address.hpp>
#include <tocsin/channel.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/status.hpp>
#include <tocsin/wait.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

#include <unistd.h>

#if defined(WITH_C)
#include <tocsin.h>
#endif
#if defined(WITH_WIN32)
#include <tocsin/win32.h>
#endif

std::atomic<int> returned{0};

namespace {

std::size_t started = 0;

template <class Function>
void start(Function function) {
    ++started;
    std::thread(function).detach();
}

std::size_t parked_threads() {
    std::set<std::uint64_t> threads;
    for (const tocsin::parked_wait& each : tocsin::parked_waits()) threads.insert(each.thread);
    return threads.size();
}

}  // namespace

namespace user {

tocsin::auto_reset_event event;
template <class Event>
[[gnu::noinline]] tocsin::wait_status waits_in_a_template(Event& what) {
    what.wait();
    ++returned;
    return {};
}

tocsin::channel<int> jobs(1);
[[gnu::noinline]] void waits_for_a_channel() {
    (void)jobs.receive();
    ++returned;
}

}  // namespace user

tocsin::latch latch(1);
[[gnu::noinline]] void waits_in_a_core_folder() {
    latch.wait();
    ++returned;
}
tocsin::auto_reset_event second;
[[gnu::noinline]] void clones_and_waits() {
    (void)tocsin::wait_any(second, tocsin::readable(0));
    ++returned;
}
std::atomic<std::uint32_t> word{0};
[[gnu::noinline]] void futex_of_program() {
    (void)tocsin::wait_on_address(&word, 0u);
    ++returned;
}
tocsin::auto_reset_event third;
// Only the debug information tells that this function is the program's.
extern "C" [[gnu::noinline]] void tocsin_worker_of_program() {
    third.wait();
    ++returned;
}

#if defined(WITH_C)
tocsin_auto_event event_of_c = TOCSIN_EVENT_UNSET;
[[gnu::noinline]] void waits_by_c() {
    (void)tocsin_auto_event_wait(&event_of_c, nullptr);
    ++returned;
}
tocsin_semaphore permits_of_c;
[[gnu::noinline]] void waits_by_c_for_several() {
    tocsin_source permit{};
    permit.kind = TOCSIN_SOURCE_SEMAPHORE;
    permit.of.object = &permits_of_c;
    (void)tocsin_wait_any(&permit, 1, nullptr, nullptr);
    ++returned;
}
tocsin_lock lock_of_c;
tocsin_condition condition_of_c;
[[gnu::noinline]] void waits_by_c_for_a_condition() {
    (void)tocsin_lock_acquire(&lock_of_c, nullptr);
    (void)tocsin_condition_wait(&condition_of_c, &lock_of_c, nullptr);
    ++returned;
}
void start_c() {
    (void)tocsin_semaphore_init(&permits_of_c, 0);
    (void)tocsin_lock_init(&lock_of_c);
    (void)tocsin_condition_init(&condition_of_c);
    start(waits_by_c);
    start(waits_by_c_for_several);
    start(waits_by_c_for_a_condition);
}
#else
void start_c() {}
#endif

#if defined(WITH_WIN32)
HANDLE handle = CreateEventW(nullptr, FALSE, FALSE, nullptr);
[[gnu::noinline]] void waits_by_handle() {
    (void)WaitForSingleObject(handle, INFINITE);
    ++returned;
}
HANDLE handles[] = {handle, CreateSemaphoreW(nullptr, 0, 1, nullptr)};
[[gnu::noinline]] void waits_by_handles() {
    (void)WaitForMultipleObjects(2, handles, TRUE, INFINITE);
    ++returned;
}
[[gnu::noinline]] void waits_by_handles_or_messages() {
    (void)MsgWaitForMultipleObjects(1, handles, FALSE, INFINITE, QS_ALLINPUT);
    ++returned;
}
tocsin::auto_reset_event mutex_is_owned;
SRWLOCK srw = SRWLOCK_INIT;
[[gnu::noinline]] void waits_for_srw_lock() {
    AcquireSRWLockExclusive(&srw);
    ++returned;
}
LONG value = 1;
[[gnu::noinline]] void waits_by_address() {
    LONG seen = 1;
    (void)WaitOnAddress(&value, &seen, sizeof seen, INFINITE);
    ++returned;
}
HANDLE mutex = CreateMutexW(nullptr, FALSE, nullptr);
[[gnu::noinline]] void waits_with_a_mutex() {
    (void)WaitForSingleObject(mutex, INFINITE);
    mutex_is_owned.set();
    (void)WaitForSingleObject(handle, INFINITE);
    ++returned;
}
[[gnu::noinline]] void waits_for_a_mutex() {
    (void)WaitForSingleObject(mutex, INFINITE);
    ++returned;
}
void start_win32() {
    AcquireSRWLockExclusive(&srw);
    start(waits_by_handle);
    start(waits_by_handles);
    start(waits_by_handles_or_messages);
    start(waits_for_srw_lock);
    start(waits_by_address);
    start(waits_with_a_mutex);
    mutex_is_owned.wait();
    start(waits_for_a_mutex);
}
#else
void start_win32() {}
#endif

int main() {
    start(waits_in_a_header);
    start([] { return user::waits_in_a_template(user::event); });
    start(user::waits_for_a_channel);
    start(waits_in_a_core_folder);
    start(clones_and_waits);
    start(futex_of_program);
    start(tocsin_worker_of_program);
    start_c();
    start_win32();
    while (parked_threads() < started) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::puts("ready");
    std::fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    std::_Exit(0);
}

// SPDX-License-Identifier: Apache-2.0
// Priority, affinity, description and times of threads. They are kept in the thread's object, under a lock of their
// own, and are applied to the thread while it runs. What is set before a thread begins is applied by the thread itself.
//
// `system_number` is not zero only while the thread runs. It changes under the lock, and the thread sets it back to
// zero at its end. So nothing is ever applied to another thread that has the same number later.
//
// Checked by: win32/tests/thread_properties_test.cpp.
#include "thread.hpp"
#include "timer_queue.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <pthread.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#endif

namespace tocsin::win32 {
namespace {

// The nice value of a priority, relative to the usual one; false if there is no such priority.
bool nice_of(int priority, int& relative) noexcept {
    switch (priority) {
        case THREAD_PRIORITY_IDLE: relative = 19; return true;
        case THREAD_PRIORITY_LOWEST: relative = 10; return true;
        case THREAD_PRIORITY_BELOW_NORMAL: relative = 5; return true;
        case THREAD_PRIORITY_NORMAL: relative = 0; return true;
        case THREAD_PRIORITY_ABOVE_NORMAL: relative = -5; return true;
        case THREAD_PRIORITY_HIGHEST: relative = -10; return true;
        case THREAD_PRIORITY_TIME_CRITICAL: relative = -20; return true;
        default: return false;
    }
}

#if defined(__linux__)

bool apply_priority(const thread_properties& its) noexcept {
    int relative = 0;
    (void)nice_of(its.priority, relative);
    const int wanted = std::clamp(its.usual_nice + relative, -20, 19);
    return setpriority(PRIO_PROCESS, static_cast<id_t>(its.system_number), wanted) == 0;
}

constexpr unsigned bits = sizeof(std::uintptr_t) * 8;

cpu_set_t set_of(std::uintptr_t mask) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = 0; i != bits; ++i) {
        if ((mask >> i & 1) != 0) CPU_SET(i, &set);
    }
    return set;
}
std::uintptr_t affinity_of(int number) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(number, sizeof set, &set) != 0) return 0;
    std::uintptr_t mask = 0;
    for (unsigned i = 0; i != bits; ++i) {
        if (CPU_ISSET(i, &set)) mask |= std::uintptr_t{1} << i;
    }
    return mask;
}
bool apply_affinity(int number, std::uintptr_t mask) noexcept {
    const cpu_set_t set = set_of(mask);
    return sched_setaffinity(number, sizeof set, &set) == 0;
}
std::uintptr_t affinity_of_process() noexcept { return affinity_of(getpid()); }

void apply_description(const thread_properties& its) noexcept {
    (void)without_exceptions<bool>(false, [&] {
        const std::string text = utf8_of(its.description).substr(0, 15);
        char path[64];
        (void)std::snprintf(path, sizeof path, "/proc/self/task/%d/comm", its.system_number);
        if (std::FILE* const file = std::fopen(path, "w")) {
            (void)std::fputs(text.c_str(), file);
            (void)std::fclose(file);
        }
        return true;
    });
}

std::uint64_t ticks_of(const timeval& time) noexcept {
    return static_cast<std::uint64_t>(time.tv_sec) * ticks_per_second +
           static_cast<std::uint64_t>(time.tv_usec) * 10;
}
bool times_of_this_thread(std::uint64_t& kernel, std::uint64_t& user) noexcept {
    rusage used{};
    if (getrusage(RUSAGE_THREAD, &used) != 0) return false;
    kernel = ticks_of(used.ru_stime);
    user = ticks_of(used.ru_utime);
    return true;
}
bool times_of(int number, std::uint64_t& kernel, std::uint64_t& user) noexcept {
    char path[64];
    (void)std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", number);
    std::FILE* const file = std::fopen(path, "r");
    if (file == nullptr) return false;
    char text[1024];
    const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
    (void)std::fclose(file);
    text[length] = 0;
    const char* const name_end = std::strrchr(text, ')');  // the name may contain anything
    if (name_end == nullptr) return false;
    const char* at = name_end + 1;
    constexpr int fields_between = 11;  // from the state to the faults of children (proc(5))
    for (int passed = 0; passed != fields_between; ++passed) {
        at += std::strspn(at, " ");
        at += std::strcspn(at, " ");
    }
    char* end = nullptr;
    const unsigned long in_user = std::strtoul(at, &end, 10);
    if (end == at) return false;
    at = end;
    const unsigned long in_kernel = std::strtoul(at, &end, 10);
    if (end == at) return false;
    const auto unit = static_cast<std::uint64_t>(ticks_per_second / sysconf(_SC_CLK_TCK));
    kernel = in_kernel * unit;
    user = in_user * unit;
    return true;
}
int number_of_this_thread_for_the_system() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

#else

bool apply_priority(const thread_properties&) noexcept { return false; }
std::uintptr_t affinity_of(int) noexcept { return 0; }
bool apply_affinity(int, std::uintptr_t) noexcept { return false; }
std::uintptr_t affinity_of_process() noexcept { return 0; }
void apply_description(const thread_properties&) noexcept {}
bool times_of_this_thread(std::uint64_t&, std::uint64_t&) noexcept { return false; }
bool times_of(int, std::uint64_t&, std::uint64_t&) noexcept { return false; }
int number_of_this_thread_for_the_system() noexcept { return 0; }

#endif

#if defined(__linux__)
constexpr bool has_properties = true;
#else
constexpr bool has_properties = false;
#endif

// Calls act(thread, thread_properties&) under the lock of the properties.
template <class Result, class Act>
Result with_properties(HANDLE handle, Result failed, Act act) noexcept {
    return with_thread(handle, failed, [&](thread& of) -> Result {
        const std::lock_guard held(of.properties.lock);
        return act(of, of.properties);
    });
}

void put(LPFILETIME to, std::uint64_t time) noexcept {
    *to = {static_cast<DWORD>(time & 0xFFFF'FFFF), static_cast<DWORD>(time >> 32)};
}

}  // namespace

void thread_properties::thread_begins() noexcept {
    const std::lock_guard held(lock);
    created = file_time_now();
    system_number = number_of_this_thread_for_the_system();
#if defined(__linux__)
    usual_nice = getpriority(PRIO_PROCESS, static_cast<id_t>(system_number));
#endif
    if (priority != THREAD_PRIORITY_NORMAL) (void)apply_priority(*this);
    if (affinity != 0) (void)apply_affinity(system_number, affinity);
    if (!description.empty()) apply_description(*this);
}

void thread_properties::thread_ends() noexcept {
    const std::lock_guard held(lock);
    ended = file_time_now();
    (void)times_of_this_thread(kernel_time, user_time);
    system_number = 0;
}

}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

HANDLE OpenThread(DWORD access, BOOL, DWORD id) {
    return made([&]() -> HANDLE {
        thread* found = thread::find(id);
        if (found == nullptr && id == GetCurrentThreadId()) {
            found = &current_thread();
            found->keep();
        }
        if (found == nullptr) return no_handle(ERROR_INVALID_PARAMETER);
        return open_handle(found,
                           (access & (GENERIC_ALL | MAXIMUM_ALLOWED)) != 0 ? THREAD_ALL_ACCESS : access);
    });
}
DWORD GetProcessIdOfThread(HANDLE handle) {
    return with_thread(handle, DWORD{0}, [](thread&) { return GetCurrentProcessId(); });
}
DWORD GetProcessId(HANDLE process) {
    return process == current_process ? GetCurrentProcessId() : (fail(ERROR_INVALID_HANDLE), 0u);
}

BOOL SetThreadPriority(HANDLE handle, int priority) {
    return with_properties(handle, FALSE, [&](thread& of, thread_properties& its) -> BOOL {
        if (priority == THREAD_MODE_BACKGROUND_BEGIN || priority == THREAD_MODE_BACKGROUND_END) {
            if (&of != current_thread_or_null()) return fail(ERROR_INVALID_PARAMETER);
            priority =
                priority == THREAD_MODE_BACKGROUND_BEGIN ? THREAD_PRIORITY_IDLE : THREAD_PRIORITY_NORMAL;
        }
        int relative = 0;
        if (!nice_of(priority, relative)) return fail(ERROR_INVALID_PARAMETER);
        if (!has_properties) return fail(ERROR_NOT_SUPPORTED);
        const int before = std::exchange(its.priority, priority);
        if (its.system_number == 0 || before == priority || apply_priority(its)) return TRUE;
        its.priority = before;
        return fail(ERROR_ACCESS_DENIED);
    });
}
int GetThreadPriority(HANDLE handle) {
    return with_properties(handle, THREAD_PRIORITY_ERROR_RETURN,
                           [](thread&, thread_properties& its) { return its.priority; });
}
BOOL SetThreadPriorityBoost(HANDLE handle, BOOL disable) {
    return with_properties(handle, FALSE, [&](thread&, thread_properties& its) {
        its.boost_disabled = disable != 0;
        return TRUE;
    });
}
BOOL GetThreadPriorityBoost(HANDLE handle, PBOOL disabled) {
    return with_properties(handle, FALSE, [&](thread&, thread_properties& its) -> BOOL {
        if (disabled == nullptr) return fail(ERROR_INVALID_PARAMETER);
        *disabled = its.boost_disabled ? TRUE : FALSE;
        return TRUE;
    });
}

DWORD_PTR SetThreadAffinityMask(HANDLE handle, DWORD_PTR mask) {
    return with_properties(handle, DWORD_PTR{0}, [&](thread&, thread_properties& its) -> DWORD_PTR {
        if (!has_properties) return fail(ERROR_NOT_SUPPORTED), 0;
        const std::uintptr_t allowed = affinity_of_process();
        if (mask == 0 || (mask & ~allowed) != 0) return fail(ERROR_INVALID_PARAMETER), 0;
        if (its.system_number == 0) {
            const std::uintptr_t before = std::exchange(its.affinity, mask);
            return before != 0 ? before : allowed;
        }
        const std::uintptr_t before = affinity_of(its.system_number);
        return apply_affinity(its.system_number, mask) ? before : (fail(ERROR_ACCESS_DENIED), 0);
    });
}
BOOL SetThreadGroupAffinity(HANDLE handle, const GROUP_AFFINITY* affinity, PGROUP_AFFINITY previous) {
    if (affinity == nullptr || affinity->Group != 0) return fail(ERROR_INVALID_PARAMETER);
    const DWORD_PTR before = SetThreadAffinityMask(handle, affinity->Mask);
    if (before != 0 && previous != nullptr) *previous = {before, 0, {0, 0, 0}};
    return before != 0 ? TRUE : FALSE;
}
BOOL GetThreadGroupAffinity(HANDLE handle, PGROUP_AFFINITY affinity) {
    return with_properties(handle, FALSE, [&](thread&, thread_properties& its) -> BOOL {
        if (affinity == nullptr) return fail(ERROR_INVALID_PARAMETER);
        if (!has_properties) return fail(ERROR_NOT_SUPPORTED);
        const std::uintptr_t mask = its.system_number != 0 ? affinity_of(its.system_number)
                                    : its.affinity != 0    ? its.affinity
                                                           : affinity_of_process();
        *affinity = {mask, 0, {0, 0, 0}};
        return TRUE;
    });
}
BOOL GetProcessAffinityMask(HANDLE process, PDWORD_PTR mask, PDWORD_PTR system_mask) {
    if (process != current_process) return fail(ERROR_INVALID_HANDLE);
    if (mask == nullptr || system_mask == nullptr) return fail(ERROR_INVALID_PARAMETER);
    if (!has_properties) return fail(ERROR_NOT_SUPPORTED);
    *mask = affinity_of_process();
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    *system_mask = info.dwActiveProcessorMask | *mask;
    return TRUE;
}

DWORD SetThreadIdealProcessor(HANDLE handle, DWORD processor) {
    return with_properties(handle, DWORD{0xFFFF'FFFF}, [&](thread&, thread_properties& its) -> DWORD {
        if (processor > MAXIMUM_PROCESSORS) return fail_wait(ERROR_INVALID_PARAMETER);
        // MAXIMUM_PROCESSORS only asks.
        return processor == MAXIMUM_PROCESSORS ? its.ideal_processor
                                               : std::exchange(its.ideal_processor, processor);
    });
}
BOOL GetThreadIdealProcessorEx(HANDLE handle, PPROCESSOR_NUMBER processor) {
    if (processor == nullptr) return fail(ERROR_INVALID_PARAMETER);
    const DWORD ideal = SetThreadIdealProcessor(handle, MAXIMUM_PROCESSORS);
    if (ideal == 0xFFFF'FFFF) return FALSE;
    *processor = {0, static_cast<BYTE>(ideal), 0};
    return TRUE;
}
BOOL SetThreadIdealProcessorEx(HANDLE handle, PPROCESSOR_NUMBER processor, PPROCESSOR_NUMBER previous) {
    if (processor == nullptr || processor->Group != 0 || processor->Number >= MAXIMUM_PROCESSORS)
        return fail(ERROR_INVALID_PARAMETER);
    const DWORD before = SetThreadIdealProcessor(handle, processor->Number);
    if (before == 0xFFFF'FFFF) return FALSE;
    if (previous != nullptr) *previous = {0, static_cast<BYTE>(before), 0};
    return TRUE;
}

HRESULT SetThreadDescription(HANDLE handle, PCWSTR description) {
    return with_properties(handle, HRESULT_FROM_WIN32(ERROR_INVALID_HANDLE),
                           [&](thread&, thread_properties& its) -> HRESULT {
                               return without_exceptions<HRESULT>(E_OUTOFMEMORY, [&] {
                                   its.description = description != nullptr ? description : u"";
                                   if (its.system_number != 0) apply_description(its);
                                   return S_OK;
                               });
                           });
}
HRESULT GetThreadDescription(HANDLE handle, PWSTR* description) {
    return with_properties(handle, HRESULT_FROM_WIN32(ERROR_INVALID_HANDLE),
                           [&](thread&, thread_properties& its) -> HRESULT {
                               const std::size_t bytes = (its.description.size() + 1) * sizeof(WCHAR);
                               *description = static_cast<PWSTR>(LocalAlloc(LMEM_FIXED, bytes));
                               if (*description == nullptr) return E_OUTOFMEMORY;
                               std::memcpy(*description, its.description.c_str(), bytes);
                               return S_OK;
                           });
}

BOOL GetThreadTimes(HANDLE handle, LPFILETIME created, LPFILETIME ended, LPFILETIME kernel, LPFILETIME user) {
    return with_properties(handle, FALSE, [&](thread& of, thread_properties& its) -> BOOL {
        if (created == nullptr || ended == nullptr || kernel == nullptr || user == nullptr)
            return fail(ERROR_INVALID_PARAMETER);
        std::uint64_t in_kernel = its.kernel_time;
        std::uint64_t in_user = its.user_time;
        const bool known = its.system_number == 0 ? has_properties
                           : &of == current_thread_or_null()
                               ? times_of_this_thread(in_kernel, in_user)
                               : times_of(its.system_number, in_kernel, in_user);
        if (!known) return fail(ERROR_NOT_SUPPORTED);
        put(created, its.created);
        put(ended, its.ended);
        put(kernel, in_kernel);
        put(user, in_user);
        return TRUE;
    });
}
BOOL GetThreadIOPendingFlag(HANDLE handle, PBOOL pending) {
    return with_thread(handle, FALSE, [&](thread&) -> BOOL {
        if (pending == nullptr) return fail(ERROR_INVALID_PARAMETER);
        *pending = FALSE;
        return TRUE;
    });
}

VOID GetCurrentThreadStackLimits(PULONG_PTR low, PULONG_PTR high) {
    *low = *high = 0;
#if defined(__linux__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* begin = nullptr;
    std::size_t size = 0;
    if (pthread_attr_getstack(&attributes, &begin, &size) == 0) {
        *low = reinterpret_cast<ULONG_PTR>(begin);
        *high = *low + size;
    }
    (void)pthread_attr_destroy(&attributes);
#endif
}

DWORD GetCurrentProcessorNumber() {
#if defined(__linux__)
    const int now = sched_getcpu();
    return now >= 0 ? static_cast<DWORD>(now) : 0;
#else
    return 0;
#endif
}
VOID GetCurrentProcessorNumberEx(PPROCESSOR_NUMBER processor) {
    *processor = {0, static_cast<BYTE>(GetCurrentProcessorNumber()), 0};
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// What ported programs ask of the machine and of the calendar, and waits for messages, of which there are none.
//
// Checked by: win32/tests/thread_properties_test.cpp.
#include "object.hpp"
#include "timer_queue.hpp"

#include <chrono>
#include <cstdlib>
#include <ctime>

#include <unistd.h>

namespace tocsin::win32 {
namespace {

DWORD processors(int which) noexcept {
    const long count = sysconf(which);
    return count > 0 ? static_cast<DWORD>(count) : 1;
}

FILETIME file_time_of(ticks time) noexcept {
    const auto bits = static_cast<std::uint64_t>(time);
    return {static_cast<DWORD>(bits & 0xFFFF'FFFF), static_cast<DWORD>(bits >> 32)};
}

// From 1601 on, as a date in the calendar that Windows uses. False: it is after the year 30827.
bool date_of(ticks time, SYSTEMTIME& date) noexcept {
    using namespace std::chrono;
    constexpr ticks day = 86'400 * ticks_per_second;
    if (time < 0 || time / day > 10'675'199) return false;
    const sys_days from_1970{days(time / day - ticks_to_1970 / day)};
    const year_month_day of(from_1970);
    const ticks rest = time % day;
    date = {static_cast<WORD>(static_cast<int>(of.year())),
            static_cast<WORD>(static_cast<unsigned>(of.month())),
            static_cast<WORD>(weekday(from_1970).c_encoding()),
            static_cast<WORD>(static_cast<unsigned>(of.day())),
            static_cast<WORD>(rest / (3600 * ticks_per_second)),
            static_cast<WORD>(rest / (60 * ticks_per_second) % 60),
            static_cast<WORD>(rest / ticks_per_second % 60),
            static_cast<WORD>(rest / ticks_per_millisecond % 1000)};
    return true;
}

bool ticks_of_date(const SYSTEMTIME& date, ticks& time) noexcept {
    using namespace std::chrono;
    const year_month_day of(year(date.wYear), month(date.wMonth), day(date.wDay));
    if (date.wYear < 1601 || date.wYear > 30827 || !of.ok() || date.wHour > 23 || date.wMinute > 59 ||
        date.wSecond > 59 || date.wMilliseconds > 999)
        return false;
    const ticks whole_days = sys_days(of).time_since_epoch().count();
    time = ticks_to_1970 + whole_days * 86'400 * ticks_per_second +
           ticks{date.wHour} * 3600 * ticks_per_second + ticks{date.wMinute} * 60 * ticks_per_second +
           date.wSecond * ticks_per_second + date.wMilliseconds * ticks_per_millisecond;
    return true;
}

// What the local time is ahead of UTC, at a time from 1601 on.
ticks ahead_of_utc(ticks time) noexcept {
    const auto seconds = static_cast<std::time_t>((time - ticks_to_1970) / ticks_per_second);
    std::tm local{};
    return localtime_r(&seconds, &local) == nullptr ? 0 : ticks{local.tm_gmtoff} * ticks_per_second;
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

VOID GetSystemInfo(LPSYSTEM_INFO info) {
    *info = {};
#if defined(__x86_64__)
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_AMD64;
#elif defined(__i386__)
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_INTEL;
#elif defined(__aarch64__)
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_ARM64;
#else
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_UNKNOWN;
#endif
    info->dwPageSize = static_cast<DWORD>(sysconf(_SC_PAGESIZE));
    info->dwAllocationGranularity = info->dwPageSize;
    info->dwNumberOfProcessors = processors(_SC_NPROCESSORS_ONLN);
    constexpr DWORD bits = sizeof(DWORD_PTR) * 8;
    info->dwActiveProcessorMask =
        info->dwNumberOfProcessors >= bits ? ~DWORD_PTR{0} : (DWORD_PTR{1} << info->dwNumberOfProcessors) - 1;
}
VOID GetNativeSystemInfo(LPSYSTEM_INFO info) { GetSystemInfo(info); }
DWORD GetActiveProcessorCount(WORD group) {
    return group == 0 || group == ALL_PROCESSOR_GROUPS ? processors(_SC_NPROCESSORS_ONLN)
                                                       : (fail(ERROR_INVALID_PARAMETER), 0u);
}
DWORD GetMaximumProcessorCount(WORD group) {
    return group == 0 || group == ALL_PROCESSOR_GROUPS ? processors(_SC_NPROCESSORS_CONF)
                                                       : (fail(ERROR_INVALID_PARAMETER), 0u);
}
WORD GetActiveProcessorGroupCount() { return 1; }

VOID GetSystemTimePreciseAsFileTime(LPFILETIME time) { GetSystemTimeAsFileTime(time); }
VOID GetSystemTime(LPSYSTEMTIME time) { (void)date_of(static_cast<ticks>(file_time_now()), *time); }
VOID GetLocalTime(LPSYSTEMTIME time) {
    const auto now = static_cast<ticks>(file_time_now());
    (void)date_of(now + ahead_of_utc(now), *time);
}
BOOL SystemTimeToFileTime(const SYSTEMTIME* from, LPFILETIME to) {
    ticks time = 0;
    if (!ticks_of_date(*from, time)) return fail(ERROR_INVALID_PARAMETER);
    *to = file_time_of(time);
    return TRUE;
}
BOOL FileTimeToSystemTime(const FILETIME* from, LPSYSTEMTIME to) {
    return date_of(ticks_of(*from), *to) ? TRUE : fail(ERROR_INVALID_PARAMETER);
}
BOOL FileTimeToLocalFileTime(const FILETIME* from, LPFILETIME to) {
    const ticks time = ticks_of(*from);
    *to = file_time_of(time +
                       ahead_of_utc(static_cast<ticks>(file_time_now())));  // today's rule, as on Windows
    return TRUE;
}
BOOL LocalFileTimeToFileTime(const FILETIME* from, LPFILETIME to) {
    const ticks time = ticks_of(*from);
    *to = file_time_of(time - ahead_of_utc(static_cast<ticks>(file_time_now())));
    return TRUE;
}
LONG CompareFileTime(const FILETIME* first, const FILETIME* second) {
    const auto one = static_cast<std::uint64_t>(ticks_of(*first));
    const auto other = static_cast<std::uint64_t>(ticks_of(*second));
    return one < other ? -1 : one > other ? 1 : 0;
}
BOOL QueryUnbiasedInterruptTime(PULONGLONG time) {
    if (time == nullptr) return fail(ERROR_INVALID_PARAMETER);
    *time = static_cast<ULONGLONG>(timers().relative.now());
    return TRUE;
}

VOID ExitProcess(UINT code) {
    std::exit(static_cast<int>(code));  // NOLINT(concurrency-mt-unsafe): what the call is for
}

DWORD MsgWaitForMultipleObjectsEx(DWORD count, const HANDLE* handles, DWORD milliseconds, DWORD,
                                  DWORD flags) {
    const BOOL alertable = (flags & MWMO_ALERTABLE) != 0 ? TRUE : FALSE;
    if ((flags & ~(MWMO_WAITALL | MWMO_ALERTABLE | MWMO_INPUTAVAILABLE)) != 0 ||
        count >= MAXIMUM_WAIT_OBJECTS)
        return fail_wait(ERROR_INVALID_PARAMETER);
    if (count == 0 || (flags & MWMO_WAITALL) != 0) {
        // It would need a message as well.
        for (DWORD i = 0; i != count; ++i) {
            const handle_use use(handles[i]);
            if (!use || !is_waited_for(use->type)) return fail_wait(ERROR_INVALID_HANDLE);
        }
        const DWORD how = SleepEx(milliseconds, alertable);
        return how == WAIT_IO_COMPLETION ? how : WAIT_TIMEOUT;
    }
    return WaitForMultipleObjectsEx(count, handles, FALSE, milliseconds, alertable);
}
DWORD MsgWaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds,
                                DWORD wake_mask) {
    return MsgWaitForMultipleObjectsEx(count, handles, milliseconds, wake_mask,
                                       wait_all != 0 ? MWMO_WAITALL : 0);
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Windows: modules share only the symbols that they import. So the copies of the library in a process meet in a named
// page of memory. The name consists of the process's number and the time when the process started, so no other process
// uses it. The page holds records of copies. If a record there fits a new copy, the new copy uses the table that the
// record names. Otherwise the new copy enters a record with its own table.
//
// A named mutex protects the page while a copy looks for a record or enters its own. Two copies seldom do that at the
// same time: the copy in a DLL does it under the loader's lock, and the copy in the program does it before the program
// has a second thread of its own. But if a module is injected into the process, the module's thread may initialize a
// copy while the program initializes its own. To avoid a deadlock, a thread that holds the mutex never asks for the
// loader's lock: the thread that waits for the mutex may hold that lock. A record doesn't change once it is in the
// page, so copies read it without the mutex.
//
// A copy that has entered its table stays loaded for the life of the process. The copy makes sure of that in its
// initializer, before it could be unloaded. The page stays as well, because nobody closes a handle to it.
//
// If the system can't provide the page, the copy uses its own table. That is correct while it is the only copy.
//
// Checked by: tests/copies.
#include "platform/system/windows.hpp"

#include "platform/futex/futex.hpp"
#include "platform/poller/poller.hpp"
#include "platform/shared_table/layout.hpp"
#include "platform/shared_table/shared_table.hpp"
#include "platform/shared_table/thread_slots.hpp"
#include "platform/system/system.hpp"

#include <cstdint>
#include <cstdio>
#include <cwchar>

namespace tocsin::platform {
namespace {

struct copy_record {
    std::uint64_t core_layout;
    std::uint64_t platform_layout;
    std::uint32_t futex;  // the kind of the futex's table (wait_table.hpp); 0: the system keeps the sleepers
    DWORD slots[thread_slots];
    void* table;
    void* sleepers;
    void* doorbells;  // the pool of doorbells, and the list of threads that sleep on sockets

    bool fits(const copy_record& other) const noexcept {
        return core_layout == other.core_layout && platform_layout == other.platform_layout &&
               futex == other.futex;
    }
};

struct shared_page {
    static constexpr std::uint32_t max = 8;  // records; no two of them fit each other

    std::uint32_t count;
    copy_record records[max];
};

void name_for_this_process(wchar_t (&name)[96], const wchar_t* what) noexcept {
    FILETIME created{}, exited{}, kernel{}, user{};
    ::GetProcessTimes(::GetCurrentProcess(), &created, &exited, &kernel, &user);
    std::swprintf(name, sizeof name / sizeof name[0], L"Local\\tocsin-%ls-%lu-%08lx%08lx", what,
                  static_cast<unsigned long>(::GetCurrentProcessId()),
                  static_cast<unsigned long>(created.dwHighDateTime),
                  static_cast<unsigned long>(created.dwLowDateTime));
}

shared_page* open_page() noexcept {
    wchar_t name[96];
    name_for_this_process(name, L"copies");
    // A new page is filled with zeros. The handle is never closed, so that the page stays.
    const HANDLE mapping =
        ::CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, sizeof(shared_page), name);
    if (mapping == nullptr) return nullptr;
    return static_cast<shared_page*>(::MapViewOfFile(mapping, FILE_MAP_WRITE, 0, 0, sizeof(shared_page)));
}

class page_lock {
public:
    page_lock() noexcept {
        wchar_t name[96];
        name_for_this_process(name, L"lock");
        mutex_ = ::CreateMutexW(nullptr, FALSE, name);
        if (mutex_ != nullptr) ::WaitForSingleObject(mutex_, INFINITE);
    }
    ~page_lock() {
        if (mutex_ == nullptr) return;
        ::ReleaseMutex(mutex_);
        ::CloseHandle(mutex_);
    }
    page_lock(const page_lock&) = delete;
    page_lock& operator=(const page_lock&) = delete;

private:
    HANDLE mutex_ = nullptr;
};

// Returns the index of the record that fits `mine`. If none does, adds `mine` and returns its index, or returns `max`
// if the page is full.
std::uint32_t enter(shared_page& page, const copy_record& mine) noexcept {
    const page_lock lock;
    std::uint32_t index = 0;
    while (index != page.count && !page.records[index].fits(mine)) ++index;
    if (index == page.count && index != shared_page::max) page.records[page.count++] = mine;
    return index;
}

void warn_of(const copy_record& stranger) noexcept {
    char file[MAX_PATH] = "a module that is gone";
    HMODULE module = nullptr;
    if (::GetModuleHandleExW(
            GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
            static_cast<const wchar_t*>(stranger.table), &module)) {
        ::GetModuleFileNameA(module, file, sizeof file);
    }
    char message[512];
    std::snprintf(message, sizeof message,
                  "tocsin: this process holds two versions of tocsin that cannot share their waiters "
                  "(the other is in %s). An event used through both loses wake-ups. Link one version, as a "
                  "shared library.\n",
                  file);
    say(message);
}

// The system's indices of the slots, which all copies that share a table use.
DWORD slots[thread_slots];

}  // namespace

void* slot_of_this_thread(thread_slot which) noexcept {
    const DWORD before = ::GetLastError();  // TlsGetValue sets it to 0
    void* const found = ::TlsGetValue(slots[static_cast<unsigned>(which)]);
    ::SetLastError(before);
    return found;
}
void set_slot_of_this_thread(thread_slot which, void* to) noexcept {
    ::TlsSetValue(slots[static_cast<unsigned>(which)], to);
}
std::uintptr_t thread_mark() noexcept { return ::GetCurrentThreadId(); }

void* adopt_first_copy(void* own, std::uint64_t layout) noexcept {
    for (DWORD& each : slots) {
        each = ::TlsAlloc();
        if (each == TLS_OUT_OF_INDEXES) die("tocsin: the process has no thread-local slot left\n");
    }
    void** const sleepers = futex::sleepers();
    void* const own_sleepers = sleepers != nullptr ? *sleepers : nullptr;
    const copy_record mine{
        .core_layout = layout,
        .platform_layout = shared_layout,
        .futex = own_sleepers != nullptr ? *static_cast<const std::uint32_t*>(own_sleepers) : 0,
        .slots = {slots[0], slots[1], slots[2]},
        .table = own,
        .sleepers = own_sleepers,
        .doorbells = poller::shared_state()};
    shared_page* const page = open_page();
    if (page == nullptr) return own;
    const std::uint32_t index = enter(*page, mine);
    for (std::uint32_t i = 0; i != index; ++i) warn_of(page->records[i]);
    if (index == shared_page::max) return own;  // no record fits; the user has been warned of all eight
    const copy_record& found = page->records[index];
    if (found.table == own) {
        keep_loaded();
    } else {
        for (unsigned i = 0; i != thread_slots; ++i) {
            ::TlsFree(slots[i]);
            slots[i] = found.slots[i];
        }
        if (sleepers != nullptr) *sleepers = found.sleepers;
        poller::shared_state() = found.doorbells;
    }
    return found.table;
}

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// The table of handles, and the names. The table itself: handle_table.hpp.
//
// State of the names: a map from each name to its object, and in each object whose name stays within the process the
// number of its handles, all under one lock.
//
// Invariants
//   handles-1  A name is in the map from its object's first handle until the object has no handles. An object in the
//       map has a reference, which belongs to an open handle, or to a handle that a thread is just closing.
//       (close_handle() removes the name before it ends its use of the slot.) So a thread that finds a name may give
//       out a further handle of the object. An object whose name was removed never gets a name again, even if
//       duplicate() opens a further handle.
//   handles-2  An object whose name reaches other processes (shared_names.cpp) is in the map until its destructor takes
//       it out. So waits, and the owner of a mutex, keep the name. A thread that finds the object uses it only if it
//       gets a reference, under the lock. The memory still exists then, because the destructor needs the lock.
//   handles-3  Such an object loses its last reference only while the thread does not have the lock.
//
// Checked by: win32/tests/unit/handles_test.cpp, win32/tests.
#include "object.hpp"
#include "shared_names.hpp"
#include "thread.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include <pthread.h>

namespace tocsin::win32 {

constinit handle_table the_handles;
thread_local constinit handle_cache* this_cache = nullptr;

namespace {

thread_local constinit DWORD last_error = 0;

struct name_map {
    std::mutex lock;
    std::map<std::string, object*, std::less<>> objects;
    std::string folder;  // of the names that reach other processes; empty: none do
};

// Never destroyed: threads may close handles while the process ends.
name_map& names() {
    static name_map& all = *new name_map;
    return all;
}

HANDLE handle_of(handle_table::number number) noexcept {
    return reinterpret_cast<HANDLE>(static_cast<std::uintptr_t>(number));
}

void append_utf8(std::string& to, std::uint32_t point) {
    const auto put = [&](std::uint32_t byte) { to.push_back(static_cast<char>(byte)); };
    if (point < 0x80) return put(point);
    if (point < 0x800) {
        put(0xC0 | point >> 6);
    } else if (point < 0x10000) {
        put(0xE0 | point >> 12);
        put(0x80 | (point >> 6 & 0x3F));
    } else {
        put(0xF0 | point >> 18);
        put(0x80 | (point >> 12 & 0x3F));
        put(0x80 | (point >> 6 & 0x3F));
    }
    put(0x80 | (point & 0x3F));
}

void drop_if_any(void* gone) noexcept {
    if (gone != nullptr) static_cast<object*>(gone)->drop();
}

// Stands for the cache of a thread whose own is gone. It stays busy and empty.
constinit struct ended_cache : handle_cache {
    constexpr ended_cache() noexcept { is_busy = true; }
} no_cache;

void end_of_cache(void* of) noexcept {
    const std::unique_ptr<handle_cache> ending(static_cast<handle_cache*>(of));
    this_cache = &no_cache;
    for (std::size_t i = 0; i != handle_cache::size(); ++i) drop_if_any(ending->forget_one(the_handles, i));
}

// The calling thread's cache, or null. Tries to make it. A thread that can't have one now tries again at its next use.
handle_cache* cache_of_this_thread() noexcept {
    if (this_cache != nullptr) return this_cache->is_busy ? nullptr : this_cache;
    static std::atomic<bool> has_key{false};
    static pthread_key_t key;
    if (!has_key.load(std::memory_order_acquire)) {  // [cache-key] the key that another thread made
        static word_lock<> lock;
        const std::lock_guard held(lock);
        if (!has_key.load(std::memory_order_relaxed)) {  // no order: under the lock
            if (pthread_key_create(&key, end_of_cache) != 0) return nullptr;
            has_key.store(true, std::memory_order_release);  // [cache-key] publishes the key
        }
    }
    std::unique_ptr<handle_cache> made(new (std::nothrow) handle_cache);
    if (made == nullptr || pthread_setspecific(key, made.get()) != 0) return nullptr;
    return this_cache = made.release();
}

void forget_here(handle_table::number number) noexcept {
    if (this_cache != nullptr && !this_cache->is_busy) drop_if_any(this_cache->forget(the_handles, number));
}

}  // namespace

void brief_use::look_up(HANDLE handle) noexcept {
    handle_use use(handle);
    slot_ = std::exchange(use.slot_, nullptr);
    if (slot_ == nullptr) forget_here(number_);  // handle_cache-1: it may be closed
}

void brief_use::end_or_remember(handle_slot& slot, handle_table::number number) noexcept {
    const kind what = static_cast<object*>(slot.object)->type;
    const bool is_open =
        handle_table::is_open(slot.word.load(std::memory_order_relaxed), number);  // no order: a guess
    if (is_open && may_be_cached(what)) {
        if (handle_cache* const cache = cache_of_this_thread())
            return drop_if_any(cache->put(the_handles, number, slot));
    }
    handle_use::end(slot);
}

HANDLE open_handle(object* of, DWORD access) noexcept {
    const handle_table::number number = the_handles.open(of, access);
    if (number != 0) return handle_of(number);
    of->drop();
    SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return nullptr;
}

namespace {

template <class IsRight>
bool close_if(HANDLE handle, IsRight is_right) noexcept {
    {
        const handle_use look(handle);
        if (!look || !is_right(look->type)) return false;
    }
    const handle_table::number number = number_of(handle);
    handle_slot* const slot = the_handles.close(number);
    if (slot == nullptr) return false;
    forget_here(number);
    auto& named = *static_cast<object*>(slot->object);
    if (named.is_named) {
        const std::lock_guard held(names().lock);
        if (--named.handles == 0) {
            const auto at = names().objects.find(named.name);
            if (at != names().objects.end() && at->second == &named) names().objects.erase(at);
        }
    }
    handle_use::end(*slot);
    return true;
}

}  // namespace

bool close_handle(HANDLE handle, kind of) noexcept {
    return close_if(handle, [of](kind what) { return what == of; });
}
bool close_handle(HANDLE handle) noexcept { return close_if(handle, is_waited_for); }

DWORD granted(DWORD access) noexcept {
    constexpr DWORD everything = GENERIC_ALL | MAXIMUM_ALLOWED;
    if ((access & everything) != 0) return all_access;
    DWORD specific = access & ~(GENERIC_READ | GENERIC_WRITE | GENERIC_EXECUTE);
    if ((access & GENERIC_READ) != 0) specific |= READ_CONTROL | 1;
    if ((access & GENERIC_WRITE) != 0) specific |= READ_CONTROL | EVENT_MODIFY_STATE;
    if ((access & GENERIC_EXECUTE) != 0) specific |= READ_CONTROL | SYNCHRONIZE;
    return specific;
}

bool has_rights(kind what, DWORD access) noexcept {
    constexpr DWORD everything = GENERIC_ALL | MAXIMUM_ALLOWED;
    if ((access & everything) != 0) access &= ~everything;
    const DWORD specific = access & ~(GENERIC_READ | GENERIC_WRITE | GENERIC_EXECUTE);
    return (specific & ~(what == kind::mutex ? MUTEX_ALL_ACCESS : all_access)) == 0;
}

object_name::object_name(LPCSTR name) : is_null_(name == nullptr) {
    if (!is_null_) text_ = name;
    check(text_.size());
}

std::string utf8_of(std::u16string_view text) {
    std::string result;
    for (std::size_t i = 0; i != text.size(); ++i) {
        std::uint32_t point = text[i];
        const bool is_pair = point >= 0xD800 && point < 0xDC00 && i + 1 != text.size() &&
                             text[i + 1] >= 0xDC00 && text[i + 1] < 0xE000;
        if (is_pair) point = 0x10000 + ((point - 0xD800) << 10) + (text[++i] - 0xDC00u);
        append_utf8(result, point);
    }
    return result;
}

object_name::object_name(LPCWSTR name) : is_null_(name == nullptr) {
    const std::u16string_view text = is_null_ ? std::u16string_view() : std::u16string_view(name);
    text_ = utf8_of(text);
    check(text.size());
}

void object_name::check(std::size_t length) noexcept {
    if (length > MAX_PATH) error_ = ERROR_FILENAME_EXCED_RANGE;
    // A name without a prefix is local. A global one keeps its prefix, so that both can exist.
    constexpr std::string_view local = "Local\\";
    constexpr std::string_view global = "Global\\";
    const std::size_t prefix = text_.starts_with(global) ? global.size() : 0;
    if (text_.starts_with(local)) text_.erase(0, local.size());
    if (error_ == 0 && text_.find('\\', prefix) != std::string::npos) error_ = ERROR_PATH_NOT_FOUND;
}

namespace {

bool can_be_shared(kind what) noexcept {
    return what == kind::event || what == kind::semaphore || what == kind::mutex;
}

std::unique_ptr<object> object_in(std::unique_ptr<shared_region> region) {
    switch (region->type()) {
        case shared_type::semaphore: return std::make_unique<shared_semaphore_object>(std::move(region));
        case shared_type::mutex: return std::make_unique<mutex_object>(std::move(region));
        default: return std::make_unique<shared_event_object>(std::move(region));
    }
}

// The object that processes share under this name, with a reference. Null: there is none, and `error` says why.
object* find_shared(const std::string& name, kind wanted, const shared_recipe* how, bool& is_new,
                    DWORD& error) {
    const std::lock_guard held(names().lock);
    auto at = names().objects.find(name);
    if (at != names().objects.end()) {
        if (as_asked_for(at->second->type) != wanted) return error = ERROR_INVALID_HANDLE, nullptr;
        if (at->second->keep_if_alive()) return at->second;
    }
    // The map and the name get their memory before there is an object: its destructor would ask for the lock.
    std::string copy = name;
    if (at == names().objects.end()) at = names().objects.emplace(name, nullptr).first;
    struct remove_if_null {
        std::map<std::string, object*, std::less<>>::iterator at;
        ~remove_if_null() {
            if (at->second == nullptr) names().objects.erase(at);
        }
    } const afterwards{at};
    at->second = nullptr;  // of an object whose destructor waits for the lock
    std::unique_ptr<shared_region> region =
        shared_region::attach(names().folder, name, wanted, how, is_new, error);
    if (region == nullptr) return nullptr;
    std::unique_ptr<object> made = object_in(std::move(region));
    made->name = std::move(copy);
    return at->second = made.release();
}

HANDLE create_shared(const object_name& name, kind wanted, DWORD access, bool* is_new,
                     const shared_recipe& how) {
    const bool owned = wanted == kind::mutex && how.initial != 0;
    thread* const self = owned ? &current_thread() : nullptr;
    bool added = false;
    DWORD error = 0;
    object* const found = find_shared(name.text(), wanted, &how, added, error);
    if (found == nullptr) return no_handle(error);
    if (owned && added) (void)static_cast<mutex_object*>(found)->begin(*self);
    found->keep();
    const HANDLE handle = open_handle(found, access);
    if (handle == nullptr && owned && added) static_cast<mutex_object*>(found)->release(*self);
    if (handle != nullptr) {
        if (is_new != nullptr) *is_new = added;
        SetLastError(added ? 0 : ERROR_ALREADY_EXISTS);
    }
    found->drop();
    return handle;
}

DWORD error_of_access(kind what, DWORD access) noexcept {
    if ((access & ACCESS_SYSTEM_SECURITY) != 0) return ERROR_PRIVILEGE_NOT_HELD;
    return access == 0 || !has_rights(what, access) ? ERROR_ACCESS_DENIED : 0;
}

HANDLE open_shared(const object_name& name, kind wanted, DWORD access) {
    bool added = false;
    DWORD error = 0;
    object* const found = find_shared(name.text(), wanted, nullptr, added, error);
    if (found == nullptr) return no_handle(error);
    error = error_of_access(wanted, access);
    if (error == 0) return open_handle(found, granted(access));
    found->drop();
    return no_handle(error);
}

DWORD share_names(const char* folder) {
    const std::lock_guard held(names().lock);
    std::string path;
    if (const DWORD error = prepare_shared_names(folder, path)) return error;
    if (names().folder == path) return 0;
    if (!names().folder.empty() || !names().objects.empty()) return ERROR_BUSY;
    names().folder = std::move(path);
    return 0;
}

bool names_reach_others() {
    const std::lock_guard held(names().lock);
    return !names().folder.empty();
}

}  // namespace

void forget_name(object& gone) noexcept {
    const std::lock_guard held(names().lock);
    const auto at = names().objects.find(gone.name);
    if (at != names().objects.end() && at->second == &gone) names().objects.erase(at);
}

HANDLE create_named(const object_name& name, kind wanted, DWORD access, object* (*make)(const void* how),
                    const void* how, bool* is_new, const shared_recipe* shared) noexcept {
    return without_exceptions<HANDLE>(nullptr, [&]() -> HANDLE {
        if (name.error() != 0) return no_handle(name.error());
        if (name.text().empty()) {
            const HANDLE handle = open_handle(make(how), access);
            if (handle != nullptr) SetLastError(0);
            return handle;
        }
        std::unique_lock held(names().lock);
        if (shared != nullptr && !names().folder.empty()) {
            held.unlock();
            return create_shared(name, wanted, access, is_new, *shared);
        }
        auto at = names().objects.find(name.text());
        const bool added = at == names().objects.end();
        if (added) {
            std::unique_ptr<object> made(make(how));
            made->name = name.text();
            made->is_named = true;
            at = names().objects.emplace(name.text(), nullptr).first;
            at->second = made.release();
        } else {
            if (at->second->type != wanted) return no_handle(ERROR_INVALID_HANDLE);
            at->second->keep();
        }
        object& found = *at->second;
        const HANDLE handle = open_handle(&found, access);
        if (handle == nullptr) {  // the object is gone if it was new
            if (added) names().objects.erase(at);
            return nullptr;
        }
        ++found.handles;
        if (is_new != nullptr) *is_new = added;
        SetLastError(added ? 0 : ERROR_ALREADY_EXISTS);
        return handle;
    });
}

HANDLE open_named(const object_name& name, kind wanted, DWORD access) noexcept {
    return without_exceptions<HANDLE>(nullptr, [&]() -> HANDLE {
        if (name.is_null()) return no_handle(ERROR_INVALID_PARAMETER);
        if (name.error() != 0) return no_handle(name.error());
        if (can_be_shared(wanted) && names_reach_others()) return open_shared(name, wanted, access);
        const std::lock_guard held(names().lock);
        const auto at = names().objects.find(name.text());
        if (at == names().objects.end()) return no_handle(ERROR_FILE_NOT_FOUND);
        if (at->second->type != wanted) return no_handle(ERROR_INVALID_HANDLE);
        if (const DWORD error = error_of_access(wanted, access)) return no_handle(error);
        at->second->keep();
        const HANDLE handle = open_handle(at->second, granted(access));
        if (handle != nullptr) ++at->second->handles;
        return handle;
    });
}

namespace {

// A further handle of the object that `use` names.
HANDLE duplicate(const handle_use& use, DWORD access) noexcept {
    object& of = *use;
    of.keep();
    if (!of.is_named) return open_handle(&of, access);
    const std::lock_guard held(names().lock);
    const HANDLE handle = open_handle(&of, access);
    // If the last handle was closed while this thread used it, the name is gone, and the object of the new handle has
    // none.
    if (handle != nullptr) ++of.handles;
    return handle;
}

BOOL duplicate(HANDLE source, LPHANDLE target, DWORD access, DWORD options) noexcept {
    if (source == current_process) return fail(ERROR_NOT_SUPPORTED);
    if (source == current_thread_handle) {
        const HANDLE self = handle_of_this_thread();
        if (self == nullptr) return FALSE;
        const BOOL done = duplicate(self, target, access, options);
        (void)close_handle(self);
        return done;
    }
    const handle_use use(source);
    if (!use || !is_waited_for(use->type)) return fail(ERROR_INVALID_HANDLE);
    if (target == nullptr) return TRUE;
    *target = duplicate(use, (options & DUPLICATE_SAME_ACCESS) != 0 ? use.access() : granted(access));
    return *target != nullptr ? TRUE : FALSE;
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

DWORD GetLastError() { return last_error; }
VOID SetLastError(DWORD code) { last_error = code; }

BOOL CloseHandle(HANDLE handle) {
    if (is_pseudo_handle(handle)) return TRUE;
    return close_handle(handle) ? TRUE : fail(ERROR_INVALID_HANDLE);
}

BOOL DuplicateHandle(HANDLE source_process, HANDLE source, HANDLE target_process, LPHANDLE target,
                     DWORD access, BOOL, DWORD options) {
    if (source_process != current_process) return fail(ERROR_INVALID_HANDLE);
    BOOL done = TRUE;
    if (target != nullptr || target_process != nullptr) {
        done = target_process != current_process ? fail(ERROR_INVALID_HANDLE)
                                                 : duplicate(source, target, access, options);
    }
    if ((options & DUPLICATE_CLOSE_SOURCE) != 0 && CloseHandle(source) == 0) return FALSE;
    return done;
}

BOOL GetHandleInformation(HANDLE handle, LPDWORD flags) {
    const handle_use use(handle);
    if (!use && !is_pseudo_handle(handle)) return fail(ERROR_INVALID_HANDLE);
    if (flags == nullptr) return fail(ERROR_INVALID_PARAMETER);
    *flags = 0;
    return TRUE;
}

BOOL TocsinShareNames(LPCSTR folder) {
    return without_exceptions<BOOL>(FALSE, [&] {
        const DWORD error = share_names(folder);
        return error == 0 ? TRUE : fail(error);
    });
}

HANDLE TocsinHandleOfDescriptor(int descriptor, DWORD readiness) {
    if (descriptor < 0 || readiness == 0 || (readiness & ~(TOCSIN_READABLE | TOCSIN_WRITABLE)) != 0)
        return no_handle(ERROR_INVALID_PARAMETER);
    return create(object_name(LPCSTR{nullptr}), kind::descriptor, all_access, [&] {
        return new descriptor_object(descriptor, static_cast<tocsin::readiness>(readiness));
    });
}

}  // extern "C"

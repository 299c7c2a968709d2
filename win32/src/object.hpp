// SPDX-License-Identifier: Apache-2.0
// What handles refer to: objects with a count of references, and perhaps a name.
//
// State: each object has a count of its references. Each open or closing slot of the handle table has one reference,
// and so has everything else that keeps the object. For example, a thread's object is also kept by the thread itself,
// and by each mutex that the thread owns. The object is deleted with its last reference. A thread that uses a slot
// (handle_table.hpp) needs no reference of its own.
//
// Memory order: [object-end] Dropping a reference releases, and the thread that drops the last one acquires. So the
// object's end comes after everything that other threads did with the object.
//
// Checked by: win32/tests/handle_test.cpp, named_test.cpp and storm_test.cpp, win32/tests/unit/handles_test.cpp.
#pragma once

#include "handle_cache.hpp"
#include "handle_table.hpp"
#include "permits.hpp"

#include <tocsin/event.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/win32.h>
#include <tocsin/word_lock.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace tocsin::win32 {

enum class kind : std::uint8_t {
    event,
    semaphore,
    mutex,
    timer,
    thread,
    descriptor,
    shared_event,      // with a name that reaches other processes (shared_names.hpp)
    shared_semaphore,  // the same
    // Not waited for:
    registered_wait,
    timer_queue,
    queued_timer,
    pooled,  // an object of the thread pool, which has no handle
};
constexpr bool is_waited_for(kind what) noexcept { return what < kind::registered_wait; }
// The kind for which a program asks.
constexpr kind as_asked_for(kind what) noexcept {
    if (what == kind::shared_event) return kind::event;
    return what == kind::shared_semaphore ? kind::semaphore : what;
}

// Something with references. It is deleted with the last one.
template <class Self>
class counted {
public:
    void keep() noexcept {
        // no order: the caller has one
        references_.fetch_add(1, std::memory_order_relaxed);
    }
    // For a caller that has no reference, but knows that the memory still exists. False: the object is being deleted.
    bool keep_if_alive() noexcept {
        std::uint32_t seen = references_.load(std::memory_order_relaxed);  // no order: the exchange decides
        while (seen != 0) {
            // no order: what the caller does next is ordered by the lock that it holds
            if (references_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) return true;
        }
        return false;
    }
    void drop() noexcept {
        // [object-end] Releases what this thread did with the object,
        // [object-end] and, with the last reference, acquires what the others did.
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete static_cast<Self*>(this);
    }

protected:
    ~counted() = default;

private:
    std::atomic<std::uint32_t> references_{1};
};

class object : public counted<object> {
public:
    explicit object(kind its_kind) noexcept : type(its_kind) {}
    object(const object&) = delete;
    object& operator=(const object&) = delete;
    virtual ~object() = default;

    const kind type;
    bool is_named = false;    // within the process; written before the first handle is given out
    std::size_t handles = 0;  // of a named object: under the lock of the names (handles.cpp)
    std::string name;
};

// An event, and the base class of timers, which are waited for like events.
class event_object : public object {
public:
    event_object(kind its_kind, reset_mode mode, bool initially_set) noexcept
        : object(its_kind), state(mode, initially_set) {}

    tocsin::event state;
};

class semaphore_object final : public object {
public:
    semaphore_object(LONG initial, LONG maximum) : object(kind::semaphore), permits(initial, maximum) {}

    basic_permits<LONG{tocsin::counting_semaphore<>::max()}> permits;
};

class descriptor_object final : public object {
public:
    descriptor_object(int which, readiness asked_for) noexcept
        : object(kind::descriptor), descriptor(which), asked(asked_for) {}

    const int descriptor;
    const readiness asked;
};

// The pseudo-handles, which are in no table.
inline const HANDLE current_process = reinterpret_cast<HANDLE>(LONG_PTR{-1});  // INVALID_HANDLE_VALUE as well
inline const HANDLE current_thread_handle = reinterpret_cast<HANDLE>(LONG_PTR{-2});
inline bool is_pseudo_handle(HANDLE handle) noexcept {
    return reinterpret_cast<std::uintptr_t>(handle) >= ~std::uintptr_t{1};
}

extern handle_table the_handles;

// The handles that the calling thread has used last (handle_cache.hpp). Null until the thread's first use of an event
// or a semaphore has ended, and if there is no memory.
struct handle_cache : basic_handle_cache<handle_table, 32> {
    bool is_busy = false;
};
extern thread_local constinit handle_cache* this_cache;
constexpr bool may_be_cached(kind what) noexcept {
    return what == kind::event || what == kind::semaphore;  // handle_cache-3
}

inline handle_table::number number_of(HANDLE handle) noexcept {
    return handle_table::number{reinterpret_cast<std::uintptr_t>(handle)} & ~handle_table::number{3};
}

// The use of a handle's slot, for the length of a call.
class handle_use {
public:
    handle_use() noexcept = default;
    explicit handle_use(HANDLE handle) noexcept {
        if (is_pseudo_handle(handle)) return;
        void* ended = nullptr;
        slot_ = the_handles.use(number_of(handle), ended);
        if (ended != nullptr) [[unlikely]]
            drop_closed(ended);
    }
    handle_use(handle_use&& from) noexcept : slot_(std::exchange(from.slot_, nullptr)) {}
    handle_use& operator=(handle_use&&) = delete;
    void swap(handle_use& other) noexcept { std::swap(slot_, other.slot_); }
    ~handle_use() {
        if (slot_ != nullptr) end(*slot_);
    }

    explicit operator bool() const noexcept { return slot_ != nullptr; }
    object& operator*() const noexcept { return *static_cast<object*>(slot_->object); }
    object* operator->() const noexcept { return static_cast<object*>(slot_->object); }
    bool may(DWORD access) const noexcept { return (slot_->access & access) == access; }
    DWORD access() const noexcept { return slot_->access; }

    static void end(handle_slot& slot) noexcept {
        if (void* const gone = the_handles.end_use(slot)) [[unlikely]]
            drop_closed(gone);
    }

private:
    friend class brief_use;
    [[gnu::noinline]] static void drop_closed(void* what) noexcept { static_cast<object*>(what)->drop(); }

    handle_slot* slot_ = nullptr;
};

// The same, by way of the thread's cache. For a call that neither sleeps nor calls code of the user.
class brief_use {
public:
    explicit brief_use(HANDLE handle) noexcept : number_(number_of(handle)), cache_(this_cache) {
        if (cache_ != nullptr && !cache_->is_busy) [[likely]] {
            slot_ = cache_->find(number_);
            if (slot_ != nullptr) [[likely]] {
                cache_->is_busy = true;
                return;
            }
        }
        cache_ = nullptr;
        look_up(handle);
    }
    brief_use(const brief_use&) = delete;
    brief_use& operator=(const brief_use&) = delete;
    ~brief_use() {
        if (cache_ != nullptr) [[likely]] {
            cache_->is_busy = false;
        } else if (slot_ != nullptr) {
            end_or_remember(*slot_, number_);
        }
    }

    explicit operator bool() const noexcept { return slot_ != nullptr; }
    object& operator*() const noexcept { return *static_cast<object*>(slot_->object); }
    object* operator->() const noexcept { return static_cast<object*>(slot_->object); }
    bool may(DWORD access) const noexcept { return (slot_->access & access) == access; }

    // A use for a call that sleeps after all. Called once, at the end.
    handle_use lasting() noexcept {
        const bool stays = may_be_cached((*this)->type);
        if (stays) handle_table::use_again(*slot_);
        handle_use use;
        use.slot_ = stays ? slot_ : std::exchange(slot_, nullptr);
        return use;
    }

    // Ends a use, or leaves it to the cache.
    static void end_or_remember(handle_slot& slot, handle_table::number number) noexcept;
    static void end_or_remember(handle_use& use, HANDLE handle) noexcept {
        end_or_remember(*std::exchange(use.slot_, nullptr), number_of(handle));
    }

private:
    void look_up(HANDLE handle) noexcept;

    handle_slot* slot_ = nullptr;
    const handle_table::number number_;
    handle_cache* cache_;  // null: the slot has been looked up
};

// The object of a handle that is in the thread's cache and has these rights. A call that neither sleeps nor fails looks
// here first, in few instructions. Everything else it does out of line, by way of the classes above.
class cached_use {
public:
    cached_use(HANDLE handle, DWORD access) noexcept : cache_(this_cache) {
        if (cache_ == nullptr || cache_->is_busy) [[unlikely]]
            return;
        const handle_slot* const slot = cache_->find(number_of(handle));
        if (slot == nullptr || (slot->access & access) != access) [[unlikely]]
            return;
        object_ = static_cast<object*>(static_cast<void*>(slot->object));
    }

    // False, too, if the handle is not in the cache.
    bool is(kind wanted) const noexcept { return object_ != nullptr && object_->type == wanted; }
    // Calls `act` with the object, which must be there and of this type.
    template <class Object, class Act>
    void with(Act act) noexcept {
        cache_->is_busy = true;
        act(static_cast<Object&>(*object_));
        cache_->is_busy = false;
    }
    explicit operator bool() const noexcept { return object_ != nullptr; }

private:
    handle_cache* const cache_;
    object* object_ = nullptr;
};

// The results of failed calls. Each of these functions sets the thread's error.
inline BOOL fail(DWORD error) noexcept {
    SetLastError(error);
    return FALSE;
}
inline HANDLE no_handle(DWORD error) noexcept {
    SetLastError(error);
    return nullptr;
}
inline DWORD fail_wait(DWORD error) noexcept {
    SetLastError(error);
    return WAIT_FAILED;
}

// Returns the object if the handle's object is of this kind, and the handle has this right. Otherwise sets the error,
// and returns null.
template <class Object, class Use>
Object* of_kind(const Use& use, kind wanted, DWORD access) noexcept {
    if (!use || use->type != wanted) {
        SetLastError(ERROR_INVALID_HANDLE);
        return nullptr;
    }
    if (!use.may(access)) {
        SetLastError(ERROR_ACCESS_DENIED);
        return nullptr;
    }
    return static_cast<Object*>(&*use);
}

// Opens a handle. Takes over the caller's reference, even if the call fails. A call that fails sets the error and
// returns null.
HANDLE open_handle(object* of, DWORD access) noexcept;
// Closes a handle of an object of this kind. Returns false if this is no such handle.
bool close_handle(HANDLE handle, kind of) noexcept;
// Closes a handle of an object that can be waited for.
bool close_handle(HANDLE handle) noexcept;

// All rights of all kinds. granted() replaces generic rights in what a caller asked for.
inline constexpr DWORD all_access = 0x001F0003u;
DWORD granted(DWORD access) noexcept;
// Whether an object of this kind has all these rights, once generic rights have been replaced.
bool has_rights(kind what, DWORD access) noexcept;

std::string utf8_of(std::u16string_view text);

// A name as the caller gave it. A name in char16_t is converted to UTF-8.
class object_name {
public:
    explicit object_name(LPCSTR name);
    explicit object_name(LPCWSTR name);

    bool is_null() const noexcept { return is_null_; }
    DWORD error() const noexcept { return error_; }  // 0, or why no object can have the name
    const std::string& text() const noexcept { return text_; }

private:
    void check(std::size_t length) noexcept;

    std::string text_;
    bool is_null_;
    DWORD error_ = 0;
};

struct shared_recipe;

// What every Create function does: opens the object of that name, or makes one. Sets the error in all cases. If names
// reach other processes and `shared` is not null, the object is made as `shared` says.
HANDLE create_named(const object_name& name, kind wanted, DWORD access, object* (*make)(const void* how),
                    const void* how, bool* is_new, const shared_recipe* shared) noexcept;
template <class Make>
HANDLE create(const object_name& name, kind wanted, DWORD access, const Make& make, bool* is_new = nullptr,
              const shared_recipe* shared = nullptr) noexcept {
    const auto call = [](const void* how) {
        return static_cast<object*>((*static_cast<const Make*>(how))());
    };
    return create_named(name, wanted, access, call, &make, is_new, shared);
}
// What every Open function does.
HANDLE open_named(const object_name& name, kind wanted, DWORD access) noexcept;

#if defined(__cpp_exceptions)
// The code of an error that tocsin has thrown.
DWORD code_of(const std::system_error& thrown) noexcept;
#endif

// Returns the result of `call`. If `call` throws, sets the error and returns `failed`. Only a lack of memory makes it
// throw, or an object that processes share.
template <class Result, class Call>
Result without_exceptions(Result failed, Call call) noexcept {
#if defined(__cpp_exceptions)
    try {
        return call();
    } catch (const std::system_error& thrown) {
        SetLastError(code_of(thrown));
        return failed;
    } catch (...) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return failed;
    }
#else
    (void)failed;
    return call();
#endif
}

// What a Create or Open function returns.
template <class Make>
HANDLE made(Make make) noexcept {
    return without_exceptions<HANDLE>(nullptr, make);
}

}  // namespace tocsin::win32

// SPDX-License-Identifier: Apache-2.0
// Values that belong to threads: TlsAlloc(), FlsAlloc() and their relatives.
//
// State: two spaces of indexes, each with a state for every index, and a list of the blocks of all threads, under one
// lock. A thread's block has its values, in chunks of 64, and exists from the thread's first value until its end. A
// thread-local pointer refers to it, and so does the thread's value of a pthread key.
//
// Invariants
//   local_storage-1  Only the thread itself adds chunks to its block, under the lock. So it reads its chunks without
//       the lock, and other threads read them under the lock.
//   local_storage-2  A value is written by its thread, and set to null by a thread that frees the index, under the
//       lock. Both are atomic. So the next owner of the index finds null everywhere.
//   local_storage-3  A value is given to its callback once: whoever exchanges the value for null calls the callback.
//
// Memory order: none of the atomic accesses needs one. A value is the thread's own, and a program that frees an index
// orders that with the threads that use it.
//
// Checked by: win32/tests/local_storage_test.cpp.
#include "local_storage.hpp"

#include "object.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/detail/intrusive_list.hpp>
#include <tocsin/word_lock.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>

#include <pthread.h>

namespace tocsin::win32 {
namespace {

constexpr std::size_t chunk_size = 64;
constexpr DWORD tls_indexes = 1088;
constexpr DWORD fls_indexes = 4080;  // index 0 is never given out, as on Windows

using value = std::atomic<void*>;
struct chunk {
    value values[chunk_size]{};
};

enum class space : unsigned { tls, fls };
constexpr DWORD size_of(space which) noexcept { return which == space::tls ? tls_indexes : fls_indexes; }

struct block : detail::list_links<block> {
    chunk* tls[(tls_indexes + chunk_size - 1) / chunk_size]{};
    chunk* fls[(fls_indexes + chunk_size - 1) / chunk_size]{};

    chunk*& at(space which, DWORD index) noexcept {
        return (which == space::tls ? tls : fls)[index / chunk_size];
    }
    value* find(space which, DWORD index) noexcept {
        chunk* const in = at(which, index);
        return in != nullptr ? &in->values[index % chunk_size] : nullptr;
    }
};

struct index_state {
    std::atomic<bool> is_used{false};
    PFLS_CALLBACK_FUNCTION callback = nullptr;
};

struct all_indexes {
    word_lock<> lock;  // of what follows
    index_state tls[tls_indexes];
    index_state fls[fls_indexes];
    detail::intrusive_list<block> blocks;

    index_state& at(space which, DWORD index) noexcept { return (which == space::tls ? tls : fls)[index]; }
};
constinit all_indexes all{};

thread_local constinit block* mine = nullptr;

// Throws std::bad_alloc if the process has no key left. A later call then tries again.
pthread_key_t end_of_storage_key() {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        if (pthread_key_create(&made, [](void*) { end_local_storage(); }) != 0)
            detail::throw_or_die(std::bad_alloc());
        return made;
    }();
    return key;
}

block& block_of_this_thread() {
    if (mine != nullptr) return *mine;
    const pthread_key_t key = end_of_storage_key();
    auto* const made = new block;
    if (pthread_setspecific(key, made) != 0) {
        delete made;
        detail::throw_or_die(std::bad_alloc());
    }
    const std::lock_guard held(all.lock);
    all.blocks.append(*made);
    mine = made;
    return *made;
}

void* exchange_for_null(value& of) noexcept {
    // no order: the top says why
    return of.load(std::memory_order_relaxed) == nullptr ? nullptr
                                                         : of.exchange(nullptr, std::memory_order_relaxed);
}

DWORD allocate(space which, DWORD first, PFLS_CALLBACK_FUNCTION callback) noexcept {
    const std::lock_guard held(all.lock);
    for (DWORD i = first; i != size_of(which); ++i) {
        index_state& one = all.at(which, i);
        if (one.is_used.load(std::memory_order_relaxed)) continue;  // no order: under the lock
        one.is_used.store(true, std::memory_order_relaxed);         // no order: the same
        one.callback = callback;
        return i;
    }
    SetLastError(which == space::tls ? ERROR_NO_MORE_ITEMS : ERROR_NOT_ENOUGH_MEMORY);
    return TLS_OUT_OF_INDEXES;
}

// Takes a value of this index from any thread's block. Null: there is none.
void* take_any(space which, DWORD index) noexcept {
    for (block* at = all.blocks.first(); at != nullptr; at = all.blocks.next(*at)) {
        value* const one = at->find(which, index);
        if (one == nullptr) continue;
        if (void* const found = exchange_for_null(*one)) return found;
    }
    return nullptr;
}

bool is_used(space which, DWORD index) noexcept {
    // no order: the program orders an index' end with its uses
    return index < size_of(which) && all.at(which, index).is_used.load(std::memory_order_relaxed);
}

BOOL release(space which, DWORD index) noexcept {
    PFLS_CALLBACK_FUNCTION callback = nullptr;
    for (bool first = true;; first = false) {
        void* found = nullptr;
        {
            const std::lock_guard held(all.lock);
            if (first && !is_used(which, index)) return fail(ERROR_INVALID_PARAMETER);
            index_state& one = all.at(which, index);
            callback = one.callback;
            found = take_any(which, index);
            while (found != nullptr && callback == nullptr) found = take_any(which, index);
            if (found == nullptr) {
                one.callback = nullptr;
                one.is_used.store(false, std::memory_order_relaxed);  // no order: under the lock
                return TRUE;
            }
        }
        callback(found);
    }
}

void* get(space which, DWORD index) noexcept {
    if (index >= size_of(which)) return SetLastError(ERROR_INVALID_PARAMETER), nullptr;
    SetLastError(ERROR_SUCCESS);
    value* const found = mine != nullptr ? mine->find(which, index) : nullptr;
    return found != nullptr ? found->load(std::memory_order_relaxed) : nullptr;  // no order: the thread's own
}

BOOL set(space which, DWORD index, void* to) noexcept {
    if (index >= size_of(which) || (which == space::fls && !is_used(which, index)))
        return fail(ERROR_INVALID_PARAMETER);
    return without_exceptions<BOOL>(FALSE, [&] {
        block& own = block_of_this_thread();
        value* found = own.find(which, index);
        if (found == nullptr && to == nullptr) return TRUE;
        if (found == nullptr) {
            chunk* const made = std::make_unique<chunk>().release();
            const std::lock_guard held(all.lock);
            own.at(which, index) = made;  // local_storage-1
            found = own.find(which, index);
        }
        found->store(to, std::memory_order_relaxed);  // no order: the thread's own
        return TRUE;
    });
}

// Calls the callbacks of this thread's values. Returns whether there were any.
bool call_back(block& own) noexcept {
    bool any = false;
    for (DWORD i = 0; i < fls_indexes; ++i) {
        value* const one = own.find(space::fls, i);
        if (one == nullptr) {
            i |= chunk_size - 1;  // to the next chunk
            continue;
        }
        void* found = nullptr;
        PFLS_CALLBACK_FUNCTION callback = nullptr;
        {
            const std::lock_guard held(all.lock);
            callback = all.fls[i].callback;
            if (callback != nullptr) found = exchange_for_null(*one);
        }
        if (found == nullptr) continue;
        callback(found);
        any = true;
    }
    return any;
}

}  // namespace

void end_local_storage() noexcept {
    if (mine == nullptr) return;
    // A callback may set further values: then they get a few more rounds, as with pthread keys.
    for (int round = 0; round != 4 && call_back(*mine); ++round) {
    }
    block* const own = mine;
    {
        const std::lock_guard held(all.lock);
        all.blocks.remove(*own);
    }
    mine = nullptr;
    (void)pthread_setspecific(end_of_storage_key(), nullptr);
    for (chunk* const each : own->tls) delete each;
    for (chunk* const each : own->fls) delete each;
    delete own;
}

}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

DWORD TlsAlloc() { return allocate(space::tls, 0, nullptr); }
BOOL TlsFree(DWORD index) { return release(space::tls, index); }
LPVOID TlsGetValue(DWORD index) { return get(space::tls, index); }
BOOL TlsSetValue(DWORD index, LPVOID value) { return set(space::tls, index, value); }

DWORD FlsAlloc(PFLS_CALLBACK_FUNCTION callback) { return allocate(space::fls, 1, callback); }
BOOL FlsFree(DWORD index) { return release(space::fls, index); }
PVOID FlsGetValue(DWORD index) { return get(space::fls, index); }
BOOL FlsSetValue(DWORD index, PVOID value) { return set(space::fls, index, value); }

}  // extern "C"

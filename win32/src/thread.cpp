// SPDX-License-Identifier: Apache-2.0
// Threads: their handles, the mutexes that they own, the calls that are queued for them, and their end.
//
// State: every thread that this layer has created has an object. Any other thread gets one when it first needs one, for
// example to take a mutex or to wait alertably. A thread-local pointer refers to the object, and so does the thread's
// value of a pthread key. For this layer, a thread ends when the key's destructor runs. Such destructors run after
// those of C++'s thread-local objects (glibc 2.36, musl 1.2).
//
// Invariants
//   thread-1  At its end, a thread first hands on its mutexes as abandoned, then refuses further calls, then sets its
//       event. So when another thread's wait for the handle returns, all this is done.
//   thread-2  An owned mutex is in its owner's list, and has a reference to the owner. The list does not keep the mutex
//       alive. When the mutex's last handle is closed and its last wait has ended, the mutex is deleted, and leaves the
//       list under the owner's lock. If the owner ends at that moment, it finds that the mutex has no reference any
//       more. Then the owner takes the mutex off the list, notes that in the mutex, and does nothing else to it.
//   thread-3  Calls are queued and taken under the thread's lock, and `called` changes there, too. Whenever that lock
//       is free, `called` is set if and only if a call is queued. An alertable wait has `called` among its sources, or
//       a stop that the queueing thread requests under the same lock. So a call that is queued before the wait, or
//       during it, ends the wait. This is true inside a queued call, too, while more calls are queued.
//   thread-4  A place in the queue is the queue's, which deletes it with its call, or a timer's. A timer takes its call
//       back before it gives up its reference to the thread. So the queue never refers to a timer that is gone.
//   thread-5  A thread is in a list from its construction until its destruction, under the lock of that list. Whoever
//       finds it there may use it only if it gets a reference under this lock, because it may just be ending.
//   thread-6  A mutex that processes share has a reference while it is owned, because the kernel's list of what the
//       owner holds refers to its memory. So it keeps its name until its owner has released it or has ended.
//
// Checked by: win32/tests/unit/waits_test.cpp, mutex_test.cpp, memory_test.cpp, win32/tests.
#include "thread.hpp"

#include "local_storage.hpp"

#include <tocsin/detail/exceptions.hpp>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace tocsin::win32 {
namespace {

constexpr std::size_t smallest_reservation = std::size_t{64} * 1024;  // as on Windows
constexpr DWORD max_suspensions = 127;                                // MAXIMUM_SUSPEND_COUNT
constexpr std::size_t usual_stack = std::size_t{1024} * 1024;  // as on Windows; musl's and macOS' are smaller

thread_local constinit thread* this_thread = nullptr;
thread_local constinit DWORD this_id = 0;
std::atomic<DWORD> last_id{0};

// All threads that have an object: thread-5.
struct thread_list {
    word_lock<> lock;
    detail::intrusive_list<thread> threads;
};
constinit thread_list lists[64];
thread_list& list_of(DWORD id) noexcept { return lists[id / 4 % std::size(lists)]; }

DWORD new_id() noexcept { return last_id.fetch_add(4, std::memory_order_relaxed) + 4; }  // no order: a number

void end_of_thread(void* of) noexcept {
    auto& ending = *static_cast<thread*>(of);
    end_local_storage();
    ending.properties.thread_ends();
    ending.finish();
    this_thread = nullptr;
    ending.drop();
}

// Throws std::bad_alloc if the process has no key left. A later call then tries again.
pthread_key_t end_key() {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        if (pthread_key_create(&made, end_of_thread) != 0) detail::throw_or_die(std::bad_alloc());
        return made;
    }();
    return key;
}

// Makes `self` the object of the calling thread. Takes over a reference, unless there is no memory: then returns false.
bool adopt(thread& self) {
    if (pthread_setspecific(end_key(), &self) != 0) return false;
    this_thread = &self;
    this_id = self.id;
    self.properties.thread_begins();
    return true;
}

}  // namespace

// In checked builds, diagnose.hpp shows the owner.
void mutex_object::note_taken() noexcept {
#if TOCSIN_CHECKED
    detail::note_taken(&state.free(), detail::event_as_lock);
#endif
}
void mutex_object::note_freed() noexcept {
#if TOCSIN_CHECKED
    detail::note_freed(&state.free(), detail::event_as_lock);
#endif
}

void mutex_object::hand_on(bool abandoned) noexcept {
    if (!shared) return state.give_up(abandoned);
    state.forget_owner();
    shared->hand_on(abandoned);
    drop();  // thread-6
}

mutex_object::~mutex_object() {
    if (shared) forget_name(*this);
    if (owner_ == nullptr) return;
    note_freed();
    {
        const std::lock_guard held(owner_->lock_);
        if (!unlisted_) owner_->mutexes_.remove(*this);
    }
    owner_->drop();
}

bool mutex_object::begin(thread& by) noexcept {
    if (shared) {
        shared->note_owner();
        keep();  // thread-6
    }
    by.keep();
    owner_ = &by;
    note_taken();
    const std::lock_guard held(by.lock_);
    by.mutexes_.append(*this);
    return state.begin(&by);
}

void mutex_object::release(thread& by, bool abandoned) noexcept {
    if (!state.leave()) return;
    {
        const std::lock_guard held(by.lock_);
        by.mutexes_.remove(*this);
    }
    owner_ = nullptr;
    note_freed();
    hand_on(abandoned);
    by.drop();
}

thread::thread(LPTHREAD_START_ROUTINE function, void* argument, std::size_t stack_size,
               bool is_reservation) noexcept
    : object(kind::thread),
      id(new_id()),
      function_(function),
      argument_(argument),
      stack_size_(stack_size),
      is_reservation_(is_reservation) {
    be_listed();
}

thread::thread() noexcept
    : object(kind::thread),
      id(id_of_this_thread()),
      function_(nullptr),
      argument_(nullptr),
      stack_size_(0),
      is_reservation_(false) {
    state_ = state::started;
    be_listed();
}

thread::~thread() {
    forget_calls();  // those of a thread that never started
    thread_list& in = list_of(id);
    const std::lock_guard held(in.lock);
    in.threads.remove(*this);
}

void thread::be_listed() noexcept {
    thread_list& in = list_of(id);
    const std::lock_guard held(in.lock);
    in.threads.append(*this);
}

thread* thread::find(DWORD its_id) noexcept {
    thread_list& in = list_of(its_id);
    const std::lock_guard held(in.lock);
    for (thread* at = in.threads.first(); at != nullptr; at = in.threads.next(*at)) {
        if (at->id == its_id) return at->keep_if_alive() ? at : nullptr;
    }
    return nullptr;
}

void* thread::main(void* self) {
    thread& me = *static_cast<thread*>(self);
    if (!adopt(me)) {
        std::fputs("tocsin: a new thread found no memory for its thread-specific key\n", stderr);
        std::abort();
    }
    (void)me.run_queued();
    me.set_exit_code(me.function_(me.argument_));
    return nullptr;
}

// A size that is not a reservation says how much of the stack is to have memory at first. Here, the system decides
// that. As on Windows, such a size can make a stack larger than usual, but never smaller.
void set_thread_stack(pthread_attr_t& how, std::size_t wanted, bool is_reservation) noexcept {
    std::size_t least = 0;
    if (is_reservation) {
        least = std::max(static_cast<std::size_t>(PTHREAD_STACK_MIN), smallest_reservation);
    } else {
        (void)pthread_attr_getstacksize(&how, &least);
        least = std::max(least, usual_stack);
    }
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    (void)pthread_attr_setstacksize(&how, (std::max(wanted, least) + page - 1) / page * page);
}

DWORD thread::suspend() noexcept {
    const std::lock_guard held(lock_);
    switch (state_) {
        case state::suspended:
            if (suspensions_ == max_suspensions) return fail_wait(ERROR_SIGNAL_REFUSED);
            return suspensions_++;
        case state::started: return fail_wait(ERROR_NOT_SUPPORTED);
        case state::ended: break;
    }
    return fail_wait(ERROR_ACCESS_DENIED);
}

DWORD thread::resume() noexcept {
    const std::lock_guard held(lock_);
    if (state_ != state::suspended) return 0;
    if (suspensions_ > 1) return suspensions_--;
    pthread_attr_t how;
    (void)pthread_attr_init(&how);
    (void)pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    set_thread_stack(how, stack_size_, is_reservation_ && stack_size_ != 0);
    keep();
    state_ = state::started;
    pthread_t made;
    const int error = pthread_create(&made, &how, main, this);
    (void)pthread_attr_destroy(&how);
    if (error == 0) return 1;
    state_ = state::suspended;
    drop();
    SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return WAIT_FAILED;
}

bool thread::end_unstarted(DWORD code) noexcept {
    const std::lock_guard held(lock_);
    if (state_ != state::suspended) return state_ == state::ended;
    state_ = state::ended;
    forget_calls();
    set_exit_code(code);
    ended.set();
    return true;
}

void thread::abandon_mutexes() noexcept {
    for (;;) {
        mutex_object* owned = nullptr;
        {
            const std::lock_guard held(lock_);
            owned = mutexes_.take_first();
            if (owned == nullptr) return;
            if (!owned->keep_if_alive()) {
                owned->unlisted_ = true;  // thread-2
                continue;
            }
        }
        owned->owner_ = nullptr;
        owned->note_freed();
        owned->hand_on(true);
        owned->drop();
        drop();
    }
}

void thread::finish() noexcept {
    abandon_mutexes();
    if (!has_code_) set_exit_code(0);
    {
        const std::lock_guard held(lock_);
        state_ = state::ended;
        forget_calls();
    }
    ended.set();
}

bool thread::queue(const queued_call& call) {
    auto* const place = new call_place;
    place->is_allocated = true;
    if (queue(call, *place)) return true;
    delete place;
    return false;
}

bool thread::queue(const queued_call& call, call_place& place) noexcept {
    wake_list freed;
    {
        const std::lock_guard held(lock_);
        if (state_ == state::ended) return false;
        if (place.is_queued) return true;
        place.call = call;
        place.is_queued = true;
        calls_.append(place);
        called.set(freed);
        if (stop_ != nullptr) (void)stop_->request_stop();
    }
    freed.wake();
    return true;
}

void thread::remove(call_place& place) noexcept {
    calls_.remove(place);
    place.is_queued = false;
    if (place.is_allocated) delete &place;
    if (calls_.empty()) called.reset();
}

void thread::take_back(call_place& place) noexcept {
    const std::lock_guard held(lock_);
    if (place.is_queued) remove(place);
}

bool thread::has_ended() noexcept {
    const std::lock_guard held(lock_);
    return state_ == state::ended;
}

void thread::forget_calls() noexcept {
    while (call_place* const first = calls_.first()) remove(*first);
}

bool thread::take_call(queued_call& taken) noexcept {
    const std::lock_guard held(lock_);
    call_place* const first = calls_.first();
    if (first == nullptr) return false;
    taken = first->call;
    remove(*first);
    return true;
}

bool thread::run_queued() {
    queued_call next;
    bool any = false;
    for (; take_call(next); any = true) next.run(next);
    return any;
}

bool thread::stop_when_called(std::stop_source* stop) noexcept {
    const std::lock_guard held(lock_);
    if (stop != nullptr && !calls_.empty()) return false;
    stop_ = stop;
    return true;
}

thread* current_thread_or_null() noexcept { return this_thread; }

thread& current_thread() {
    if (this_thread != nullptr) [[likely]]
        return *this_thread;
    auto made = std::make_unique<thread>();
    if (!adopt(*made)) detail::throw_or_die(std::bad_alloc());
    return *made.release();
}

DWORD id_of_this_thread() noexcept {
    if (this_id == 0) this_id = new_id();
    return this_id;
}

HANDLE handle_of_this_thread() noexcept {
    return without_exceptions<HANDLE>(nullptr, [] {
        thread& self = current_thread();
        self.keep();
        return open_handle(&self, THREAD_ALL_ACCESS);
    });
}

namespace {

HANDLE create_thread(LPTHREAD_START_ROUTINE function, void* argument, std::size_t stack_size, DWORD flags,
                     DWORD* id) {
    return without_exceptions<HANDLE>(nullptr, [&]() -> HANDLE {
        if (function == nullptr) return no_handle(ERROR_INVALID_PARAMETER);
        (void)end_key();  // so that the new thread has it
        auto* const made =
            new thread(function, argument, stack_size, (flags & STACK_SIZE_PARAM_IS_A_RESERVATION) != 0);
        const DWORD its_id = made->id;
        made->keep();
        const HANDLE handle = open_handle(made, THREAD_ALL_ACCESS);
        const bool runs = handle != nullptr && ((flags & CREATE_SUSPENDED) != 0 || made->resume() == 1);
        made->drop();
        if (!runs) {
            if (handle != nullptr) (void)close_handle(handle);
            return no_handle(ERROR_NOT_ENOUGH_MEMORY);
        }
        if (id != nullptr) *id = its_id;
        return handle;
    });
}

}  // namespace
}  // namespace tocsin::win32

using namespace tocsin::win32;

extern "C" {

HANDLE CreateThread(LPSECURITY_ATTRIBUTES, SIZE_T stack_size, LPTHREAD_START_ROUTINE function,
                    LPVOID argument, DWORD flags, LPDWORD id) {
    return create_thread(function, argument, stack_size, flags, id);
}

uintptr_t _beginthreadex(void*, unsigned stack_size, unsigned (*function)(void*), void* argument,
                         unsigned flags, unsigned* id) {
    return reinterpret_cast<uintptr_t>(create_thread(function, argument, stack_size, flags, id));
}

void _endthreadex(unsigned code) { ExitThread(code); }

VOID ExitThread(DWORD code) {
    if (thread* const self = current_thread_or_null()) self->set_exit_code(code);
    pthread_exit(nullptr);
}

BOOL GetExitCodeThread(HANDLE handle, LPDWORD code) {
    return with_thread(handle, FALSE, [&](thread& of) -> BOOL {
        if (code == nullptr) return fail(ERROR_INVALID_PARAMETER);
        *code = of.ended.try_wait() ? of.exit_code() : STILL_ACTIVE;
        return TRUE;
    });
}

DWORD ResumeThread(HANDLE handle) {
    return with_thread(handle, WAIT_FAILED, [](thread& of) -> DWORD { return of.resume(); });
}

DWORD SuspendThread(HANDLE handle) {
    return with_thread(handle, WAIT_FAILED, [](thread& of) -> DWORD { return of.suspend(); });
}

BOOL TerminateThread(HANDLE handle, DWORD code) {
    return with_thread(handle, FALSE, [&](thread& of) -> BOOL {
        return of.end_unstarted(code) ? TRUE : fail(ERROR_NOT_SUPPORTED);
    });
}

HANDLE GetCurrentThread() { return current_thread_handle; }
DWORD GetCurrentThreadId() { return id_of_this_thread(); }
DWORD GetThreadId(HANDLE handle) {
    return with_thread(handle, DWORD{0}, [](thread& of) -> DWORD { return of.id; });
}
HANDLE GetCurrentProcess() { return current_process; }
DWORD GetCurrentProcessId() { return static_cast<DWORD>(getpid()); }

DWORD QueueUserAPC(PAPCFUNC function, HANDLE handle, ULONG_PTR argument) {
    return with_thread(handle, DWORD{0}, [&](thread& of) -> DWORD {
        if (function == nullptr) return fail(ERROR_INVALID_PARAMETER), DWORD{0};
        const queued_call call{
            [](const queued_call& made) { reinterpret_cast<PAPCFUNC>(made.function)(made.arguments[0]); },
            reinterpret_cast<void (*)()>(function),
            {argument, 0, 0}};
        return of.queue(call) ? 1u : (fail(ERROR_GEN_FAILURE), 0u);
    });
}

BOOL SwitchToThread() { return sched_yield() == 0 ? TRUE : FALSE; }

}  // extern "C"

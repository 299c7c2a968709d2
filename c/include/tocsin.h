// SPDX-License-Identifier: Apache-2.0
// tocsin for C: events, semaphores, address waits, waits for several things, group commit. For C11, for C++, and for
// every language that can call C.
//
//     tocsin_auto_event job = TOCSIN_EVENT_UNSET;
//     tocsin_auto_event_wait(&job, NULL);                       // a consumer: sleeps until somebody sets the event
//     tocsin_auto_event_set(&job);                              // a producer
//
// Each function does what the C++ member or function of the same name does. The C++ headers in include/tocsin say what
// is ordered before what, what may be destroyed when, and what each call costs. c/docs/c.md is the guide. These things
// differ in C:
//
// - Objects. The caller provides the memory. `tocsin_X_init` makes an object in it, and `tocsin_X_destroy` ends the
//   object. Between these two calls, an object must neither move nor be copied. Events, semaphores, latches, barriers
//   and conditions own nothing, so you may leave out their destroy. (In a library that checks for misuse, their destroy
//   ends the program if a thread still waits.) A lock has no destroy. Timers and wake lists must be destroyed. Each
//   other object is one pointer, to memory that its init allocates. After a failed init, and after destroy, every call
//   refuses such an object.
// - Results. Most functions return a tocsin_status. Zero is success. A positive number says in which other way the call
//   ended. A negative number is an error: the call has taken nothing. (There are two special cases. TOCSIN_ERROR_FLUSH
//   says what became of work that was done. For TOCSIN_ERROR_TOO_GREAT, see release() in <tocsin/semaphore.hpp>.)
// - Bad input. For a null pointer, a misaligned object or a number out of range, a call returns TOCSIN_ERROR_INVALID.
//   (A release of too many permits returns TOCSIN_ERROR_TOO_GREAT.) A function that returns no status answers such
//   input with false, 0 or -1. No call lets a C++ exception out. A few mistakes end the program with a message, as in
//   C++: counting a latch below zero, more arrivals than a barrier expects, a watchdog that is destroyed in its own
//   function, and every mistake that only a checked build notices. In a library that was built without exceptions,
//   every error that C++ would throw ends the program as well. Only what the functions of C check themselves is still
//   refused: pointers, alignment, limits, kinds of sources, most numbers.
// - Callbacks must neither throw nor longjmp. No thread may be cancelled inside a call.
//
// ABI: within one TOCSIN_API_VERSION, no function or number is removed or changed, and no structure grows. The shared
// library's soname contains this number, and so does the version of its symbols.
#ifndef TOCSIN_H
#define TOCSIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOCSIN_API_VERSION 1

#if defined(_WIN32) && defined(TOCSIN_C_SHARED) && defined(TOCSIN_C_BUILDING)
#define TOCSIN_C_API __declspec(dllexport)
#elif defined(_WIN32) && defined(TOCSIN_C_SHARED)
#define TOCSIN_C_API __declspec(dllimport)
#elif defined(_WIN32)
#define TOCSIN_C_API
#else
#define TOCSIN_C_API __attribute__((visibility("default")))
#endif

// Every enumeration type has 32 bits, in both languages. Some objects need more alignment than their 64-bit members
// have on 32-bit x86.
#ifdef __cplusplus
#define TOCSIN_INT : int32_t
#define TOCSIN_ALIGNED_8 alignas(8)
#define TOCSIN_ALIGNED_64 alignas(64)
extern "C" {
#else
#define TOCSIN_INT
#define TOCSIN_ALIGNED_8 _Alignas(8)
#define TOCSIN_ALIGNED_64 _Alignas(64)
#endif

// ---- Results -------------------------------------------------------------------------------------------------------

typedef enum tocsin_status TOCSIN_INT {
    TOCSIN_OK = 0,  // done; what was waited for has happened; a signal or permit now belongs to the caller
    TOCSIN_TIMED_OUT = 1,     // the deadline passed first; nothing was taken
    TOCSIN_STOPPED = 2,       // a stop was requested first; nothing was taken
    TOCSIN_DIFFERED = 3,      // the object at the address holds another value; the thread did not sleep
    TOCSIN_NOTHING_DONE = 4,  // there was nothing to take, to remove or to do
    TOCSIN_OWNER_DIED = 5,    // of a shared lock: the caller holds it; an earlier owner died with it
    TOCSIN_LOCK_LOST = 6,     // of a shared lock: nobody can hold it any more

    TOCSIN_ERROR_INVALID = -1,  // an argument is null, misaligned, out of range, or makes no sense here
    TOCSIN_ERROR_NO_MEMORY = -2,
    TOCSIN_ERROR_TOO_GREAT = -3,       // the semaphore would count beyond TOCSIN_SEMAPHORE_MAX
    TOCSIN_ERROR_EXISTS = -4,          // a member already (EEXIST)
    TOCSIN_ERROR_NOT_FOUND = -5,       // not a member (ENOENT); no such process (ESRCH)
    TOCSIN_ERROR_BAD_DESCRIPTOR = -6,  // not an open descriptor (EBADF)
    TOCSIN_ERROR_NO_DESCRIPTORS = -7,  // too many are open (EMFILE, ENFILE)
    TOCSIN_ERROR_BUSY = -8,            // another thread waits in the set; the operation waits; EBUSY, EAGAIN
    TOCSIN_ERROR_NOT_PERMITTED = -9,   // EPERM, EACCES
    TOCSIN_ERROR_UNSUPPORTED = -10,    // this system can't do that (ENOSYS, ENOTSUP)
    TOCSIN_ERROR_SYSTEM = -11,         // any other error of the system: tocsin_last_system_error()
    TOCSIN_ERROR_FLUSH = -12,          // the flush of the group reported a failure
    TOCSIN_ERROR_UNKNOWN = -13
} tocsin_status;

// The TOCSIN_API_VERSION with which the library was built, and the library's version ("0.1.0").
TOCSIN_C_API uint32_t tocsin_api_version(void);
TOCSIN_C_API const char* tocsin_version(void);
// A few words for any status. Never null. The text is never freed.
TOCSIN_C_API const char* tocsin_error_text(tocsin_status status);
// The message of the calling thread's last call that returned an error. It names the call and says what was wrong. It
// is empty before the first error, and stays until the thread's next call that returns an error.
TOCSIN_C_API const char* tocsin_last_error(void);
// The number (errno) of that error, or 0 if it has none.
TOCSIN_C_API int tocsin_last_system_error(void);

// ---- How long to wait ----------------------------------------------------------------------------------------------

typedef enum tocsin_clock TOCSIN_INT {
    TOCSIN_CLOCK_NEVER = 0,     // no deadline; `nanoseconds` is ignored
    TOCSIN_CLOCK_FROM_NOW = 1,  // counted from the call; zero or less only tries
    TOCSIN_CLOCK_STEADY = 2,    // a time of the steady clock: tocsin_steady_now(); on Linux CLOCK_MONOTONIC
    TOCSIN_CLOCK_SYSTEM = 3,    // a time of day, counted from the beginning of 1970 (UTC)
    TOCSIN_CLOCK_BOOT = 4       // a time of tocsin_boot_now(), which also runs while the machine is suspended
} tocsin_clock;

typedef struct tocsin_deadline {
    tocsin_clock clock;
    int64_t nanoseconds;
} tocsin_deadline;

TOCSIN_C_API int64_t tocsin_steady_now(void);  // in nanoseconds
// <tocsin/boot_clock.hpp>. A thread that waits for a time of this clock wakes up once a second.
TOCSIN_C_API int64_t tocsin_boot_now(void);

typedef enum tocsin_spin_mode TOCSIN_INT {
    TOCSIN_SPIN_DEFAULT = 0,   // the policy of the process, which is `adaptive` until somebody sets it
    TOCSIN_SPIN_NONE = 1,      // sleep at once
    TOCSIN_SPIN_ADAPTIVE = 2,  // spin (for `nanoseconds`, 100 us at most) or yield where that pays
    TOCSIN_SPIN_FIXED = 3      // spin for `nanoseconds` (a second at most), then sleep
} tocsin_spin_mode;

typedef struct tocsin_spin {
    tocsin_spin_mode mode;
    uint32_t nanoseconds;
} tocsin_spin;

// Sets the policy of all waits that name none.
TOCSIN_C_API tocsin_status tocsin_set_spin_policy(tocsin_spin policy);

// Whether the library may enlarge the kernel's table of the process's sleeping threads, as it does by default on Linux
// 6.16 and later when the process has many threads (tocsin/futex_table.hpp).
TOCSIN_C_API void tocsin_set_futex_table_growth(bool allowed);
TOCSIN_C_API bool tocsin_futex_table_growth(void);

// A request to stop, which ends waits in any number of threads. tocsin_stop_share() makes another object for the same
// request. Each of these objects must be destroyed, in any order.
typedef struct tocsin_stop {
    void* opaque;
} tocsin_stop;

TOCSIN_C_API tocsin_status tocsin_stop_init(tocsin_stop* stop);
TOCSIN_C_API tocsin_status tocsin_stop_share(const tocsin_stop* from, tocsin_stop* to);
TOCSIN_C_API tocsin_status tocsin_stop_destroy(tocsin_stop* stop);
// TOCSIN_NOTHING_DONE if the stop was requested before.
TOCSIN_C_API tocsin_status tocsin_stop_request(tocsin_stop* stop);
TOCSIN_C_API bool tocsin_stop_is_requested(const tocsin_stop* stop);

// Which of several ready sources a wait for any takes.
typedef enum tocsin_wait_order TOCSIN_INT {
    TOCSIN_ORDER_LISTED =
        0,  // the one with the lowest index; it hides those behind it as long as it stays ready
    TOCSIN_ORDER_FAIR =
        1  // begins with one chosen at random: each of n that stay ready is taken once in n waits,
           // on average
} tocsin_wait_order;

// The limits of a wait. If all members are zero, there is no deadline, no stop, default spinning, and the order of the
// list. A null pointer in place of the limits means the same. The stop must exist until the call that is given the
// limits has returned. `order` is for waits for any of several sources, also those of a condition and an operation. If
// `stop_first` is true, a stop that was requested before the wait begins ends it at once, even if a source is ready.
// That is for waits for any or for all, and for waits of a wait set. Other calls ignore these two members.
typedef struct tocsin_limits {
    tocsin_deadline until;
    const tocsin_stop* stop;
    tocsin_spin spin;
    tocsin_wait_order order;
    bool stop_first;
} tocsin_limits;

// ---- Events: one byte ----------------------------------------------------------------------------------------------

// A gate: after a set, every thread that waits or arrives passes, until a reset.
typedef struct tocsin_manual_event {
    uint8_t opaque;
} tocsin_manual_event;

// A token: a set releases exactly one thread, either one that waits or the next that arrives.
typedef struct tocsin_auto_event {
    uint8_t opaque;
} tocsin_auto_event;

// Initializers. They are part of the ABI, so memory that is all zero is an unset event.
#define TOCSIN_EVENT_UNSET {0}
#define TOCSIN_EVENT_SET {1}

// set() and reset() may be called in a signal handler under the conditions that <tocsin/event.hpp> names.
// _try_wait() returns TOCSIN_NOTHING_DONE if the event is not set. A timeout never consumes a signal.
TOCSIN_C_API tocsin_status tocsin_manual_event_init(tocsin_manual_event* event, bool initially_set);
TOCSIN_C_API tocsin_status tocsin_manual_event_destroy(tocsin_manual_event* event);
TOCSIN_C_API tocsin_status tocsin_manual_event_set(tocsin_manual_event* event);
TOCSIN_C_API tocsin_status tocsin_manual_event_reset(tocsin_manual_event* event);
TOCSIN_C_API bool tocsin_manual_event_is_set(const tocsin_manual_event* event);
TOCSIN_C_API tocsin_status tocsin_manual_event_try_wait(tocsin_manual_event* event);
TOCSIN_C_API tocsin_status tocsin_manual_event_wait(tocsin_manual_event* event, const tocsin_limits* how);

TOCSIN_C_API tocsin_status tocsin_auto_event_init(tocsin_auto_event* event, bool initially_set);
TOCSIN_C_API tocsin_status tocsin_auto_event_destroy(tocsin_auto_event* event);
TOCSIN_C_API tocsin_status tocsin_auto_event_set(tocsin_auto_event* event);
TOCSIN_C_API tocsin_status tocsin_auto_event_reset(tocsin_auto_event* event);
TOCSIN_C_API bool tocsin_auto_event_is_set(const tocsin_auto_event* event);
TOCSIN_C_API tocsin_status tocsin_auto_event_try_wait(tocsin_auto_event* event);
TOCSIN_C_API tocsin_status tocsin_auto_event_wait(tocsin_auto_event* event, const tocsin_limits* how);

// _set_into() leaves the waking to the caller. The caller sets many events, perhaps under a lock that the woken threads
// want, and then ends all waits in the list by one _wake(). A wait in the list already has what it waited for, but does
// not end until the _wake(). (The list gets no waits for all of several sources: the set itself ends them.)
typedef struct tocsin_wake_list {
    uint64_t opaque[8];
} tocsin_wake_list;

TOCSIN_C_API tocsin_status tocsin_wake_list_init(tocsin_wake_list* list);
// The list must be empty, as it is after _wake(). If it is not, a checked build ends the program, and any other build
// wakes the threads.
TOCSIN_C_API tocsin_status tocsin_wake_list_destroy(tocsin_wake_list* list);
TOCSIN_C_API tocsin_status tocsin_wake_list_wake(tocsin_wake_list* list);
TOCSIN_C_API tocsin_status tocsin_manual_event_set_into(tocsin_manual_event* event, tocsin_wake_list* list);
TOCSIN_C_API tocsin_status tocsin_auto_event_set_into(tocsin_auto_event* event, tocsin_wake_list* list);

// ---- Semaphores: four bytes ----------------------------------------------------------------------------------------

typedef struct tocsin_semaphore {
    uint32_t opaque;
} tocsin_semaphore;

#define TOCSIN_SEMAPHORE_MAX 0x3FFFFFFFu
#define TOCSIN_SEMAPHORE_INIT(permits) {(permits) * 4u}  // at most TOCSIN_SEMAPHORE_MAX permits

// An acquire takes all its permits at once. Acquires are served first in, first out. An acquire of more than
// TOCSIN_SEMAPHORE_MAX permits is refused.
TOCSIN_C_API tocsin_status tocsin_semaphore_init(tocsin_semaphore* semaphore, uint32_t permits);
TOCSIN_C_API tocsin_status tocsin_semaphore_destroy(tocsin_semaphore* semaphore);
TOCSIN_C_API tocsin_status tocsin_semaphore_release(tocsin_semaphore* semaphore, uint32_t permits);
TOCSIN_C_API tocsin_status tocsin_semaphore_try_acquire(tocsin_semaphore* semaphore, uint32_t permits);
TOCSIN_C_API tocsin_status tocsin_semaphore_acquire(tocsin_semaphore* semaphore, uint32_t permits,
                                                    const tocsin_limits* how);

// ---- Latches and barriers ------------------------------------------------------------------------------------------

typedef struct tocsin_latch {
    uint32_t opaque[2];
} tocsin_latch;

#define TOCSIN_ARRIVALS_MAX 0x3FFFFFFFu  // of a latch, and of a phase of a barrier

TOCSIN_C_API tocsin_status tocsin_latch_init(tocsin_latch* latch, uint32_t expected);
TOCSIN_C_API tocsin_status tocsin_latch_destroy(tocsin_latch* latch);
TOCSIN_C_API tocsin_status tocsin_latch_count_down(tocsin_latch* latch, uint32_t by);
TOCSIN_C_API tocsin_status tocsin_latch_try_wait(const tocsin_latch* latch);
TOCSIN_C_API tocsin_status tocsin_latch_wait(const tocsin_latch* latch, const tocsin_limits* how);
// Counts down by `by`, then waits for zero.
TOCSIN_C_API tocsin_status tocsin_latch_arrive_and_wait(tocsin_latch* latch, uint32_t by);

typedef struct tocsin_barrier {
    uint64_t opaque[4];
} tocsin_barrier;

// One phase of a barrier. It may be copied. Once the next phase has ended, the result of a wait with this token is
// undefined.
typedef struct tocsin_barrier_token {
    void* opaque;
} tocsin_barrier_token;

// `completion` may be null. The last thread to arrive calls it with `context`, before any thread passes.
TOCSIN_C_API tocsin_status tocsin_barrier_init(tocsin_barrier* barrier, uint32_t expected,
                                               void (*completion)(void* context), void* context);
TOCSIN_C_API tocsin_status tocsin_barrier_destroy(tocsin_barrier* barrier);
TOCSIN_C_API tocsin_status tocsin_barrier_arrive(tocsin_barrier* barrier, uint32_t arrivals,
                                                 tocsin_barrier_token* token);
TOCSIN_C_API tocsin_status tocsin_barrier_try_wait(const tocsin_barrier* barrier,
                                                   const tocsin_barrier_token* token);
TOCSIN_C_API tocsin_status tocsin_barrier_wait(const tocsin_barrier* barrier,
                                               const tocsin_barrier_token* token, const tocsin_limits* how);
TOCSIN_C_API tocsin_status tocsin_barrier_arrive_and_wait(tocsin_barrier* barrier);
TOCSIN_C_API tocsin_status tocsin_barrier_arrive_and_drop(tocsin_barrier* barrier);

// ---- Addresses -----------------------------------------------------------------------------------------------------

// If the object of 1, 2, 4 or 8 bytes at `address` holds `expected`, sleeps until a wake on that address (TOCSIN_OK),
// the deadline or a stop. If the object holds another value, returns TOCSIN_DIFFERED at once. After TOCSIN_OK, look at
// the object again. Every thread must access the object atomically, by _Atomic or by atomic built-ins. The object must
// be aligned to its size. Values are truncated to the object's size, here and below.
TOCSIN_C_API tocsin_status tocsin_wait_on_address(const volatile void* address, size_t size,
                                                  uint64_t expected, const tocsin_limits* how);
// Sleeps until the object holds a value other than `old`. Unless the call returns an error, `*value` becomes the value
// that the call saw last. `value` may be null.
TOCSIN_C_API tocsin_status tocsin_wait_until_changed(const volatile void* address, size_t size, uint64_t old,
                                                     const tocsin_limits* how, uint64_t* value);

// Wake one, `count` or all of the threads that wait on the address, the longest waiting first, and return how many they
// woke. They don't touch the memory at the address, which may no longer exist.
TOCSIN_C_API size_t tocsin_wake_by_address_one(const volatile void* address);
TOCSIN_C_API size_t tocsin_wake_by_address_n(const volatile void* address, size_t count);
TOCSIN_C_API size_t tocsin_wake_by_address_all(const volatile void* address);

#define TOCSIN_WAKE_ALL SIZE_MAX

// Changes the object in one step (sequentially consistent), then wakes up to `wake` waiters. That is cheaper than a
// change and a wake in two calls. `old`, which may be null, gets the value from before the change.
typedef enum tocsin_change_kind TOCSIN_INT {
    TOCSIN_CHANGE_STORE = 0,
    TOCSIN_CHANGE_ADD = 1,
    TOCSIN_CHANGE_SUBTRACT = 2,
    TOCSIN_CHANGE_AND = 3,
    TOCSIN_CHANGE_OR = 4,
    TOCSIN_CHANGE_XOR = 5
} tocsin_change_kind;

TOCSIN_C_API tocsin_status tocsin_change_and_wake(volatile void* address, size_t size,
                                                  tocsin_change_kind kind, uint64_t operand, size_t wake,
                                                  uint64_t* old);
// If the object holds `*expected`, writes `desired` and wakes up to `wake` waiters. Otherwise returns TOCSIN_DIFFERED,
// and `*expected` becomes the value that was found.
TOCSIN_C_API tocsin_status tocsin_compare_exchange_and_wake(volatile void* address, size_t size,
                                                            uint64_t* expected, uint64_t desired,
                                                            size_t wake);

// ---- Sources: what a wait for several things can wait for ----------------------------------------------------------

typedef enum tocsin_source_kind TOCSIN_INT {
    TOCSIN_SOURCE_NONE = 0,  // refused
    TOCSIN_SOURCE_MANUAL_EVENT = 1,
    TOCSIN_SOURCE_AUTO_EVENT = 2,
    TOCSIN_SOURCE_SEMAPHORE = 3,  // takes one permit
    TOCSIN_SOURCE_LATCH = 4,
    TOCSIN_SOURCE_BARRIER_TOKEN = 5,  // is read at the call; need not exist afterwards
    TOCSIN_SOURCE_TIMER = 6,          // `of.deadline`
    TOCSIN_SOURCE_DESCRIPTOR =
        7,  // `of.descriptor`, `asked`; on Windows a SOCKET, or a HANDLE with _SIGNALED
    TOCSIN_SOURCE_PROCESS_END = 8,
    TOCSIN_SOURCE_SIGNAL = 9,
    TOCSIN_SOURCE_TICKER = 10,               // <tocsin/ticker.hpp>
    TOCSIN_SOURCE_SHARED_MANUAL_EVENT = 11,  // these three: not for tocsin_wait_all(), nor in a wait set
    TOCSIN_SOURCE_SHARED_AUTO_EVENT = 12,
    TOCSIN_SOURCE_SHARED_SEMAPHORE = 13  // takes one permit
} tocsin_source_kind;

// What a descriptor is to be ready for, and what was found. <tocsin/readiness.hpp> says what each means.
// <tocsin/win32.h> has macros with the first two names and the same values. This header removes those macros.
#undef TOCSIN_READABLE
#undef TOCSIN_WRITABLE
enum {
    TOCSIN_READABLE = 1,
    TOCSIN_WRITABLE = 2,
    TOCSIN_URGENT = 4,
    TOCSIN_HANG_UP = 8,
    TOCSIN_ERROR_CONDITION = 16,
    TOCSIN_INVALID_DESCRIPTOR = 32,
    TOCSIN_SIGNALED = 64  // of a HANDLE
};

typedef struct tocsin_source {
    tocsin_source_kind kind;
    uint32_t asked;  // for a descriptor: TOCSIN_READABLE | ...
    union {
        void* object;  // a pointer to the event, semaphore, latch, token, process end, signal or ticker
        intptr_t descriptor;
        tocsin_deadline deadline;
    } of;
} tocsin_source;

// A timer that is ready again and again, at `first + n * period`. A wait that takes it moves it to the first of these
// times that has not passed, so one report stands for all ticks that have passed. Only one wait at a time may have it
// as a source. `period` is in nanoseconds, and greater than zero. A wait_set does not take it: see
// tocsin_wait_timer_reset_every().
typedef struct tocsin_ticker {
    uint64_t opaque[8];
} tocsin_ticker;

TOCSIN_C_API tocsin_status tocsin_ticker_init(tocsin_ticker* ticker, tocsin_deadline first, int64_t period);
TOCSIN_C_API tocsin_status tocsin_ticker_destroy(tocsin_ticker* ticker);
// For how many ticks the last report stands. 0 before the first.
TOCSIN_C_API uint64_t tocsin_ticker_ticks(const tocsin_ticker* ticker);

typedef struct tocsin_any_result {
    size_t index;    // of the source that was taken; else SIZE_MAX (but see tocsin_ended)
    uint32_t found;  // what was found, if that source is a descriptor
} tocsin_any_result;

// Waits until a source is ready, and takes that source and no other. If several are ready at the start, takes the
// first. `result` may be null. For up to 16 sources, nothing is allocated.
TOCSIN_C_API tocsin_status tocsin_wait_any(const tocsin_source* sources, size_t count,
                                           const tocsin_limits* how, tocsin_any_result* result);
// Waits until all sources are ready at the same instant, then takes all in one step. Refuses descriptors, process ends,
// signals, and a source that occurs twice (unless it is a timer).
TOCSIN_C_API tocsin_status tocsin_wait_all(const tocsin_source* sources, size_t count,
                                           const tocsin_limits* how);

// ---- A function called when a wait ends ----------------------------------------------------------------------------

// A wait that blocks no thread: it calls a function when it ends. <tocsin/operation.hpp> says in which thread, and when
// the operation may be destroyed.
typedef struct tocsin_operation {
    void* opaque;
} tocsin_operation;

// `how` is TOCSIN_OK, TOCSIN_TIMED_OUT or TOCSIN_STOPPED. If the system refused to wait for a descriptor, `how` is an
// error, and `result` names the descriptor. For an operation that waits for all sources, the index is SIZE_MAX.
// `result` exists only during the call.
typedef void (*tocsin_ended)(void* context, tocsin_status how, const tocsin_any_result* result);
// If an executor returns true, it must see to it that tocsin_operation_run_ended(ended) is called once: later, in
// another thread, or inside its own call. If it returns false, it refuses, and the function is called as without an
// executor.
typedef bool (*tocsin_executor)(void* context, void* ended);

// Copies the sources. A timer among them counts from this call. This call allocates memory. Later calls don't, but a
// start may: for descriptors (<tocsin/operation.hpp>), or to start a thread of the library.
TOCSIN_C_API tocsin_status tocsin_operation_init(tocsin_operation* operation, const tocsin_source* sources,
                                                 size_t count, bool all, tocsin_ended function,
                                                 void* context);
// Ends the wait, if there is one. Then the function is not called, and what the wait had been given goes back.
TOCSIN_C_API tocsin_status tocsin_operation_destroy(tocsin_operation* operation);
// Call it only while the operation does not wait. A null executor means that there is none.
TOCSIN_C_API tocsin_status tocsin_operation_set_executor(tocsin_operation* operation,
                                                         tocsin_executor executor, void* context);
// Begins the wait. The function may be called before this call returns, and may start the operation again. After an
// error, the function is not called. TOCSIN_ERROR_BUSY: the operation waits already.
TOCSIN_C_API tocsin_status tocsin_operation_start(tocsin_operation* operation, const tocsin_limits* how);
// TOCSIN_OK: this call has ended the wait, and the function is given TOCSIN_STOPPED. TOCSIN_NOTHING_DONE: the operation
// does not wait, or something else has ended the wait.
TOCSIN_C_API tocsin_status tocsin_operation_cancel(tocsin_operation* operation);
TOCSIN_C_API void tocsin_operation_run_ended(void* ended);

// ---- A loop of your own serves deadlines and descriptors -----------------------------------------------------------

// With a driver, your loop serves the deadlines and descriptors of operations, and no background thread is needed.
// <tocsin/driver.hpp> lists the calls that the loop must make. Destroy a driver only after each operation that waits
// with it has called its function or been destroyed.
typedef struct tocsin_driver {
    void* opaque;
} tocsin_driver;

// Ends the loop's sleep or, if the loop does not sleep yet, its next sleep. Any thread may call this function. The
// function must not block, and must not call the library.
typedef void (*tocsin_driver_changed)(void* context);
// From now on, the loop has to watch the descriptor for `asked` (TOCSIN_READABLE | ...). If `asked` is 0, the loop has
// to stop watching it. If `renewed`, the loop watches the descriptor already, but has to register it again. The loop
// keeps `id`, by which tocsin_driver_notify() knows the watch, beside what it registers. An id is never less than 2^32.
typedef struct tocsin_watch {
    uint64_t id;
    int descriptor;
    uint32_t asked;
    bool renewed;
} tocsin_watch;
typedef void (*tocsin_driver_watched)(void* context, const tocsin_watch* watch);

// `changed` may be null, for a loop that never sleeps, or if only the loop's thread begins and ends waits.
TOCSIN_C_API tocsin_status tocsin_driver_init(tocsin_driver* driver, tocsin_driver_changed changed,
                                              void* context);
TOCSIN_C_API tocsin_status tocsin_driver_destroy(tocsin_driver* driver);
// Calls `each` for every descriptor whose watch has changed since the last update. Call it before each sleep.
TOCSIN_C_API tocsin_status tocsin_driver_update(tocsin_driver* driver, tocsin_driver_watched each,
                                                void* context);
// Say until when the loop may sleep: a time of the steady or the system clock, or never. Call one of these two
// functions before each sleep. The second returns a timeout for poll(): milliseconds rounded up, or -1 for never.
TOCSIN_C_API tocsin_status tocsin_driver_next_deadline(tocsin_driver* driver, tocsin_deadline* next);
TOCSIN_C_API int tocsin_driver_poll_timeout(tocsin_driver* driver);
// End waits whose deadlines or timers have passed. The first ends all such waits. The second leaves deadlines and
// timers of the steady clock that are after `steady_time` to a later call. TOCSIN_NOTHING_DONE: there were none.
TOCSIN_C_API tocsin_status tocsin_driver_run_due(tocsin_driver* driver);
TOCSIN_C_API tocsin_status tocsin_driver_run_due_at(tocsin_driver* driver, int64_t steady_time);
// Call it when the loop has found the descriptor of the watch `id` ready. Ends the waits that <tocsin/driver.hpp>
// names: above all, those that asked for what was found. TOCSIN_NOTHING_DONE: there were none, or the watch has ended.
// A number that is no id, such as a descriptor, is refused.
TOCSIN_C_API tocsin_status tocsin_driver_notify(tocsin_driver* driver, uint64_t id, uint32_t found);
// For a loop that only polls descriptors, and calls none of the functions above: `*descriptor` is readable when
// tocsin_driver_run_ready() has something to do, at first for example. That function never sleeps. It returns
// TOCSIN_NOTHING_DONE if it has ended no wait. TOCSIN_ERROR_UNSUPPORTED: the system has no epoll.
TOCSIN_C_API tocsin_status tocsin_driver_descriptor(tocsin_driver* driver, int* descriptor);
TOCSIN_C_API tocsin_status tocsin_driver_run_ready(tocsin_driver* driver);

// The operation's waits use this driver from now on. TOCSIN_ERROR_BUSY: the operation waits.
TOCSIN_C_API tocsin_status tocsin_operation_set_driver(tocsin_operation* operation, tocsin_driver* driver);
// Sets the driver of all operations that begin to wait from now on and have none of their own. It also serves the
// coroutines of C++ code in the process that uses the same copy of the library. If `driver` is null, the background
// threads serve them all.
TOCSIN_C_API tocsin_status tocsin_set_default_driver(tocsin_driver* driver);

// ---- Locks and conditions ------------------------------------------------------------------------------------------

// A lock of four bytes. Not recursive. All zero is a free lock.
typedef struct tocsin_lock {
    uint32_t opaque;
} tocsin_lock;

#define TOCSIN_LOCK_INIT {0}

// Limits with a stop are refused: a wait for a lock ends only when it gets the lock or at its deadline.
TOCSIN_C_API tocsin_status tocsin_lock_init(tocsin_lock* lock);
TOCSIN_C_API tocsin_status tocsin_lock_acquire(tocsin_lock* lock, const tocsin_limits* how);
TOCSIN_C_API tocsin_status tocsin_lock_try_acquire(tocsin_lock* lock);
TOCSIN_C_API tocsin_status tocsin_lock_release(tocsin_lock* lock);

// The lock that a wait for a condition gives up and takes back. It may be any lock. For a tocsin_lock, both functions
// are null.
typedef struct tocsin_lockable {
    void* object;
    void (*unlock)(void* object);
    void (*lock)(void* object);
} tocsin_lockable;

// All zero is a condition for which nobody waits.
typedef struct tocsin_condition {
    TOCSIN_ALIGNED_8 uint64_t opaque;
} tocsin_condition;

#define TOCSIN_CONDITION_INIT {0}

// A wait gives up the lock, sleeps, and has the lock again when it returns. A refused wait does not give up the lock.
// There are no spurious wake-ups. TOCSIN_OK: this thread was notified.
TOCSIN_C_API tocsin_status tocsin_condition_init(tocsin_condition* condition);
TOCSIN_C_API tocsin_status tocsin_condition_destroy(tocsin_condition* condition);
TOCSIN_C_API tocsin_status tocsin_condition_notify_one(tocsin_condition* condition);
TOCSIN_C_API tocsin_status tocsin_condition_notify_all(tocsin_condition* condition);
TOCSIN_C_API tocsin_status tocsin_condition_wait(tocsin_condition* condition, tocsin_lock* lock,
                                                 const tocsin_limits* how);
TOCSIN_C_API tocsin_status tocsin_condition_wait_with(tocsin_condition* condition,
                                                      const tocsin_lockable* lock, const tocsin_limits* how);
// Waits for a notification or for the first of the sources. In the result, index 0 is the notification, and the sources
// have the indices from 1 on. Allocates. After an error, the lock is held.
TOCSIN_C_API tocsin_status tocsin_condition_wait_any(tocsin_condition* condition, const tocsin_lockable* lock,
                                                     const tocsin_source* sources, size_t count,
                                                     const tocsin_limits* how, tocsin_any_result* result);

// ---- A persistent set of sources, with timers ----------------------------------------------------------------------

typedef struct tocsin_wait_set {
    void* opaque;
} tocsin_wait_set;

typedef struct tocsin_wait_timer {
    TOCSIN_ALIGNED_8 uint64_t opaque[24];
} tocsin_wait_timer;

typedef struct tocsin_ready_item {
    uint64_t tag;
    uint32_t found;  // what was found, if the member is a descriptor
    uint32_t reserved;
} tocsin_ready_item;

// Any thread may add, change and remove members at any time, even while another thread waits. Only one thread at a time
// may wait. A source of kind TOCSIN_SOURCE_TIMER is refused: use a tocsin_wait_timer. The tag UINT64_MAX is refused.
TOCSIN_C_API tocsin_status tocsin_wait_set_init(tocsin_wait_set* set);
TOCSIN_C_API tocsin_status tocsin_wait_set_destroy(tocsin_wait_set* set);
TOCSIN_C_API tocsin_status tocsin_wait_set_add(tocsin_wait_set* set, const tocsin_source* source,
                                               uint64_t tag);
TOCSIN_C_API tocsin_status tocsin_wait_set_change(tocsin_wait_set* set, const tocsin_source* source,
                                                  uint64_t tag);
TOCSIN_C_API tocsin_status tocsin_wait_set_remove(tocsin_wait_set* set, const tocsin_source* source);
TOCSIN_C_API tocsin_status tocsin_wait_set_add_timer(tocsin_wait_set* set, tocsin_wait_timer* timer,
                                                     uint64_t tag);
TOCSIN_C_API tocsin_status tocsin_wait_set_change_timer(tocsin_wait_set* set, tocsin_wait_timer* timer,
                                                        uint64_t tag);
TOCSIN_C_API tocsin_status tocsin_wait_set_remove_timer(tocsin_wait_set* set, tocsin_wait_timer* timer);
// Waits until a member is ready, then reports as many ready members as fit into `items`. `*count` says how many, and is
// 0 unless the wait returns TOCSIN_OK. The two remove calls return TOCSIN_NOTHING_DONE if there was no such member.
TOCSIN_C_API tocsin_status tocsin_wait_set_wait(tocsin_wait_set* set, const tocsin_limits* how,
                                                tocsin_ready_item* items, size_t capacity, size_t* count);
// For somebody else's loop, which only polls `*descriptor`. It is readable at first, and when a wait would find
// something, until a wait leaves nothing behind. Such a wait has a deadline of zero. <tocsin/wait_set.hpp> has the
// details. TOCSIN_ERROR_UNSUPPORTED: the system has no epoll.
TOCSIN_C_API tocsin_status tocsin_wait_set_descriptor(tocsin_wait_set* set, int* descriptor);

// A timer is reported once for each reset. Destroying it removes it from its set.
TOCSIN_C_API tocsin_status tocsin_wait_timer_init(tocsin_wait_timer* timer);
TOCSIN_C_API tocsin_status tocsin_wait_timer_destroy(tocsin_wait_timer* timer);
TOCSIN_C_API tocsin_status tocsin_wait_timer_reset(tocsin_wait_timer* timer, tocsin_deadline when);
TOCSIN_C_API tocsin_status tocsin_wait_timer_cancel(tocsin_wait_timer* timer);
TOCSIN_C_API bool tocsin_wait_timer_is_armed(const tocsin_wait_timer* timer);
// Each report arms the timer again, for the first point of the grid `first + n * period` that has not passed. So one
// report stands for all ticks that have passed: tocsin_wait_timer_ticks() says how many. `period` is in nanoseconds.
TOCSIN_C_API tocsin_status tocsin_wait_timer_reset_every(tocsin_wait_timer* timer, tocsin_deadline first,
                                                         int64_t period);
TOCSIN_C_API uint64_t tocsin_wait_timer_ticks(const tocsin_wait_timer* timer);

// ---- An event or a semaphore as a descriptor for another loop ------------------------------------------------------

typedef struct tocsin_pollable {
    void* opaque;
} tocsin_pollable;

TOCSIN_C_API tocsin_status tocsin_pollable_init(tocsin_pollable* pollable,
                                                const tocsin_source* event_or_semaphore);
TOCSIN_C_API tocsin_status tocsin_pollable_destroy(tocsin_pollable* pollable);
TOCSIN_C_API int tocsin_pollable_descriptor(
    const tocsin_pollable* pollable);  // only poll it; -1 if there is no pollable
TOCSIN_C_API tocsin_status tocsin_pollable_try_wait(tocsin_pollable* pollable);

// ---- Processes and signals -----------------------------------------------------------------------------------------

typedef struct tocsin_process_end {
    void* opaque;
} tocsin_process_end;

typedef struct tocsin_process_exit {
    uint32_t code;       // what the process returned, or the number of the signal that ended it
    uint32_t by_signal;  // 1 or 0
} tocsin_process_exit;

// On Windows, `process` is a HANDLE, which the call duplicates. Elsewhere it is a pid_t. No call reaps the process.
TOCSIN_C_API tocsin_status tocsin_process_end_init(tocsin_process_end* end, intptr_t process);
TOCSIN_C_API tocsin_status tocsin_process_end_destroy(tocsin_process_end* end);
TOCSIN_C_API tocsin_status tocsin_process_end_try_wait(const tocsin_process_end* end);
TOCSIN_C_API tocsin_status tocsin_process_end_exit_status(const tocsin_process_end* end,
                                                          tocsin_process_exit* how);
TOCSIN_C_API int tocsin_process_end_descriptor(const tocsin_process_end* end);

typedef struct tocsin_signal {
    void* opaque;
} tocsin_signal;

// A signal stays ready until a try_wait() returns TOCSIN_OK. On Windows and WebAssembly, tocsin_signal_init() returns
// TOCSIN_ERROR_UNSUPPORTED.
TOCSIN_C_API tocsin_status tocsin_signal_init(tocsin_signal* signal, int number);
TOCSIN_C_API tocsin_status tocsin_signal_destroy(tocsin_signal* signal);
TOCSIN_C_API tocsin_status tocsin_signal_try_wait(tocsin_signal* signal);
TOCSIN_C_API int tocsin_signal_descriptor(const tocsin_signal* signal);

// ---- Between processes ---------------------------------------------------------------------------------------------

// Memory that several processes share. <tocsin/shared_memory.hpp> says what each call does. (The objects below work in
// any other shared mapping, too.) `permissions` are those of a file, such as 0600. Fresh memory is all zero.
typedef struct tocsin_shared_memory {
    void* opaque;
} tocsin_shared_memory;

// TOCSIN_ERROR_EXISTS: there is such memory already.
TOCSIN_C_API tocsin_status tocsin_shared_memory_create(tocsin_shared_memory* memory, const char* name,
                                                       size_t size, uint32_t permissions);
// TOCSIN_ERROR_NOT_FOUND: there is none.
TOCSIN_C_API tocsin_status tocsin_shared_memory_open(tocsin_shared_memory* memory, const char* name);
TOCSIN_C_API tocsin_status tocsin_shared_memory_open_or_create(tocsin_shared_memory* memory, const char* name,
                                                               size_t size, uint32_t permissions);
// Memory without a name. Other processes get it by fork(), or by _send() and _receive() through a socket of the family
// AF_UNIX.
TOCSIN_C_API tocsin_status tocsin_shared_memory_anonymous(tocsin_shared_memory* memory, size_t size);
TOCSIN_C_API tocsin_status tocsin_shared_memory_receive(tocsin_shared_memory* memory, int socket);
TOCSIN_C_API tocsin_status tocsin_shared_memory_send(const tocsin_shared_memory* memory, int socket);
// Maps the whole of a file. Takes its own copy of the descriptor.
TOCSIN_C_API tocsin_status tocsin_shared_memory_map(tocsin_shared_memory* memory, int descriptor);
// Unmaps the memory. Its name stays.
TOCSIN_C_API tocsin_status tocsin_shared_memory_destroy(tocsin_shared_memory* memory);
// Removes a name. TOCSIN_NOTHING_DONE: there was none.
TOCSIN_C_API tocsin_status tocsin_shared_memory_unlink(const char* name);
TOCSIN_C_API void* tocsin_shared_memory_data(const tocsin_shared_memory* memory);
TOCSIN_C_API size_t tocsin_shared_memory_size(const tocsin_shared_memory* memory);
TOCSIN_C_API int tocsin_shared_memory_descriptor(const tocsin_shared_memory* memory);

// Objects in shared memory. A process may be killed at any instruction: no token is lost, and nobody is held up.
// docs/between_processes.md says what holds when, and what each object costs. Memory that is all zero is an unset
// event, a semaphore without permits, or a free lock. Nothing is initialized, and nothing is destroyed.
//
// `tocsin_shared_X_at` checks that there can be such an object at the address, in memory with `room` bytes from there
// on, and that no object of another kind or version is there. Call it once for each object and process.
//
// Waits ignore the spin policy of their limits. They return TOCSIN_ERROR_UNSUPPORTED on systems other than Linux, and
// TOCSIN_ERROR_SYSTEM if all 31 slots of an object are taken (ENOBUFS) or if somebody else keeps writing to the object
// (ENOTRECOVERABLE).
typedef struct tocsin_shared_manual_event {
    TOCSIN_ALIGNED_64 uint64_t opaque[8];
} tocsin_shared_manual_event;
typedef struct tocsin_shared_auto_event {
    TOCSIN_ALIGNED_64 uint64_t opaque[256];
} tocsin_shared_auto_event;
typedef struct tocsin_shared_semaphore {
    TOCSIN_ALIGNED_64 uint64_t opaque[256];
} tocsin_shared_semaphore;
typedef struct tocsin_shared_lock {
    TOCSIN_ALIGNED_64 uint64_t opaque[256];
} tocsin_shared_lock;

#define TOCSIN_SHARED_SEMAPHORE_MAX 0x7FFFFFFFu

TOCSIN_C_API tocsin_status tocsin_shared_manual_event_at(void* at, size_t room,
                                                         tocsin_shared_manual_event** found);
TOCSIN_C_API tocsin_status tocsin_shared_manual_event_set(tocsin_shared_manual_event* event);
TOCSIN_C_API tocsin_status tocsin_shared_manual_event_reset(tocsin_shared_manual_event* event);
TOCSIN_C_API bool tocsin_shared_manual_event_is_set(const tocsin_shared_manual_event* event);
TOCSIN_C_API tocsin_status tocsin_shared_manual_event_wait(tocsin_shared_manual_event* event,
                                                           const tocsin_limits* how);

TOCSIN_C_API tocsin_status tocsin_shared_auto_event_at(void* at, size_t room,
                                                       tocsin_shared_auto_event** found);
TOCSIN_C_API tocsin_status tocsin_shared_auto_event_set(tocsin_shared_auto_event* event);
TOCSIN_C_API tocsin_status tocsin_shared_auto_event_reset(tocsin_shared_auto_event* event);
TOCSIN_C_API bool tocsin_shared_auto_event_is_set(const tocsin_shared_auto_event* event);
TOCSIN_C_API tocsin_status tocsin_shared_auto_event_try_wait(tocsin_shared_auto_event* event);
TOCSIN_C_API tocsin_status tocsin_shared_auto_event_wait(tocsin_shared_auto_event* event,
                                                         const tocsin_limits* how);

TOCSIN_C_API tocsin_status tocsin_shared_semaphore_at(void* at, size_t room, tocsin_shared_semaphore** found);
TOCSIN_C_API tocsin_status tocsin_shared_semaphore_release(tocsin_shared_semaphore* semaphore,
                                                           uint32_t permits);
TOCSIN_C_API tocsin_status tocsin_shared_semaphore_try_acquire(tocsin_shared_semaphore* semaphore);
TOCSIN_C_API tocsin_status tocsin_shared_semaphore_acquire(tocsin_shared_semaphore* semaphore,
                                                           const tocsin_limits* how);
TOCSIN_C_API uint32_t tocsin_shared_semaphore_available(const tocsin_shared_semaphore* semaphore);

// An acquire returns TOCSIN_OK, TOCSIN_OWNER_DIED (the caller holds the lock: repair what it protects, then call
// _mark_repaired()), TOCSIN_LOCK_LOST (an owner released the lock without a repair), or how it ended otherwise.
// _try_acquire() returns TOCSIN_NOTHING_DONE if another thread holds the lock. Errors: TOCSIN_ERROR_SYSTEM if the
// thread holds this lock (EDEADLK) or 64 others (ENOLCK); TOCSIN_ERROR_NOT_PERMITTED if it releases a lock that it does
// not hold.
TOCSIN_C_API tocsin_status tocsin_shared_lock_at(void* at, size_t room, tocsin_shared_lock** found);
TOCSIN_C_API tocsin_status tocsin_shared_lock_try_acquire(tocsin_shared_lock* lock);
TOCSIN_C_API tocsin_status tocsin_shared_lock_acquire(tocsin_shared_lock* lock, const tocsin_limits* how);
TOCSIN_C_API tocsin_status tocsin_shared_lock_release(tocsin_shared_lock* lock);
TOCSIN_C_API tocsin_status tocsin_shared_lock_mark_repaired(tocsin_shared_lock* lock);

// ---- Group commit --------------------------------------------------------------------------------------------------

typedef struct tocsin_group_commit {
    void* opaque;
} tocsin_group_commit;

typedef struct tocsin_commit_group
    tocsin_commit_group;  // the submissions of one flush; exists during the flush

// Called in one of the threads that submit, never in two at a time. Returns 0 if it succeeded. Any other number goes to
// all submitters of this group. A flush must not submit to its own group commit: that call is refused.
typedef int (*tocsin_flush)(void* context, tocsin_commit_group* group);

typedef struct tocsin_group_commit_options {
    size_t largest_group;       // 0: no limit
    int64_t longest_gathering;  // in nanoseconds; 0: no group is held back
} tocsin_group_commit_options;

typedef struct tocsin_group_commit_statistics {
    uint64_t groups, failed, submissions, withdrawn, largest_group, waiting;
    int64_t gathering, flushing;  // nanoseconds, summed over the groups
} tocsin_group_commit_statistics;

// `options` may be null.
TOCSIN_C_API tocsin_status tocsin_group_commit_init(tocsin_group_commit* commit, tocsin_flush flush,
                                                    void* context,
                                                    const tocsin_group_commit_options* options);
TOCSIN_C_API tocsin_status tocsin_group_commit_destroy(tocsin_group_commit* commit);
// Blocks until a flush that covers the submission has ended. Then returns TOCSIN_OK or, if the flush has failed,
// TOCSIN_ERROR_FLUSH. In this case, `*failure` becomes what the flush returned (`failure` may be null). After
// TOCSIN_TIMED_OUT and TOCSIN_STOPPED, the submission is withdrawn, and no flush has seen it.
TOCSIN_C_API tocsin_status tocsin_group_commit_submit(tocsin_group_commit* commit, void* submission,
                                                      const tocsin_limits* how, int* failure);
TOCSIN_C_API tocsin_status tocsin_group_commit_read_statistics(const tocsin_group_commit* commit,
                                                               tocsin_group_commit_statistics* statistics);

// For the flush. _size() returns the number of submissions, which is at least 1. _next() gives the next submission, or
// returns false if there is none. _rewind() goes back to before the first.
TOCSIN_C_API size_t tocsin_commit_group_size(const tocsin_commit_group* group);
TOCSIN_C_API bool tocsin_commit_group_next(tocsin_commit_group* group, void** submission);
TOCSIN_C_API tocsin_status tocsin_commit_group_rewind(tocsin_commit_group* group);
// Leaves the submission that _next() gave last, and all behind it, to the next flush. Refused for the first submission,
// and before _next() has given one.
TOCSIN_C_API tocsin_status tocsin_commit_group_leave(tocsin_commit_group* group);

// ---- Diagnosis -----------------------------------------------------------------------------------------------------

// How many waits are parked on this address.
TOCSIN_C_API size_t tocsin_waiting_on(const volatile void* address);
// Describes all parked waits of the process, one line each. In a checked build, a line for each deadlock follows.
// Writes up to `size` bytes with the final zero, as snprintf() does. Returns the length of the whole text, or SIZE_MAX
// if there was no memory.
TOCSIN_C_API size_t tocsin_describe_parked_waits(char* buffer, size_t size);
// Names an address in these lines. An empty or null name removes the name.
TOCSIN_C_API tocsin_status tocsin_name_address(const volatile void* address, const char* name);

typedef enum tocsin_parked_kind TOCSIN_INT {
    TOCSIN_PARKED_EVENT = 0,
    TOCSIN_PARKED_ADDRESS = 1,
    TOCSIN_PARKED_LOCK = 2,
    TOCSIN_PARKED_SEMAPHORE = 3,
    TOCSIN_PARKED_CONDITION = 4,
    TOCSIN_PARKED_LATCH = 5,
    TOCSIN_PARKED_BARRIER = 6,
    TOCSIN_PARKED_SOURCE = 7,  // of another kind, such as a group_commit or a channel of C++; `type` names it
    TOCSIN_PARKED_DESCRIPTOR = 8
} tocsin_parked_kind;

// One parked wait. <tocsin/diagnose.hpp> says more about each member. Pointers to text are never null. `name` exists
// only during the call of the function that is given the wait.
typedef struct tocsin_parked_wait {
    tocsin_parked_kind what;
    uint32_t bit;         // of a lock that is one bit of a word: which one; of a descriptor: its number
    const char* type;     // "event", "latch" ...
    const char* name;     // given by tocsin_name_address(); empty if there is none
    const void* address;  // of a descriptor: null
    int64_t since;        // when it was parked: a time of tocsin_steady_now()
    uint64_t thread;      // as the system numbers it
    uint64_t owner;       // of a lock, in a checked build, if it is known; else 0
} tocsin_parked_wait;

// A watchdog calls a function once for each wait of the process that has been parked for longer than `longest`
// nanoseconds. <tocsin/watchdog.hpp> says how late that may be. The function runs in a thread of the library, under no
// lock, and may wait and wake. The destroy waits until a call under way has returned. So don't destroy a watchdog in
// its function: that ends the program.
typedef struct tocsin_watchdog {
    void* opaque;
} tocsin_watchdog;

typedef void (*tocsin_report)(void* context, const tocsin_parked_wait* wait);

TOCSIN_C_API tocsin_status tocsin_watchdog_init(tocsin_watchdog* watchdog, int64_t longest,
                                                tocsin_report report, void* context);
TOCSIN_C_API tocsin_status tocsin_watchdog_destroy(tocsin_watchdog* watchdog);

// What the waits of the process have done since it began.
typedef struct tocsin_wait_counters {
    uint64_t spun;     // waits that ended while spinning
    uint64_t yielded;  // waits that ended after yielding to the scheduler
    uint64_t slept;    // waits that slept
    uint64_t woken;    // sleepers woken (one system call may wake several)
} tocsin_wait_counters;

// If the library was built without TOCSIN_COUNTERS: TOCSIN_ERROR_UNSUPPORTED, and all counters are 0.
TOCSIN_C_API tocsin_status tocsin_read_wait_counters(tocsin_wait_counters* counters);

#ifdef __cplusplus
}
#else
_Static_assert(sizeof(tocsin_status) == 4 && sizeof(tocsin_clock) == 4 && sizeof(tocsin_wait_order) == 4,
               "tocsin.h: compile without -fshort-enums");
#endif

#undef TOCSIN_INT
#undef TOCSIN_ALIGNED_8
#undef TOCSIN_ALIGNED_64

#endif

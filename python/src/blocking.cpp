// SPDX-License-Identifier: Apache-2.0
// How a Python thread sleeps.
//
// A thread that runs no signal handlers gives up the interpreter's lock, waits as a C++ thread does (but may look
// for longer before it sleeps, decision 69), and takes the lock back. From CPython 3.14 a thread may hang where it
// takes the lock back, and before that it may end there (pthread_exit), once the interpreter is being finalized. So
// at that point no frame of ours has an object with a destructor, nor is it noexcept: whatever may throw or owns
// something is inside catching() or in a function that has returned.
//
// The main thread runs Python's signal handlers. Its sleep must end when a signal arrives, keep its place in the queues
// while the handler runs, and lose no signal that arrives just before the sleep.
//
// State of such a sleep
//   An operation (tocsin/operation.hpp) waits for the events and semaphores. Its function stores the result and sets
//   `done`, an event on this thread's stack. At first the thread sleeps on `done` alone, for 5 ms at most. If that was
//   not enough, it sleeps in one wait_any() for `done`, for the caller's descriptors and timers, and for a pipe.
//   Python's C handler writes a byte into the descriptor of signal.set_wakeup_fd(), the slot; during this second sleep
//   that is the pipe. The first sleep saves the four system calls that the slot and the pipe cost, in waits that are
//   over soon. A signal that arrives in it is seen at its end.
//
//   Before it is queued at all, a thread that waits for any of more than eight events or semaphores may look at them
//   for up to 30 us (looks_for_one()). It is not asleep then, as a thread that has not called yet: waiting_on() does
//   not count it, and set(); clear() may pass it by.
//
// Invariants
//   blocking-1  The operation stays started while handlers run. So a set() during a handler hands over to this wait as
//               if the thread slept, and set(); clear() releases it.
//   blocking-2  The pipe is in the slot before PyErr_CheckSignals() looks, and stays there until the sleep has ended.
//               So a signal is either seen by that look, or leaves a byte that ends the sleep, whichever thread of the
//               process gets it. There is no window between the look and the sleep. (A handler that runs in this look
//               may change the slot. Then begin() puts the pipe there again.)
//   blocking-3  Each byte is handed on to the descriptor that had the slot before, also one that came after the last
//               look. A handler may sleep, too, while the sleep that it interrupts has the pipe in the slot. Such an
//               inner sleep leaves the pipe there at its end, hands bytes on to the receiver of the outer one, and
//               leaves those that it has not read to the outer sleep, which they end.
//   blocking-4  If a wait ends by a deadline, a descriptor or an exception, cancel() decides: true means that nothing
//               was taken. After false, the operation has taken its sources. Then the wait is `ready`, except after an
//               exception, which gives them back.
//
// No lost wake-up: `done` is an event, and the pipe keeps its byte until it is read.
//
// The slot is changed by Python's function, because interpreters before 3.13 don't export PySignal_SetWakeupFd(),
// although their documentation has it (findings/signals_and_lost_notify_of_cpython.sh).
//
// Checked by: python/tests/test_signals.py.
#include "blocking.hpp"

#include "looks.hpp"

#include <tocsin/fd.hpp>
#include <tocsin/operation.hpp>
#include <tocsin/semaphore.hpp>
#include <tocsin/wait.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace tocsin::python {
namespace {

std::atomic<unsigned long> main_thread{0};
std::atomic<unsigned> forks{0};
std::atomic<bool> has_warned{false};
int pipe_ends[2] = {-1, -1};  // only the main thread uses it, and the child of a fork

// Of the main interpreter, which alone runs handlers.
PyObject* set_wakeup_fd = nullptr;
PyObject* no_warning_name = nullptr;  // the names of its keyword arguments

// A function of a module that knows whether a coroutine runs in this thread. The objects are those of the main
// interpreter; another one makes its own for each wait.
struct knows_loop {
    const char* module;
    const char* function;
    PyObject* module_name = nullptr;
    PyObject* function_name = nullptr;
};
knows_loop in_asyncio{"_asyncio", "_get_running_loop"};
knows_loop in_trio{"trio.lowlevel", "in_trio_task"};

// Gets the bytes of the innermost sleep that has the pipe in the slot; -1: nobody. Only the main thread uses it.
long receiver = -1;
// In place of a descriptor: the slot had the pipe. (In the child of a fork, the pipe has another number.)
constexpr long our_pipe = -2;

// The interpreter itself lets a signal wait as long while another thread runs (sys.getswitchinterval()). If this sleep
// ended before the system's next tick, each wait would set the processor's timer twice, which takes microseconds.
constexpr std::chrono::milliseconds first_sleep(5);

void after_fork_in_child() {
    // The parent reads the same pipe.
    for (int& end : pipe_ends) {
        if (end >= 0) ::close(end);
        end = -1;
    }
    main_thread.store(PyThread_get_thread_ident(), std::memory_order_relaxed);  // no order: the only thread
    forks.fetch_add(1, std::memory_order_relaxed);                              // no order: the only thread
}

bool open_pipe() {
    if (pipe_ends[0] >= 0) return true;
#if defined(__linux__)
    const bool opened = ::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) == 0;
#else
    const bool opened = ::pipe(pipe_ends) == 0;
    for (const int end : pipe_ends) {
        if (!opened) break;
        ::fcntl(end, F_SETFD, FD_CLOEXEC);
        ::fcntl(end, F_SETFL, O_NONBLOCK);
    }
#endif
    if (opened) return true;
    pipe_ends[0] = pipe_ends[1] = -1;
    PyErr_SetFromErrno(PyExc_OSError);
    return false;
}

bool put_into_slot(int descriptor, long& former) {
    PyObject* const number = PyLong_FromLong(descriptor);
    if (number == nullptr) return false;
    PyObject* const arguments[] = {number, Py_False};
    PyObject* const before = PyObject_Vectorcall(set_wakeup_fd, arguments, 1, no_warning_name);
    Py_DECREF(number);
    if (before == nullptr) return false;
    former = PyLong_AsLong(before);
    Py_DECREF(before);
    return former != -1 || !PyErr_Occurred();
}

bool make_names(knows_loop& of) {
    Py_XSETREF(of.module_name, PyUnicode_InternFromString(of.module));
    Py_XSETREF(of.function_name, PyUnicode_InternFromString(of.function));
    return of.module_name != nullptr && of.function_name != nullptr;
}

// Whether the function returns an object that is true. False, too, if nobody has imported the module, if it is too old
// for the function, and after an error, which stays set only if it came before the call.
bool says(knows_loop from) {
    const bool is_main = PyInterpreterState_Get() == PyInterpreterState_Main();
    if (!is_main) from.module_name = from.function_name = nullptr;
    bool truth = false;
    if (is_main || make_names(from)) {
        if (PyObject* const found = PyImport_GetModule(from.module_name)) {
            PyObject* const result = PyObject_CallMethodNoArgs(found, from.function_name);
            Py_DECREF(found);
            truth = result != nullptr && PyObject_IsTrue(result) > 0;
            Py_XDECREF(result);
            PyErr_Clear();
        }
    }
    if (!is_main) {
        Py_XDECREF(from.module_name);
        Py_XDECREF(from.function_name);
    }
    return truth;
}

// What the operation's function leaves for the sleeping thread.
struct completion {
    manual_reset_event done;
    any_result how{wait_status::stopped};
};

// The looks of this thread's waits (looks.hpp). A process with one processor has none.
#if defined(__linux__)
const bool is_alone = [] {
    cpu_set_t usable;
    return ::sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) == 1;
}();
#else
const bool is_alone = std::thread::hardware_concurrency() == 1;
#endif
thread_local look_history looks_of_thread;

struct looks : look_first<std::chrono::steady_clock> {
    explicit looks(bool may_look = true) noexcept : look_first(looks_of_thread, may_look && !is_alone) {}
    void let_other_finish() const noexcept {
#if !defined(Py_GIL_DISABLED)
        look_first::let_other_finish(detail::cpu_relax);
#endif
    }
};
static_assert(std::is_trivially_destructible_v<looks>);

const deadline passed{std::chrono::nanoseconds(0)};

// Looks for the first event or semaphore of more than eight, before the thread is queued for all of them. Returns
// whether it has taken one.
bool looks_for_one(looks& looking, const std::span<const source>& list, const deadline& until,
                   any_result& found) {
    const auto is_lot = [](const source& each) noexcept { return each.what() == source::kind::lot; };
    if (list.size() <= 8 || !std::ranges::all_of(list, is_lot)) return false;
    return looking.only_look(
        [&] { return (found = wait_any({.until = passed}, list)).status == wait_status::signaled; },
        [&] { return until.has_passed(); });
}

bool belongs_to_operation(const source& one, bool all) noexcept {
    return all || (one.what() != source::kind::descriptor && one.what() != source::kind::timer);
}

// The sleep of the main thread. It has a destructor, so it lives in functions that never take the interpreter's lock
// back while another thread could end the interpreter: only the main thread does that.
class main_sleep {
public:
    main_sleep(const source* sources, std::size_t count, bool all, const deadline& until,
               const confirmation& confirm = {}) noexcept
        : sources_(sources), count_(count), all_(all), until_(until), confirm_(confirm) {}
    main_sleep(const main_sleep&) = delete;
    main_sleep& operator=(const main_sleep&) = delete;
    ~main_sleep() {
        drop_operation();
        PyMem_RawFree(block_);
    }

    outcome run() {
        if (!allocate()) {
            PyErr_NoMemory();
            return {};
        }
        if (listed_ == 2 && operation_sources_ != 0) {
            const deadline soon(first_sleep);
            const bool is_short = until_.remaining() <= soon.remaining();
            bool ended = false;
            any_result found{wait_status::stopped};
            const caught error = released([&] {
                const deadline& first = is_short ? until_ : soon;
                const auto sleep = [&](spin_policy spin) {
                    return end_.done.wait_until(first, spin) == wait_status::signaled;
                };
                if (confirm_.ends_wait != nullptr) {
                    start();
                    do ended = sleep(spin_policy::none());
                    while (ended && begins_again());
                    return;
                }
                looks looking;
                if (all_ || !looks_for_one(looking, {chosen_, operation_sources_}, until_, found)) {
                    start();
                    ended = looking([&] { return end_.done.is_set(); }, sleep);
                }
                looking.let_other_finish();
            });
            if (error.number != -1) return fail(error);
            if (found.status == wait_status::signaled) return {ending::ready, map_[found.index]};
            if (ended) return taken();
        }
        for (;;) {
            const unsigned generation = signal_watch::generation();
            const auto watching = watch_.begin();
            if (watching == signal_watch::beginning::failed) {
                if (!cancelled()) give_back_taken();
                return {};
            }
            if (generation != signal_watch::generation()) {  // a handler has forked, and this is the child
                drop_operation();
                if (watching == signal_watch::beginning::watches) watch_.end();
                continue;
            }
            const bool watches = watching == signal_watch::beginning::watches;
            if (watches) list_[listed_ - 1] = readable(signal_watch::descriptor());
            any_result found{wait_status::stopped};
            const caught error = released([&] {
                start();
                const std::span<const source> list(list_, listed_ - (watches ? 0 : 1));
                do found = wait_any({.until = until_}, list);
                while (found.status == wait_status::signaled && operation_sources_ != 0 && found.index == 0 &&
                       begins_again());
            });
            if (watches) watch_.end();
            if (error.number != -1) return fail(error);
            const bool signaled = found.status == wait_status::signaled;
            if (signaled && found.index == listed_ - 1) {
                watch_.forward();
                continue;
            }
            if ((signaled && operation_sources_ != 0 && found.index == 0) || !cancelled()) return taken();
            if (!signaled) return {ending::timed_out};
            return {ending::ready, map_[operation_sources_ + found.index - first_other()]};
        }
    }

private:
    template <class Function>
    static caught released(Function function) {
        caught error;
        Py_BEGIN_ALLOW_THREADS;
        error = catching(function);
        Py_END_ALLOW_THREADS;
        return error;
    }

    // What the operation has taken does not end the wait: the operation is started again.
    bool begins_again() {
        if (confirm_.ends_wait == nullptr || confirm_.ends_wait(confirm_.object)) return false;
        drop_operation();
        start();
        return true;
    }

    outcome fail(const caught& error) {
        if (!cancelled()) give_back_taken();
        raise_error(error.number, error.message);
        return {};
    }

    std::size_t first_other() const noexcept { return operation_sources_ == 0 ? 0 : 1; }

    bool allocate() {
        for (std::size_t i = 0; i != count_; ++i)
            operation_sources_ += belongs_to_operation(sources_[i], all_) ? 1 : 0;
        const std::size_t others = count_ - operation_sources_;
        listed_ = first_other() + others + 1;
        const std::size_t operation_bytes =
            operation_sources_ == 0 ? 0 : span_operation::size(operation_sources_);
        const std::size_t bytes = operation_bytes + (operation_sources_ + listed_) * sizeof(source) +
                                  count_ * sizeof(std::size_t) + operation_alignment;
        void* start = small_;
        if (bytes > sizeof small_) start = block_ = PyMem_RawMalloc(bytes);
        if (start == nullptr) return false;
        std::size_t room = bytes;
        memory_ = static_cast<char*>(std::align(operation_alignment, operation_bytes, start, room));
        chosen_ = reinterpret_cast<source*>(memory_ + (operation_bytes + alignof(source) - 1) /
                                                          alignof(source) * alignof(source));
        list_ = chosen_ + operation_sources_;
        map_ = reinterpret_cast<std::size_t*>(list_ + listed_);
        std::size_t chosen = 0;
        std::size_t other = first_other();
        for (std::size_t i = 0; i != count_; ++i) {
            if (belongs_to_operation(sources_[i], all_)) {
                map_[chosen] = i;
                std::construct_at(chosen_ + chosen++, sources_[i]);
            } else {
                map_[operation_sources_ + other - first_other()] = i;
                std::construct_at(list_ + other++, sources_[i]);
            }
        }
        if (operation_sources_ != 0) std::construct_at(list_, source(end_.done));
        std::construct_at(list_ + listed_ - 1);
        return true;
    }

    void start() {
        if (operation_ != nullptr || operation_sources_ == 0) return;
        operation_ = &span_operation::make(
            memory_, all_, std::span<const source>(chosen_, operation_sources_), {},
            [](void* to, const any_result& how) noexcept {
                auto& end = *static_cast<completion*>(to);
                end.how = how;
                end.done.set();
            },
            &end_);
        started_ = false;
        operation_->on(inline_executor).start();
        started_ = true;
    }

    // Ends the operation, and returns true if it had taken nothing.
    bool cancelled() noexcept {
        if (operation_ == nullptr || !started_) return true;
        if (!operation_->cancel()) end_.done.wait();  // soon: another thread is in the operation's function
        return end_.how.status != wait_status::signaled;
    }

    void drop_operation() noexcept {
        if (operation_ != nullptr) std::destroy_at(operation_);
        operation_ = nullptr;
        end_.done.reset();
    }

    outcome taken() const noexcept { return {ending::ready, all_ ? 0 : map_[end_.how.index]}; }

    void give_back_taken() noexcept {
        if (all_) {
            for (std::size_t i = 0; i != count_; ++i) give_back(sources_[i]);
        } else {
            give_back(chosen_[end_.how.index]);
        }
    }

    const source* const sources_;
    const std::size_t count_;
    const bool all_;
    const deadline until_;
    const confirmation confirm_;
    std::size_t operation_sources_ = 0;
    std::size_t listed_ = 0;      // `done` if there is an operation, the other sources, the pipe
    char* memory_ = nullptr;      // of the operation
    source* chosen_ = nullptr;    // the operation's sources
    source* list_ = nullptr;      // what the thread waits for
    std::size_t* map_ = nullptr;  // the caller's index: of the operation's sources, then of the others
    void* block_ = nullptr;
    span_operation* operation_ = nullptr;
    bool started_ = false;
    completion end_;
    signal_watch watch_;
    alignas(std::max_align_t) char small_[3072];
};

// A thread that runs no handlers. Nothing here has a destructor.
outcome plain_sleep(const source* sources, std::size_t count, bool all, const deadline& until) {
    any_result found{wait_status::stopped};
    caught error;
    Py_BEGIN_ALLOW_THREADS;
    error = catching([&] {
        const std::span<const source> list(sources, count);
        if (all) {
            found.status = wait_all({.until = until}, list);
        } else {
            // A wait for descriptors sleeps in a poll, so it does not spin.
            looks looking(std::ranges::count(list, source::kind::descriptor, &source::what) == 0);
            const auto wait = [&](const deadline& last, spin_policy spin) {
                found = wait_any({.until = last, .spin = spin}, list);
                return found.status == wait_status::signaled;
            };
            if (!looks_for_one(looking, list, until, found))
                looking([&] { return wait(passed, spin_policy::none()); },
                        [&](spin_policy spin) { return wait(until, spin); });
            looking.let_other_finish();
        }
    });
    Py_END_ALLOW_THREADS;
    if (error.number != -1) {
        raise_error(error.number, error.message);
        return {};
    }
    if (found.status != wait_status::signaled) return {ending::timed_out};
    return {ending::ready, all ? 0 : found.index};
}

}  // namespace

signal_watch::beginning signal_watch::begin() {
    if (!open_pipe()) return beginning::failed;
    if (!put_into_slot(pipe_ends[1], former_)) {
        PyErr_Clear();
        main_thread.store(0, std::memory_order_relaxed);  // no order: a number
        return PyErr_CheckSignals() == 0 ? beginning::cannot : beginning::failed;
    }
    if (former_ == pipe_ends[1]) former_ = our_pipe;
    receiver_ = former_ == our_pipe ? receiver : former_;
    outer_receiver_ = std::exchange(receiver, receiver_);
    const int before = pipe_ends[1];
    bool good = PyErr_CheckSignals() == 0;
    long now = before;
    if (good) good = open_pipe() && put_into_slot(pipe_ends[1], now);  // a handler may have forked
    if (now != before && now != pipe_ends[1]) former_ = receiver_ = receiver = now;
    if (good) return beginning::watches;
    end();
    return beginning::failed;
}

void signal_watch::end() {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    receiver = outer_receiver_;
    long ours = -1;
    if (!put_into_slot(former_ == our_pipe ? pipe_ends[1] : static_cast<int>(former_), ours)) {
        PyErr_Clear();  // the former owner has closed its descriptor
        if (!put_into_slot(-1, ours)) PyErr_Clear();
    }
    if (former_ != our_pipe) forward();
    PyErr_Restore(type, value, traceback);
}

int signal_watch::descriptor() noexcept { return pipe_ends[0]; }

unsigned signal_watch::generation() noexcept {
    return forks.load(std::memory_order_relaxed);  // no order: it changes only in a fork
}

void signal_watch::forward() const noexcept {
    char bytes[64];
    for (;;) {
        const ssize_t got = ::read(pipe_ends[0], bytes, sizeof bytes);
        if (got <= 0) return;
        if (receiver_ >= 0) (void)!::write(static_cast<int>(receiver_), bytes, static_cast<std::size_t>(got));
        if (static_cast<std::size_t>(got) < sizeof bytes) return;
    }
}

bool prepare_blocking(unsigned long thread) {
    static const bool registered = ::pthread_atfork(nullptr, nullptr, after_fork_in_child) == 0;
    if (!registered) {
        PyErr_NoMemory();
        return false;
    }
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) return true;
    PyObject* const module = PyImport_ImportModule("_signal");
    if (module == nullptr) return false;
    Py_XSETREF(set_wakeup_fd, PyObject_GetAttrString(module, "set_wakeup_fd"));
    Py_DECREF(module);
    Py_XSETREF(no_warning_name, Py_BuildValue("(s)", "warn_on_full_buffer"));
    main_thread.store(thread, std::memory_order_relaxed);  // no order: a number, written before any use
    return set_wakeup_fd != nullptr && no_warning_name != nullptr && make_names(in_asyncio) &&
           make_names(in_trio);
}

bool runs_handlers() noexcept {
    return PyThread_get_thread_ident() ==
               main_thread.load(
                   std::memory_order_relaxed) &&  // no order: this thread's own number, or another's
           PyInterpreterState_Get() == PyInterpreterState_Main();
}

void raise_error(int number, const char* message) {
    if (number == ENOMEM) {
        PyErr_NoMemory();
    } else if (number == 0) {
        PyErr_SetString(PyExc_ValueError, message);
    } else if (PyObject* const error = PyObject_CallFunction(PyExc_OSError, "is", number, message)) {
        // OSError makes an object of the subclass for the number. CPython before 3.11 catches by the type that is set.
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
        Py_DECREF(error);
    }
}

void give_back(const source& taken) noexcept {
    if (taken.what() == source::kind::lot && taken.lot().give_back != nullptr)
        taken.lot().give_back(taken.object());
    if (taken.what() == source::kind::custom && !taken.empty() && taken.custom().give_back != nullptr)
        taken.custom().give_back(taken.object());
}

bool may_block() {
    if (has_warned.load(std::memory_order_relaxed)) return true;  // no order: a hint
    bool runs = says(in_asyncio);
    if (!runs && !PyErr_Occurred()) runs = says(in_trio);
    if (PyErr_Occurred()) return false;
    if (!runs || has_warned.exchange(true, std::memory_order_relaxed))
        return true;  // no order: one of them warns
    // A notebook runs its cells inside a loop, and a cell may wait.
    PyObject* const name = PyUnicode_InternFromString("ipykernel");
    PyObject* const notebook = name == nullptr ? nullptr : PyImport_GetModule(name);
    Py_XDECREF(name);
    Py_XDECREF(notebook);
    if (notebook != nullptr || PyErr_Occurred()) return notebook != nullptr;
    return PyErr_WarnEx(PyExc_RuntimeWarning,
                        "a blocking wait of tocsin in a coroutine stops the event loop of this thread; use "
                        "`await event` or `await tocsin.wait_async(...)`",
                        1) == 0;
}

outcome block_on(const single& one, const deadline& until) {
    if (!may_block()) return {};
    if (runs_handlers()) return main_sleep(&one.from, 1, false, until).run();
    bool taken;
    Py_BEGIN_ALLOW_THREADS;
    looks looking;
    taken = looking([&] { return one.wait(one.object, passed, spin_policy::none()); },
                    [&](spin_policy spin) { return one.wait(one.object, until, spin); });
    looking.let_other_finish();
    Py_END_ALLOW_THREADS;
    return {taken ? ending::ready : ending::timed_out};
}

outcome block_on(const source& one, const deadline& until, const confirmation& confirm) {
    if (!may_block()) return {};
    return main_sleep(&one, 1, false, until, confirm).run();
}

bool sleep_for(auto_reset_event& event, const deadline& until) noexcept {
    return event.wait_until(until, spin_policy::none()) == wait_status::signaled;
}

outcome block_on(const source* sources, std::size_t count, bool all, const deadline& until) {
    if (!may_block()) return {};
    if (runs_handlers()) return main_sleep(sources, count, all, until).run();
    return plain_sleep(sources, count, all, until);
}

}  // namespace tocsin::python

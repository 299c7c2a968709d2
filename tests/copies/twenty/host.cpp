// SPDX-License-Identifier: Apache-2.0
// Loads plug-ins that each have their own copy of the library, in random order, and uses them together: threads that
// wait through one copy and are woken through another, coroutines and operations that another copy ends, a fork,
// and unloading. If all is well, the host prints only the seed.
//
//     host <seed> <plug-in>...
#include "plugin.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using std::chrono::steady_clock;

// ThreadSanitizer can't follow a child that starts threads when its parent had several.
#if defined(__SANITIZE_THREAD__)
constexpr bool threads_in_child = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool threads_in_child = false;
#else
constexpr bool threads_in_child = true;
#endif
#else
constexpr bool threads_in_child = true;
#endif

[[noreturn]] void fail(const std::string& what) {
    std::printf("FAILED: %s\n", what.c_str());  // the standard error stream may be silenced
    std::fflush(stdout);
    std::_Exit(1);
}

void check(bool is_so, const char* what) {
    if (!is_so) fail(what);
}

struct plugin {
    std::string file;
    void* handle = nullptr;
    const plugin_functions* call = nullptr;

    void load() {
        handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) fail(dlerror());
        using entry = const plugin_functions* (*)();
        call = reinterpret_cast<entry>(dlsym(handle, "functions_of_plugin"))();
    }
    void unload() {
        dlclose(handle);
        handle = nullptr;
    }
};

// While it lives, the standard error stream goes into a file. Copies that do not fit each other write there; anything
// that they write is a failure.
class silence {
public:
    silence() : file_(std::tmpfile()), before_(dup(2)) { dup2(fileno(file_), 2); }
    ~silence() {
        std::fflush(stderr);
        dup2(before_, 2);
        close(before_);
        const bool is_silent = std::ftell(file_) == 0 && lseek(fileno(file_), 0, SEEK_END) == 0;
        char said[512] = {};
        std::rewind(file_);
        if (!is_silent && std::fread(said, 1, sizeof said - 1, file_) != 0) fail(said);
        std::fclose(file_);
    }
    silence(const silence&) = delete;
    silence& operator=(const silence&) = delete;

private:
    std::FILE* file_;
    int before_;
};

std::mt19937 random_numbers;

std::vector<plugin> plugins;

const plugin_functions& any_copy() { return *plugins[random_numbers() % plugins.size()].call; }

int open_descriptors() {
    DIR* const folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    return count;
}

template <class Fact>
void until(const char* what, Fact fact) {
    const auto end = steady_clock::now() + std::chrono::seconds(20);
    while (!fact()) {
        if (steady_clock::now() > end) fail(what);
        std::this_thread::yield();
    }
}

// Calls `waits` in another thread, and calls `wakes` once `observer` sees that thread parked on the object.
template <class Waits, class Wakes>
void is_woken(const char* what, const plugin_functions& observer, const void* object, Waits waits,
              Wakes wakes) {
    bool woken = false;
    std::atomic<std::uint64_t> number{0};
    std::thread thread([&] {
        number = static_cast<std::uint64_t>(syscall(SYS_gettid));
        woken = waits();
    });
    until("a thread parks", [&] { return observer.parked(object) != 0; });
    check(observer.parked(object) == number, "its number is the kernel's");
    wakes();
    thread.join();
    check(woken, what);
}

void waits_and_sets() {
    const plugin_functions& waiter = any_copy();
    const plugin_functions& setter = any_copy();
    const plugin_functions& observer = any_copy();
    byte_of_event event = 0;
    is_woken("a wait", observer, &event, [&] { return waiter.wait(&event); }, [&] { setter.set(&event); });

    int ends[2];
    check(pipe(ends) == 0, "a pipe");
    is_woken(
        "a wait for an event and a descriptor", observer, &event,
        [&] { return waiter.wait_polling(&event, ends[0]); }, [&] { setter.set(&event); });
    close(ends[0]);
    close(ends[1]);

    byte_of_event other = 0;
    byte_of_event* const both[] = {&event, &other};
    is_woken(
        "a wait for all", observer, &event, [&] { return waiter.wait_for_all(both, 2); },
        [&] {
            setter.set(&event);
            any_copy().set(&other);
        });
    check(event == 0 && other == 0, "nothing is left set");
}

// The same with objects of other kinds. Only the waiting copy sees waits on a channel.
void waits_on_other_objects() {
    const plugin_functions& waiter = any_copy();
    const plugin_functions& waker = any_copy();
    const plugin_functions& observer = any_copy();
    shared_objects* const all = any_copy().make();
    const auto on = [&](kind_of_object which) { return waiter.address_of(all, which); };

    check(waker.lock(all), "a lock that is free");
    is_woken(
        "a wait for a lock", observer, on(kind_of_object::lock), [&] { return waiter.lock(all); },
        [&] { waker.unlock(all); });
    waiter.unlock(all);
    is_woken(
        "a wait for two permits", observer, on(kind_of_object::semaphore),
        [&] { return waiter.acquire(all); },
        [&] {
            waker.release(all);
            any_copy().release(all);
        });
    is_woken(
        "a wait for a condition", observer, on(kind_of_object::condition),
        [&] { return waiter.wait_for_condition(all); }, [&] { waker.notify(all); });
    is_woken(
        "a receive", waiter, on(kind_of_object::channel), [&] { return waiter.receive(all, 1); },
        [&] { check(waker.send(all, 1), "a send"); });
    check(waker.send(all, 2), "a send into a slot");
    is_woken(
        "a send", waiter, on(kind_of_object::channel), [&] { return waiter.send(all, 3); },
        [&] { check(waker.receive(all, 2), "a receive"); });
    check(any_copy().receive(all, 3), "the item that waited");
    any_copy().destroy_objects(all);
}

// Waits of two copies meet at two rendezvous. Each of the two waits sends at one rendezvous and receives at the other.
void waits_meet_at_one_of_two_channels() {
    const plugin_functions& one = any_copy();
    const plugin_functions& other = any_copy();
    shared_objects* const all = any_copy().make();
    constexpr int rounds = 200;
    const auto meets = [all](const plugin_functions& copy, bool sends_at_first) {
        for (int i = 0; i != rounds; ++i) check(copy.send_or_receive(all, sends_at_first), "two waits meet");
    };
    std::thread second([&] { meets(other, false); });
    meets(one, true);
    second.join();
    any_copy().destroy_objects(all);
}

// While two waits agree on a meeting, they hold a lock of the process. So waits of another copy can't agree on one
// then.
struct two_meetings {
    static inline const plugin_functions* copy = nullptr;
    static inline shared_objects* all = nullptr;
    static inline std::thread second;
    static inline std::atomic<bool> is_over{false};

    static void begin_second() {
        second = std::thread([] {
            check(copy->meet(all, false, nullptr), "the second meeting");
            is_over = true;
        });
        until("the second meeting waits for a lock", [] { return is_over || copy->is_lock_waited_for(); });
        check(!is_over, "meetings of two copies exclude each other");
    }

    static void run() {
        is_over = false;
        copy = &any_copy();
        all = any_copy().make();
        check(any_copy().meet(all, true, begin_second), "the first meeting");
        second.join();
        any_copy().destroy_objects(all);
    }
};

// A coroutine that has been resumed destroys another coroutine or an operation, which belongs to another copy and is to
// be resumed or called next.
void one_destroys_the_next(bool next_is_operation) {
    static void* second;
    static const plugin_functions* owner;
    static bool has_second_run;
    const plugin_functions& first = any_copy();
    owner = &any_copy();
    has_second_run = false;
    byte_of_event gate = 0;
    const auto note = [](void*) { has_second_run = true; };
    if (next_is_operation) {
        first.start_at_gate(&gate, [](void*) { owner->destroy_operation(second); }, nullptr);
        second = owner->start_kept_operation(&gate, note, nullptr);
    } else {
        first.start_at_gate(&gate, [](void*) { owner->destroy(second); }, nullptr);
        second = owner->start_kept(&gate, note, nullptr);
    }
    any_copy().set_gate(&gate);
    check(!has_second_run, "what was destroyed does not continue");
}

// Each coroutine or operation of a chain sets the event of the next one, through another copy. The stack does not grow
// with the length of the chain, and set() returns before the next one continues.
struct link_of_chain {
    std::vector<link_of_chain>* all;
    std::size_t number;
    byte_of_event event = 0;
    const plugin_functions* setter = nullptr;

    static inline std::vector<std::size_t> order;
    static inline std::uintptr_t lowest = 0;
    static inline bool is_in_set = false;

    static void continues(void* with) {
        auto& self = *static_cast<link_of_chain*>(with);
        check(!is_in_set, "nothing continues inside a set() of another one");
        order.push_back(self.number);
        const char here = 0;
        lowest = std::min(lowest, reinterpret_cast<std::uintptr_t>(&here));
        if (self.number + 1 == self.all->size()) return;
        link_of_chain& next = (*self.all)[self.number + 1];
        is_in_set = true;
        self.setter->set(&next.event);
        is_in_set = false;
    }
};

void a_chain_of_coroutines_and_operations() {
    constexpr std::size_t length = 2'000;
    std::vector<link_of_chain> chain(length);
    for (std::size_t i = 0; i != length; ++i) {
        chain[i].all = &chain;
        chain[i].number = i;
        chain[i].setter = &any_copy();
        const auto start = i % 3 == 0 ? any_copy().start_operation : any_copy().start;
        start(&chain[i].event, link_of_chain::continues, &chain[i]);
    }
    const char here = 0;
    const auto top = reinterpret_cast<std::uintptr_t>(&here);
    link_of_chain::lowest = top;
    link_of_chain::order.clear();
    any_copy().set(&chain[0].event);
    check(link_of_chain::order.size() == length, "everything in the chain continues");
    check(std::is_sorted(link_of_chain::order.begin(), link_of_chain::order.end()), "one after the other");
    check(top - link_of_chain::lowest < 64 * 1024, "the stack does not grow with the chain");
}

// Deadlines of all copies at once. Each copy has a thread, which also resumes coroutines of the other copies.
void deadlines() {
    struct set_later {
        const plugin_functions* setter;
        byte_of_event event;
    };
    static std::atomic<std::size_t> count;
    static set_later what[64];
    count = 0;
    for (std::size_t i = 0; i != plugins.size(); ++i) {
        what[i].setter = &any_copy();
        any_copy().start(&what[i].event, [](void*) { ++count; }, nullptr);
        plugins[i].call->start_deadline(
            [](void* with) {
                auto& later = *static_cast<set_later*>(with);
                later.setter->set(&later.event);
            },
            &what[i]);
    }
    until("deadlines resume coroutines", [] { return count == plugins.size(); });
}

// The program's fork handler starts a thread in the child. That thread must not lose its wait, although the fork
// handlers of copies that were loaded later run after the program's.
std::atomic<bool> was_released_in_child{false};
byte_of_event event_of_child;
std::thread* thread_in_child;
void start_thread_in_child() {
    was_released_in_child = false;
    thread_in_child =
        new std::thread([] { was_released_in_child = plugins.front().call->wait(&event_of_child); });
    until("a thread of the child parks", [] { return plugins.front().call->parked(&event_of_child) != 0; });
}

int use_in_child() {
    plugins.back().call->set(&event_of_child);
    thread_in_child->join();
    if (!was_released_in_child) return 2;
    for (int i = 0; i != 10; ++i) waits_and_sets();
    for (int i = 0; i != 10; ++i) one_destroys_the_next(i % 2 == 0);
    a_chain_of_coroutines_and_operations();
    return 0;
}

void forks(bool again) {
    byte_of_event parents = 0;
    is_woken(
        "the parent's wait", any_copy(), &parents, [&] { return any_copy().wait(&parents); },
        [&] {
            std::fflush(nullptr);
            const pid_t child = fork();
            if (child == 0) {
                const int how = use_in_child();
                if (how == 0 && again) forks(false);
                _exit(how);
            }
            int status = 0;
            waitpid(child, &status, 0);
            check(status == 0, "the child ends well");
            check(any_copy().parked(&parents) != 0, "the parent's waiter is still there");
            any_copy().set(&parents);
        });
}

// Unloads some plug-ins and loads them again. Only a few of them: glibc 2.36 mostly does not take back the static
// thread-local storage of an object that is unloaded.
void unload_and_load() {
    const std::size_t count = 1 + random_numbers() % 4;
    std::vector<plugin> gone;
    for (std::size_t i = 0; i != count; ++i) {
        const auto which = plugins.begin() + static_cast<std::ptrdiff_t>(random_numbers() % plugins.size());
        which->unload();
        gone.push_back(*which);
        plugins.erase(which);
    }
    std::shuffle(gone.begin(), gone.end(), random_numbers);
    for (int i = 0; i != 3; ++i) waits_and_sets();
    for (const bool is_operation : {false, true}) one_destroys_the_next(is_operation);
    for (plugin each : gone) {
        const silence nothing_is_said;
        each.load();
        plugins.push_back(each);
    }
    for (int i = 0; i != 3; ++i) waits_and_sets();
}

// Again and again: loads the only copy in the process, uses it in a thread that ends, and unloads it.
void leaves_no_descriptor_behind(plugin one) {
    const auto use = [&] {
        one.load();
        byte_of_event event = 0;
        int ends[2];
        check(pipe(ends) == 0, "a pipe");
        is_woken(
            "a wait for an event and a descriptor", *one.call, &event,
            [&] { return one.call->wait_polling(&event, ends[0]); }, [&] { one.call->set(&event); });
        close(ends[0]);
        close(ends[1]);
        one.unload();
    };
    use();
    const int before = open_descriptors();
    for (int i = 0; i != 10; ++i) use();
    check(open_descriptors() == before, "a plug-in that is unloaded leaves no descriptor behind");
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) return 2;
    const auto seed = static_cast<std::uint32_t>(std::strtoul(arguments[1], nullptr, 10));
    std::printf("seed %u\n", static_cast<unsigned>(seed));
    std::fflush(stdout);
    random_numbers.seed(seed);
    std::vector<plugin> all;
    for (int i = 2; i != count; ++i) all.push_back({arguments[i]});
    std::shuffle(all.begin(), all.end(), random_numbers);
    leaves_no_descriptor_behind(all.front());
    for (plugin& each : all) {
        const silence nothing_is_said;
        each.load();
        plugins.push_back(each);
        if (plugins.size() == 1) pthread_atfork(nullptr, nullptr, start_thread_in_child);
    }
    for (int i = 0; i != 60; ++i) waits_and_sets();
    for (int i = 0; i != 20; ++i) waits_on_other_objects();
    for (int i = 0; i != 5; ++i) waits_meet_at_one_of_two_channels();
    for (int i = 0; i != 5; ++i) two_meetings::run();
    for (int i = 0; i != 100; ++i) one_destroys_the_next(i % 2 == 0);
    a_chain_of_coroutines_and_operations();
    if (threads_in_child) forks(true);
    for (int i = 0; i != 3; ++i) unload_and_load();
    deadlines();
    if (threads_in_child) forks(false);
    std::shuffle(plugins.begin(), plugins.end(), random_numbers);
    for (plugin& each : plugins) each.unload();
    std::puts("ok");
    return 0;
}

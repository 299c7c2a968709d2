// SPDX-License-Identifier: Apache-2.0
// Loads two plug-ins, each of which may have its own copy of the library. One plug-in waits, the other wakes. The host
// reports whether that works: no wake-up may be lost without a message.
//
//     host <expectation> <plug-in> <plug-in>
//         works          wake-ups arrive, and no copy complains
//         works_or_loud  wake-ups arrive, or the second copy complained while it was loaded
//         loud           the second copy complained while it was loaded; on Windows the host makes that copy sleep by
//                        another mechanism
//         outlives       the second works alone after the first was unloaded
//     "program" in place of a plug-in names the copy in this program (if it was built with one).
#include "plugin.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <io.h>
#include <windows.h>
#include <winsock2.h>
#else
#include <dlfcn.h>
#include <unistd.h>
#endif

#if defined(TOCSIN_COPY_IN_PROGRAM)
extern "C" const plugin_functions* tocsin_test_plugin();
#endif

namespace {

#if defined(_WIN32)
using module = HMODULE;
module open_module(const char* name){return LoadLibraryA(name);
}
void* function_of(module which, const char* name) {
    return reinterpret_cast<void*>(GetProcAddress(which, name));
}
void close_module(module which) { FreeLibrary(which); }
std::string why_not() { return "error " + std::to_string(GetLastError()); }
#else
using module = void*;
module open_module(const char* name){return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
void* function_of(module which, const char* name) { return dlsym(which, name); }
void close_module(module which) { dlclose(which); }
std::string why_not() { return dlerror(); }
#endif

struct loaded {
    module handle = nullptr;
    const plugin_functions* call = nullptr;
    std::string said;  // what it wrote to the standard error stream while it was loaded
};

// Runs `work` with the standard error stream redirected to a file, and returns what was written there.
template <class Work>
std::string standard_error_of(Work work) {
    std::FILE* const file = std::tmpfile();
    const int before = dup(2);
    dup2(fileno(file), 2);  // on Windows also what GetStdHandle() gives
    work();
    std::fflush(stderr);
    dup2(before, 2);
    close(before);
    std::string written;
    std::rewind(file);
    for (int each = std::fgetc(file); each != EOF; each = std::fgetc(file)) {
        written.push_back(static_cast<char>(each));
    }
    std::fclose(file);
    std::fputs(written.c_str(), stderr);
    return written;
}

loaded load(const char* name) {
    loaded result;
#if defined(TOCSIN_COPY_IN_PROGRAM)
    if (std::strcmp(name, "program") == 0) {
        result.call = tocsin_test_plugin();
        return result;
    }
#endif
    result.said = standard_error_of([&] { result.handle = open_module(name); });
    if (result.handle == nullptr) {
        std::fprintf(stderr, "%s: %s\n", name, why_not().c_str());
        std::exit(2);
    }
    using entry = const plugin_functions* (*)();
    result.call = reinterpret_cast<entry>(function_of(result.handle, "tocsin_test_plugin"))();
    return result;
}

// Calls `waits` in another thread, and `wakes` when that thread is parked. Returns whether the wake ended the wait.
template <class Waits, class Wakes>
bool reaches(const plugin_functions& sleeper, void* objects, Waits waits, Wakes wakes) {
    std::atomic<bool> released{false};
    std::thread thread([&] { released.store(waits()); });
    const auto begin = std::chrono::steady_clock::now();
    while (sleeper.parked(objects) == 0) {
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(15)) break;
    }
    wakes();
    thread.join();
    return released.load();
}

bool wakes_arrive(const plugin_functions& sleeper, const plugin_functions& waker, void* objects) {
    const bool event = reaches(
        sleeper, objects, [&] { return sleeper.wait_for_event(objects); }, [&] { waker.set_event(objects); });
    bool counted = false;
    const bool word = reaches(
        sleeper, objects, [&] { return sleeper.wait_for_word(objects); },
        [&] { counted = waker.wake_word(objects) == 1; });
    const bool held = waker.lock(objects);
    const bool lock = reaches(
        sleeper, objects,
        [&] {
            const bool taken = sleeper.lock(objects);
            if (taken) sleeper.unlock(objects);
            return taken;
        },
        [&] { waker.unlock(objects); });
    std::printf("event %d, word %d, counted %d, lock %d\n", event, word, counted, held && lock);
    return event && word && counted && held && lock;
}

#if defined(_WIN32)
// Only one thread at a time can sleep on a socket. A second thread gets an error, whichever copy it uses, and the first
// thread continues to sleep.
bool only_one_sleeps(const plugin_functions& first, const plugin_functions& second) {
    WSADATA about{};
    WSAStartup(MAKEWORD(2, 2), &about);
    const SOCKET socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int length = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    bind(socket, plain, length);
    getsockname(socket, plain, &length);

    int slept = 0;
    std::thread thread([&] {
        do {
            slept = first.wait_for_socket(socket, 20'000);
        } while (slept == EBUSY);  // the other thread slept first
    });
    int told = 0;
    for (int i = 0; i != 200 && told != EBUSY; ++i) told = second.wait_for_socket(socket, 20);
    sendto(socket, "x", 1, 0, plain, length);
    thread.join();
    closesocket(socket);
    WSACleanup();
    std::printf("the wait of the second returned %d, that of the first %d\n", told, slept);
    return told == EBUSY && slept == 0;
}
#endif

bool is_loud(const std::string& said) { return said.find("tocsin") != std::string::npos; }

}  // namespace

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: %s works|works_or_loud|loud|outlives <plug-in> <plug-in>\n",
                     arguments[0]);
        return 2;
    }
    const std::string expectation = arguments[1];
    const loaded first = load(arguments[2]);
    void* const objects = first.call->make();

    if (expectation == "outlives") {
        const loaded second = load(arguments[3]);
        void* const own = second.call->make();
        close_module(first.handle);
        return wakes_arrive(*second.call, *second.call, own) ? 0 : 1;
    }

#if defined(_WIN32)
    if (expectation == "loud") SetEnvironmentVariableA("TOCSIN_WINDOWS_SLEEP", "srw");
#endif
    const loaded second = load(arguments[3]);
    if (expectation == "loud") return is_loud(second.said) ? 0 : 1;
    if (expectation == "works_or_loud" && is_loud(second.said)) return 0;
    const bool works = wakes_arrive(*first.call, *second.call, objects) &&
                       wakes_arrive(*second.call, *first.call, second.call->make());
#if defined(_WIN32)
    if (!only_one_sleeps(*first.call, *second.call) || !only_one_sleeps(*second.call, *first.call)) return 1;
#endif
    const bool quiet = !is_loud(first.said) && !is_loud(second.said);
    return works && quiet ? 0 : 1;
}

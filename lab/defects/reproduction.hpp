// SPDX-License-Identifier: Apache-2.0
// What the reproductions share. Each is a program of its own, run as
//
//     PROGRAM peer|ours SECONDS
//
// It prints one line of JSON: what it saw, in how many tries, and the version of what it ran. A program that has only
// tocsin's side belongs to a defect that is told in words.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#ifndef _WIN32
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace reproduction {

using clock = std::chrono::steady_clock;

struct outcome {
    std::uint64_t seen = 0;
    std::uint64_t tries = 0;
    std::string version{};
    std::string note{};
};

class budget {
public:
    explicit budget(double seconds)
        : end_(clock::now() +
               std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds))) {}
    bool spent() const { return clock::now() >= end_; }

private:
    clock::time_point end_;
};

inline std::string libstdcxx() {
#ifdef __GLIBCXX__
    return "libstdc++ of GCC " + std::to_string(_GLIBCXX_RELEASE) + " (" + std::to_string(__GLIBCXX__) + ")";
#else
    return "this compiler's standard library";
#endif
}

// A hang is proven only if 30 looks over 3 s find `asleep` true, and `stuck`, which means that nothing has moved and
// that the thread's condition holds.
template <class Asleep, class Stuck>
bool holds_for_30_looks(Asleep asleep, Stuck stuck) {
    for (int look = 0; look < 30; ++look) {
        if (!asleep() || !stuck()) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return asleep() && stuck();
}

#ifndef _WIN32
inline pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

// A thread sleeps if the system says so (state S). `path` is the thread's file `stat`.
inline bool sleeps(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    return name_end != std::string::npos && line.size() > name_end + 2 && line[name_end + 2] == 'S';
}

inline std::string stat_of_thread(pid_t id) { return "/proc/self/task/" + std::to_string(id) + "/stat"; }

// How often the thread has gone to sleep, ever.
inline std::uint64_t switches_of(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/status");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("voluntary_ctxt_switches:")) return std::stoull(line.substr(line.find(':') + 1));
    return 0;
}

template <class Stuck>
bool proven_to_hang(const std::string& path, Stuck stuck) {
    return holds_for_30_looks([&] { return sleeps(path); }, stuck);
}
#endif

inline void pause_for(std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#else
        asm volatile("" ::: "memory");
#endif
    }
}

// Text that JSON takes as it is: the notes and versions of the reproductions have no other characters to escape.
inline std::string quoted(const std::string& text) {
    std::string found = "\"";
    for (const char each : text) {
        if (each == '"' || each == '\\') found += '\\';
        found += each;
    }
    return found + '"';
}

// Runs one side. Ends the process at once, since a thread may hang for ever.
template <class Peer, class Ours>
int run(int count, char** arguments, Peer peer, Ours ours) {
    const std::string_view side = count == 3 ? arguments[1] : "";
    const double seconds = count == 3 ? std::atof(arguments[2]) : 0;
    if ((side != "peer" && side != "ours") || !(seconds > 0)) {
        std::fprintf(stderr, "usage: %s peer|ours SECONDS\n", arguments[0]);
        return 2;
    }
    const clock::time_point began = clock::now();
    const outcome found = side == "peer" ? peer(seconds) : ours(seconds);
    const std::chrono::duration<double> took = clock::now() - began;
    std::printf(R"({"seen": %llu, "tries": %llu, "seconds": %.2f, "version": %s, "note": %s})"
                "\n",
                static_cast<unsigned long long>(found.seen), static_cast<unsigned long long>(found.tries),
                took.count(), quoted(found.version).c_str(), quoted(found.note).c_str());
    std::fflush(stdout);
    std::_Exit(0);
}

// A program that has only tocsin's side.
template <class Ours>
int run(int count, char** arguments, Ours ours) {
    return run(count, arguments, [](double) { return outcome{.note = "no program"}; }, ours);
}

}  // namespace reproduction

// SPDX-License-Identifier: Apache-2.0
#include "clock.hpp"
#include "machine.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lab {
namespace {

// A small file of /proc as text. Empty if the thread is gone.
struct proc_text {
    explicit proc_text(const char* path) noexcept {
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return;
        const ssize_t got = read(file, buffer.data(), buffer.size());
        close(file);
        text = std::string_view(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    }
    std::array<char, 4096> buffer;
    std::string_view text;
};

// The state is the letter after the name in parentheses. The name may hold anything, so search from the end.
bool sleeps(pid_t thread) {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", thread);
    const proc_text stat(path.data());
    const std::size_t name_end = stat.text.rfind(')');
    return name_end != std::string_view::npos && stat.text.substr(name_end + 1).starts_with(" S");
}

bool all_sleep(std::span<const pid_t> threads) {
    for (const pid_t thread : threads) {
        if (!sleeps(thread)) return false;
    }
    return true;
}

std::uint64_t number_after(std::string_view text, std::string_view label) {
    const std::size_t at = text.find(label);
    if (at == std::string_view::npos) return 0;
    return std::strtoull(text.data() + at + label.size(), nullptr, 10);
}

// The cores of the main thread, which the harness never pins.
cpu_set_t allowed() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(getpid(), sizeof set, &set);
    return set;
}

}  // namespace

const std::vector<int>& usable_cores() {
    static const std::vector<int> cores = [] {
        const cpu_set_t set = allowed();
        std::vector<int> found;
        for (int core = 0; core < CPU_SETSIZE; ++core) {
            if (CPU_ISSET(static_cast<std::size_t>(core), &set)) found.push_back(core);
        }
        return found;
    }();
    return cores;
}

namespace {

bool pin(pid_t thread, int core) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(core), &set);
    return sched_setaffinity(thread, sizeof set, &set) == 0;
}

}  // namespace

bool pin_to(int core) noexcept { return pin(0, core); }

bool pin_to_nth(std::size_t index) noexcept {
    const std::vector<int>& cores = usable_cores();
    return !cores.empty() && pin_to(cores[index % cores.size()]);
}

bool pin_thread_to_nth(pid_t thread, std::size_t index) noexcept {
    const std::vector<int>& cores = usable_cores();
    return !cores.empty() && pin(thread, cores[index % cores.size()]);
}

void never_preempt_others() noexcept {
    const sched_param no_priority{};
    sched_setscheduler(0, SCHED_BATCH, &no_priority);
}

void exact_timers() noexcept { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

pid_t thread_id() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

bool wait_until_asleep(std::span<const pid_t> threads, int patience_ms) {
    constexpr std::int64_t millisecond = 1'000'000;
    const std::int64_t give_up = now() + patience_ms * millisecond;
    do {
        if (all_sleep(threads)) {
            sleep_until(now() + 2 * millisecond);
            if (all_sleep(threads)) return true;
        }
        sleep_until(now() + millisecond);
    } while (now() < give_up);
    return false;
}

std::uint64_t context_switches() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return static_cast<std::uint64_t>(used.ru_nvcsw) + static_cast<std::uint64_t>(used.ru_nivcsw);
}

std::uint64_t context_switches_of(std::span<const pid_t> threads) {
    std::uint64_t sum = 0;
    for (const pid_t thread : threads) {
        std::array<char, 64> path{};
        std::snprintf(path.data(), path.size(), "/proc/self/task/%d/status", thread);
        const proc_text status(path.data());
        sum += number_after(status.text, "\nvoluntary_ctxt_switches:") +
               number_after(status.text, "\nnonvoluntary_ctxt_switches:");
    }
    return sum;
}

std::uint64_t open_descriptors() {
    DIR* const folder = opendir("/proc/self/fd");
    if (folder == nullptr) return 0;
    std::uint64_t count = 0;
    while (const dirent* entry = readdir(folder)) {
        if (entry->d_name[0] != '.') ++count;
    }
    closedir(folder);
    return count - 1;  // minus the one that reads the folder
}

void allow_descriptors() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

double heap_in_use() {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
}

std::uint64_t resident_bytes() {
    const proc_text status("/proc/self/status");
    return number_after(status.text, "\nVmRSS:") * 1024;
}

void enter_kernel() noexcept { (void)syscall(SYS_getppid); }

void start_watchdog(unsigned seconds) {
    std::signal(SIGALRM, [](int) {
        (void)!write(STDERR_FILENO, watchdog_message, sizeof watchdog_message - 1);
        _exit(3);
    });
    alarm(seconds);
}

}  // namespace lab

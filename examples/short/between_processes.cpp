// SPDX-License-Identifier: Apache-2.0
// Two processes share a semaphore: the child releases, the parent waits, also alongside an event of its own. Either may
// be killed at any time.
#include <tocsin/event.hpp>
#include <tocsin/shared_memory.hpp>
#include <tocsin/shared_semaphore.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <cstdio>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

int main() try {
    // Programs without a common parent use shared_memory::open_or_create("/name", size).
    const auto memory = tocsin::shared_memory::anonymous(sizeof(tocsin::shared_semaphore));
    auto& jobs = tocsin::shared_at<tocsin::shared_semaphore>(memory.data(), memory.size());

    const pid_t child = fork();
    if (child == 0) {
        jobs.release(2);
        _exit(0);
    }
    jobs.acquire();
    tocsin::manual_reset_event quit;
    const auto how = tocsin::wait_any({.until = std::chrono::seconds(10)}, quit, jobs);
    const bool second = how.status == tocsin::wait_status::signaled && how.index == 1;
    waitpid(child, nullptr, 0);
    std::printf("two jobs came from the other process\n");
    return second ? 0 : 1;
} catch (const std::system_error& error) {
    std::printf("can't wait for another process here: %s\n", error.what());
    return error.code() == std::errc::function_not_supported ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// Waits for the end of a child process, and for a signal, alongside an event.
#include <tocsin/event.hpp>
#include <tocsin/process.hpp>
#include <tocsin/signal.hpp>
#include <tocsin/wait.hpp>

#include <csignal>
#include <cstdio>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

int main() {
    tocsin::manual_reset_event shutdown;
    tocsin::signal_source usr1(SIGUSR1);
    std::raise(SIGUSR1);
    const auto signalled = tocsin::wait_any(shutdown, usr1).index;
    const bool taken = usr1.try_wait();

    const pid_t child = fork();
    if (child == 0) _exit(7);
    try {
        tocsin::process_end ended(child);
        (void)tocsin::wait_any(ended, shutdown);
    } catch (const std::system_error& error) {  // this kernel or sandbox has no such descriptor
        std::printf("can't wait for a process here: %s\n", error.what());
    }
    int status = 0;
    waitpid(child, &status, 0);  // tocsin never reaps
    std::printf("the child ended with %d\n", WEXITSTATUS(status));
    return signalled == 1 && taken && WEXITSTATUS(status) == 7 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// Waits for a socket and an event in one call.
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>

#include <cstdio>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

int main() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    tocsin::manual_reset_event shutdown;

    tocsin::auto_reset_event received;
    std::thread peer([&] {
        (void)!write(ends[1], "hello", 5);
        received.wait();
        shutdown.set();
    });
    int bytes = 0;
    while (tocsin::wait_any(shutdown, tocsin::readable(ends[0])).index == 1) {
        char text[16];
        bytes += static_cast<int>(read(ends[0], text, sizeof text));
        if (bytes == 5) received.set();
    }
    peer.join();
    close(ends[0]);
    close(ends[1]);
    std::printf("%d bytes came before the shutdown\n", bytes);
    return bytes == 5 ? 0 : 1;
}

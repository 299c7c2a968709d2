// SPDX-License-Identifier: Apache-2.0
// A service waits for its shutdown, its queue and a socket in one call.
#include <tocsin/channel.hpp>
#include <tocsin/event.hpp>
#include <tocsin/fd.hpp>
#include <tocsin/latch.hpp>
#include <tocsin/wait.hpp>

#include <cstdio>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

int main() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    tocsin::manual_reset_event shutdown;
    tocsin::channel<int> queue(8);
    tocsin::latch served(2);
    std::jthread client([&] {
        queue.send(7);
        (void)!write(ends[1], "hello", 5);
        served.wait();
        shutdown.set();
    });

    int sum = 0;
    int bytes = 0;
    auto next = queue.receiving();
    for (;;) {
        // Takes the first that is ready, in the order of the arguments.
        const auto first = tocsin::wait_any(shutdown, next, tocsin::readable(ends[0]));
        if (first.index == 0) break;
        if (first.index == 1) {
            if (next) sum += *next;  // empty once the channel is closed
        } else {
            char text[16];
            bytes += static_cast<int>(read(ends[0], text, sizeof text));
        }
        served.count_down();
    }
    close(ends[0]);
    close(ends[1]);
    std::printf("received %d, and %d bytes\n", sum, bytes);
    return sum == 7 && bytes == 5 ? 0 : 1;
}

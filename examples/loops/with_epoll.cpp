// SPDX-License-Identifier: Apache-2.0
// An event in a hand-written epoll loop: level-triggered, or edge-triggered if there is an argument.
#include "work.hpp"

#include <tocsin/pollable.hpp>

#include <sys/epoll.h>
#include <unistd.h>

int main(int arguments, char**) {
    const bool edges = arguments > 1;
    work job;
    tocsin::pollable watched(job.ready);

    const int loop = epoll_create1(EPOLL_CLOEXEC);
    epoll_event interest{};
    interest.events = edges ? EPOLLIN | EPOLLET : EPOLLIN;
    if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, watched.descriptor(), &interest) != 0) return 2;

    for (bool all = false; !all;) {
        epoll_event found;
        if (epoll_wait(loop, &found, 1, -1) != 1) continue;
        // An edge-triggered loop must repeat this until there is nothing to take. A level-triggered loop may do so.
        while (watched.try_wait()) {
            all = job.collect();
            if (!edges) break;
        }
    }
    close(loop);
    return job.verdict(edges ? "epoll, edges" : "epoll");
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Descriptors stand in an edge-triggered epoll set (EPOLLET), and nobody reads them. Four things happen, one after the
# other, and after each the program asks epoll_wait for events:
#   1. Four writes to an eventfd, a pipe, a socket pair, a POSIX message queue or a pseudoterminal: four edges. The same
#      for four queued real-time signals in a signalfd, four changes of different files in an inotify, and for an epoll
#      set in the set, whose eventfd is written four times.
#   2. A periodic timerfd that has expired dozens of times: one edge. Why: the kernel starts the timer again only when
#      it is read, and counts what it has left out then. A timer that is set anew before each time gives four.
#   3. Four equal signals that aren't queued, in a signalfd, and four changes of one file, in an inotify: one. Why: the
#      next one is merged with the one that nobody has read.
# Guessed before: four everywhere, as with an eventfd.
# Seen on Linux 6.18 with glibc 2.36. Needs gcc.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > seen.c <<'CODE'
#include <fcntl.h>
#include <mqueue.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int number; // of what happens

void pause_ms(long milliseconds) {
    const struct timespec length = {0, milliseconds * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
}

void put(int descriptor) {
    const uint64_t one = 1;
    if (write(descriptor, &one, sizeof one) != sizeof one) perror("write");
}

void send_message(int queue) { mq_send(queue, "a", 1, 0); }
void let_expire(int timer) { (void)timer, pause_ms(200); }
void set_timer(int timer) {
    const struct itimerspec once = {.it_value = {0, 1000000}};
    timerfd_settime(timer, 0, &once, NULL);
}
void send_signal(int signal) { kill(getpid(), signal); }
void change(int files) {
    const char name[] = {'a' + (files == 1 ? 0 : number), 0};
    close(open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600));
}

void trial(const char* name, int source, void (*happen)(int), int given) {
    const int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    epoll_ctl(set, EPOLL_CTL_ADD, source, &event);
    int edges = 0;
    for (number = 0; number < 4; ++number) {
        happen(given);
        edges += epoll_wait(set, &event, 1, 500);
    }
    printf("%s: %d\n", name, edges);
}

int make_inotify(void) {
    const int watch = inotify_init();
    inotify_add_watch(watch, ".", IN_CLOSE_WRITE);
    return watch;
}

int main(void) {
    int pair[2];
    const int event = eventfd(0, 0);
    trial("eventfd", event, put, event);
    pipe(pair);
    trial("pipe", pair[0], put, pair[1]);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    trial("socket pair", pair[0], put, pair[1]);
    struct mq_attr size = {.mq_maxmsg = 8, .mq_msgsize = 8};
    const mqd_t queue = mq_open("/seen_by_edges", O_CREAT | O_RDWR, 0600, &size);
    mq_unlink("/seen_by_edges");
    trial("message queue", queue, send_message, queue);
    openpty(&pair[0], &pair[1], NULL, NULL, NULL);
    trial("pseudoterminal", pair[0], put, pair[1]);
    const int inner = epoll_create1(0), inner_event = eventfd(0, 0);
    struct epoll_event readable = {.events = EPOLLIN};
    epoll_ctl(inner, EPOLL_CTL_ADD, inner_event, &readable);
    trial("epoll set", inner, put, inner_event);

    const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    const struct itimerspec often = {{0, 10000000}, {0, 10000000}};
    timerfd_settime(timer, 0, &often, NULL);
    trial("timerfd, periodic", timer, let_expire, 0);
    uint64_t expirations = 0;
    read(timer, &expirations, sizeof expirations);
    printf("it has expired at least 40 times: %s\n", expirations >= 40 ? "yes" : "no");
    const int other_timer = timerfd_create(CLOCK_MONOTONIC, 0);
    trial("timerfd, set anew", other_timer, set_timer, other_timer);

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    trial("signalfd, SIGRTMIN", signalfd(-1, &signals, 0), send_signal, SIGRTMIN);
    trial("signalfd, SIGUSR1", signalfd(-1, &signals, 0), send_signal, SIGUSR1);
    trial("inotify, four files", make_inotify(), change, 4);
    trial("inotify, one file", make_inotify(), change, 1);
}
CODE
gcc -O1 seen.c -o seen -lrt -lutil 2> gcc.log
./seen | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
eventfd: 4
pipe: 4
socket pair: 4
message queue: 4
pseudoterminal: 4
epoll set: 4
timerfd, periodic: 1
it has expired at least 40 times: yes
timerfd, set anew: 4
signalfd, SIGRTMIN: 4
signalfd, SIGUSR1: 1
inotify, four files: 4
inotify, one file: 1
TEXT

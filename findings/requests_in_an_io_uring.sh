#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Requests that wait in an io_uring behave otherwise than threads that wait for the same:
#   1. Six reads wait in one ring for one eventfd, and one value after the other is written. They end in the order
#      F A E B D C: the newest first, then the oldest, and so on. Polls end newest first. Why: the kernel puts each new
#      wait ahead of the others, and the ones that find nothing line up again, which turns the line around. Accepts and
#      futex waits end in the order of arrival.
#   2. A thread submits five requests to a ring that all threads share, and ends. Its futex wait ends at once with
#      ECANCELED. Its poll, its read and its accept end with ECANCELED when what they wait for comes, and leave it where
#      it is. Its time-out goes on as if nothing had happened.
#   3. A futex wait is in a ring while the process has no second thread yet. Once the first thread is created,
#      FUTEX_WAKE doesn't find it: it returns 0. A wait that comes later is woken. Why: with its first thread, the
#      process gets a table of futex waiters of its own, and the wait stays in the system's.
# Guessed before: that all kinds end in the order of arrival, that requests belong to the ring and outlive their thread,
# and that a futex wait in a ring is woken like a thread's.
# Seen on Linux 6.18 with liburing 2.3.
# Needs Linux 6.18 (older kernels may lack futex requests or the process's own futex table), Debian 12's packages, gcc,
# an io_uring that isn't forbidden, and apt-get with a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq -o APT::Sandbox::User=root liburing-dev=2.3-3 2> apt.log || { cat apt.log; exit 1; }
dpkg -x liburing-dev_*.deb package
cat > seen.c <<'CODE'
#define _GNU_SOURCE
#include <errno.h>
#include <liburing.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

struct io_uring ring;
unsigned word, other_word;
int event, event_of_thread, listener;
struct sockaddr_in address = {.sin_family = AF_INET};
eventfd_t values[6];

struct io_uring_sqe* request(char name) {
    struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
    memset(entry, 0, sizeof *entry);
    entry->user_data = name;
    return entry;
}
void named(struct io_uring_sqe* entry, char name) { entry->user_data = name; }

void wait_for_word(char name, unsigned* at) {
    struct io_uring_sqe* entry = request(name);
    entry->opcode = 51; // IORING_OP_FUTEX_WAIT, newer than this liburing
    entry->fd = 2 | FUTEX_PRIVATE_FLAG; // 32 bits
    entry->addr = (unsigned long)at;
    entry->addr2 = 0; // the value
    entry->addr3 = ~0u;
}
void read_event(char name, int index, int from) {
    struct io_uring_sqe* entry = request(name);
    io_uring_prep_read(entry, from, &values[index], sizeof *values, 0);
    named(entry, name);
}
void poll_event(char name) {
    struct io_uring_sqe* entry = request(name);
    io_uring_prep_poll_add(entry, event, POLLIN);
    named(entry, name);
}
void accept_one(char name) {
    struct io_uring_sqe* entry = request(name);
    io_uring_prep_accept(entry, listener, NULL, NULL, 0);
    named(entry, name);
}
void wait_ten_seconds(char name) {
    static struct __kernel_timespec length = {10, 0};
    struct io_uring_sqe* entry = request(name);
    io_uring_prep_timeout(entry, &length, 0, 0);
    named(entry, name);
}
void cancel(char name) {
    struct io_uring_sqe* entry = request('-');
    io_uring_prep_cancel64(entry, name, 0);
    named(entry, '-');
}
int wake(unsigned* at) { return syscall(SYS_futex, at, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 9, NULL, NULL, 0); }
void come_in(void) { connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr*)&address, sizeof address); }

// Prints what ends until nothing has ended for so long, and how if it isn't well.
void print_ended(int milliseconds) {
    struct io_uring_cqe* done;
    struct __kernel_timespec length = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    while (io_uring_wait_cqe_timeout(&ring, &done, &length) == 0) {
        const char name = done->user_data;
        const int well = done->res >= 0 || done->res == -ETIME; // as a time-out that has passed says
        if (name != '-') printf(" %c%s", name, well ? "" : done->res == -ECANCELED ? " cancelled" : " failed");
        io_uring_cqe_seen(&ring, done);
    }
}

void* nothing(void* given) { return given; }
void* submit_some(void* given) {
    wait_for_word('F', &other_word);
    poll_event('P');
    read_event('R', 0, event_of_thread);
    accept_one('A');
    wait_ten_seconds('T');
    io_uring_submit(&ring);
    return given;
}
void in_a_thread(void* (*call)(void*)) {
    pthread_t thread;
    pthread_create(&thread, NULL, call, NULL);
    pthread_join(thread, NULL);
}

int main(void) {
    if (io_uring_queue_init(64, &ring, 0) != 0) return puts("no io_uring"), 1;
    event = eventfd(0, 0);
    event_of_thread = eventfd(0, 0);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (struct sockaddr*)&address, sizeof address);
    listen(listener, 9);
    socklen_t length = sizeof address;
    getsockname(listener, (struct sockaddr*)&address, &length);

    wait_for_word('A', &word);
    io_uring_submit(&ring);
    in_a_thread(nothing);
    wait_for_word('B', &other_word);
    io_uring_submit(&ring);
    printf("woken: armed before the first thread %d,", wake(&word));
    printf(" after it %d; ended:", wake(&other_word));
    print_ended(500);
    cancel('A');
    io_uring_submit(&ring);
    print_ended(200);

    printf("\nfutex waits:");
    for (char name = 'A'; name <= 'F'; ++name) wait_for_word(name, &word);
    io_uring_submit(&ring);
    wake(&word);
    print_ended(100);
    printf("\nreads of an eventfd:");
    for (int i = 0; i < 6; ++i) read_event('A' + i, i, event);
    io_uring_submit(&ring);
    for (int i = 0; i < 6; ++i) eventfd_write(event, 1), print_ended(100);
    printf("\npolls of an eventfd:");
    for (char name = 'A'; name <= 'F'; ++name) poll_event(name);
    io_uring_submit(&ring);
    eventfd_write(event, 1);
    print_ended(100);
    eventfd_read(event, &values[0]);
    printf("\naccepts:");
    for (char name = 'A'; name <= 'F'; ++name) accept_one(name);
    io_uring_submit(&ring);
    for (int i = 0; i < 6; ++i) come_in(), print_ended(100);

    in_a_thread(submit_some);
    printf("\ntheir thread has ended:");
    print_ended(100);
    printf("\nthe polled one is readable:");
    eventfd_write(event, 7);
    print_ended(1000);
    printf("\nthe read one is readable:");
    eventfd_write(event_of_thread, 8);
    print_ended(1000);
    eventfd_read(event_of_thread, &values[1]);
    printf(" (the value left: %d)\nsomebody has connected:", (int)values[1]);
    come_in();
    print_ended(1000);
    printf(" (connections left: %d)\nits time has passed:", poll(&(struct pollfd){listener, POLLIN, 0}, 1, 0));
    print_ended(12000);
    puts("");
}
CODE
gcc -O1 -I package/usr/include seen.c package/usr/lib/*/liburing.a -o seen -pthread
./seen | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
woken: armed before the first thread 0, after it 1; ended: B A cancelled
futex waits: A B C D E F
reads of an eventfd: F A E B D C
polls of an eventfd: F E D C B A
accepts: A B C D E F
their thread has ended: F cancelled
the polled one is readable: P cancelled
the read one is readable: R cancelled (the value left: 8)
somebody has connected: A cancelled (connections left: 1)
its time has passed: T
TEXT

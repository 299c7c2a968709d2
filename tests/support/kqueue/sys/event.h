// SPDX-License-Identifier: Apache-2.0
// What src/platform/poller/kqueue.cpp uses of kqueue(2), for its tests on Linux, as the manual pages of macOS, FreeBSD
// and OpenBSD describe it. ../kqueue.cpp implements it with epoll(7), without the peculiarities of these systems.
#pragma once
#pragma GCC system_header  // as the real header is; it has a struct and a function of the same name

#include <cstdint>
#include <ctime>

struct kevent {
    std::uintptr_t ident;
    short filter;
    unsigned short flags;
    unsigned int fflags;
    std::intptr_t data;
    void* udata;
};

#define EVFILT_READ (-1)
#define EVFILT_WRITE (-2)
#define EVFILT_EXCEPT (-15)
#define EV_ADD 0x0001
#define EV_DELETE 0x0002
#define EV_CLEAR 0x0020
#define NOTE_OOB 0x0002

int kqueue();
int kevent(int queue, const struct kevent* changes, int change_count, struct kevent* events, int event_count,
           const timespec* timeout);

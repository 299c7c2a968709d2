// SPDX-License-Identifier: Apache-2.0
// What only POSIX systems have. TOCSIN_ON_POSIX is 0 on Windows and for WebAssembly. Tests use it to leave out cases
// that need more than this header offers there:
// - cases that fork, send signals, count system calls, limit descriptors, pin or cancel threads, or wait for pipes;
// - the case that uses a thread_local object in the object's destructor, because MinGW-w64 calls the destructor after
//   it has freed the object's storage (GCC 12, thread model posix).
// tests/CMakeLists.txt leaves out files that are entirely about such things.
#pragma once

#if defined(_WIN32)
#define TOCSIN_ON_POSIX 0

#include <io.h>
#include <process.h>
#include <pthread.h>
#include <sys/types.h>

#elif defined(__EMSCRIPTEN__)
#define TOCSIN_ON_POSIX 0

#include <pthread.h>
#include <unistd.h>

#else
#define TOCSIN_ON_POSIX 1

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#endif

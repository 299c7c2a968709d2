// SPDX-License-Identifier: Apache-2.0
// How a cancelled thread that was caught unwinds further.
#pragma once

#include <tocsin/detail/exceptions.hpp>

#if defined(__cpp_exceptions) && defined(_LIBCPP_VERSION) && defined(__GLIBC__)
#define TOCSIN_RETHROW_ENDS_THE_PROGRAM 1
#include <pthread.h>

// A function of the Itanium C++ ABI that libc++'s cxxabi.h does not declare. Its result points to a structure of the
// calling thread, which begins with a pointer to the exception that was caught last.
extern "C" void** __cxa_get_globals() noexcept;  // NOLINT(bugprone-reserved-identifier)
#endif

namespace tocsin::platform {

// To be called in a catch (...) that std::current_exception() says has caught no exception: the thread was cancelled.
[[noreturn]] inline void continue_cancellation() {
#if defined(TOCSIN_RETHROW_ENDS_THE_PROGRAM)
    // `throw` of libc++abi raises what was caught like a new exception, which finds no handler and ends the program.
    // Instead, the thread unwinds from here. It must first forget what it has caught: leaving the handler would destroy
    // that, and glibc ends a program that destroys a cancellation.
    *__cxa_get_globals() = nullptr;
    pthread_exit(PTHREAD_CANCELED);
#else
    TOCSIN_RETHROW;
#endif
}

}  // namespace tocsin::platform

// SPDX-License-Identifier: Apache-2.0
// What the build decides: which symbols a shared library exports, and which checks are on.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "tocsin needs C++20: compile with -std=c++20 (MSVC: /std:c++20) or later"
#include <tocsin/needs_cxx20>  // there is no such file: that stops the compiler, after one message instead of hundreds
#endif

// Marks what tocsin exports when it is a shared library.
#if defined(_WIN32)
#if defined(TOCSIN_SHARED) && defined(TOCSIN_BUILDING)
#define TOCSIN_API __declspec(dllexport)
#elif defined(TOCSIN_SHARED)
#define TOCSIN_API __declspec(dllimport)
#else
#define TOCSIN_API
#endif
#else
#define TOCSIN_API __attribute__((visibility("default")))
#endif

// Marks a parameter that the result refers to. Compilers that know the mark warn if the result outlives the argument.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define TOCSIN_LIFETIMEBOUND [[clang::lifetimebound]]
#elif __has_cpp_attribute(msvc::lifetimebound)
#define TOCSIN_LIFETIMEBOUND [[msvc::lifetimebound]]
#endif
#endif
#if !defined(TOCSIN_LIFETIMEBOUND)
#define TOCSIN_LIFETIMEBOUND
#endif

// Marks a parameter that the object refers to after the call, although the result does not refer to it. Clang 23
// has the first spelling, and calls the second one deprecated.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetime_capture_by_this)
#define TOCSIN_CAPTURED_BY_THIS [[clang::lifetime_capture_by_this]]
#elif __has_cpp_attribute(clang::lifetime_capture_by)
#define TOCSIN_CAPTURED_BY_THIS [[clang::lifetime_capture_by(this)]]
#endif
#endif
#if !defined(TOCSIN_CAPTURED_BY_THIS)
#define TOCSIN_CAPTURED_BY_THIS
#endif

// Marks a member that takes no space if its type is empty.
#if defined(_MSC_VER)
#define TOCSIN_NO_UNIQUE_ADDRESS [[msvc::no_unique_address]]
#else
#define TOCSIN_NO_UNIQUE_ADDRESS [[no_unique_address]]
#endif

// windows.h defines macros `min` and `max` unless it is told not to. So the public headers write (std::...::max)(),
// which no macro matches.

// If this is 1, the library stops the program when it sees misuse, with a message that names the misuse. Examples are
// an event that is destroyed while threads wait for it, and an unlock of a lock that is not locked. A debug build of
// the library sets this to 1, also for the programs that use the library.
#if !defined(TOCSIN_CHECKED)
#define TOCSIN_CHECKED 0
#endif

// If this is 1, the library counts what waits did (wait_counters in spin.hpp). By default the counters are not compiled
// in.
#if !defined(TOCSIN_COUNTERS)
#define TOCSIN_COUNTERS 0
#endif

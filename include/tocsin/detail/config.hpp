// What the build decides: which symbols a shared library exports, and which checks are on.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "tocsin needs C++20: compile with -std=c++20 (MSVC: /std:c++20) or later"
#include <tocsin/needs_cxx20>  // there is no such file: that stops the compiler, after one message instead of hundreds
#endif

// Exported from a shared tocsin. On ELF the mark also keeps the table of waiters (src/core/lot/lot.cpp) visible when
// the library is linked statically into a plug-in built with hidden visibility. The dynamic linker can then unify its
// copies.
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

// On a member that takes no room if its type is empty.
#if defined(_MSC_VER)
#define TOCSIN_NO_UNIQUE_ADDRESS [[msvc::no_unique_address]]
#else
#define TOCSIN_NO_UNIQUE_ADDRESS [[no_unique_address]]
#endif

// windows.h defines macros `min` and `max` unless it is told not to: the public headers write (std::...::max)().

// If this is 1, misuse that the library can see (an event destroyed with waiters, an unlocked lock unlocked) stops the
// program with a message that names it. The build of a debug library sets this for all its users.
#if !defined(TOCSIN_CHECKED)
#define TOCSIN_CHECKED 0
#endif

// Counters of what waits did (spin.hpp). By default they are not compiled in.
#if !defined(TOCSIN_COUNTERS)
#define TOCSIN_COUNTERS 0
#endif

// SPDX-License-Identifier: Apache-2.0
// The system's table of sleeping threads, where it has one whose size matters: Linux (table_growth.hpp).
#pragma once

#include <tocsin/deadline.hpp>

namespace tocsin::platform {

#if defined(__linux__) && !defined(__ANDROID__) && !defined(TOCSIN_MODEL)

// Called by a thread that is about to sleep until this deadline, and that holds no lock of the library. Preserves
// errno. Rarely, the call takes some ten milliseconds.
void before_sleep(const deadline& until) noexcept;

// Called in the child of a fork, whose table has the usual size again.
void forget_sleeper_table() noexcept;

// Whether the library may change the size of the table.
void allow_table_growth(bool allowed) noexcept;
bool may_table_grow() noexcept;

#else

inline void before_sleep(const deadline&) noexcept {}
inline void forget_sleeper_table() noexcept {}
inline void allow_table_growth(bool) noexcept {}
inline bool may_table_grow() noexcept { return false; }

#endif

}  // namespace tocsin::platform

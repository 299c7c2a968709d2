// SPDX-License-Identifier: Apache-2.0
// How the library ends a program that has made a mistake.
#pragma once

#include <tocsin/detail/config.hpp>

namespace tocsin::detail {

// Prints a message that names the object, such as "tocsin: latch at 0x1234: counted below zero", and aborts. `object`
// may be null.
[[noreturn]] TOCSIN_API void die_of_misuse(const char* type, const void* object, const char* reason) noexcept;

}  // namespace tocsin::detail

// SPDX-License-Identifier: Apache-2.0
// How the library refuses a call: it throws an exception. Built without exceptions (-fno-exceptions, for embedded
// users), it ends the process with the exception's message instead. Every throw and every catch of the library goes
// through this file, except those in asio.hpp.
#pragma once

#include <tocsin/detail/config.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

namespace tocsin::detail {

#if defined(__cpp_exceptions)

#define TOCSIN_TRY try
#define TOCSIN_CATCH(exception) catch (exception)
#define TOCSIN_CATCH_SYSTEM_ERROR(name) catch (const std::system_error& name)  // NOLINT(*-macro-parentheses)
#define TOCSIN_RETHROW throw

template <class Exception>
[[noreturn]] void throw_or_die(const Exception& exception) {
    throw exception;
}

#else

#define TOCSIN_TRY if constexpr (true)
#define TOCSIN_CATCH(exception) else
#define TOCSIN_CATCH_SYSTEM_ERROR(name) else if (const std::system_error name{std::error_code()}; false)
#define TOCSIN_RETHROW std::abort()

template <class Exception>
[[noreturn]] void throw_or_die(const Exception& exception) noexcept {
    std::fprintf(stderr, "%s\n", exception.what());
    std::abort();
}

#endif

}  // namespace tocsin::detail

// SPDX-License-Identifier: Apache-2.0
// The symbol by which a debugger finds the parked waits: debugger_layout.cpp. A program that contains a file which
// includes this header also contains the symbol.
#pragma once

#include <tocsin/detail/config.hpp>

namespace tocsin::core {
struct debugger_layout;
}

extern "C" TOCSIN_API const tocsin::core::debugger_layout tocsin_debugger_layout;

#if defined(__GNUC__) && !defined(TOCSIN_MODEL)
namespace tocsin::core {
[[gnu::used]] const void* const links_debugger_layout = &tocsin_debugger_layout;
}
#endif

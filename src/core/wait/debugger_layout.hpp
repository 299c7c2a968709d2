// SPDX-License-Identifier: Apache-2.0
// The symbol by which a debugger finds the parked waits: debugger_layout.cpp.
#pragma once

#include <tocsin/detail/config.hpp>

namespace tocsin::core {
struct debugger_layout;
}

extern "C" TOCSIN_API const tocsin::core::debugger_layout tocsin_debugger_layout;

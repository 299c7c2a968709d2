// SPDX-License-Identifier: Apache-2.0
// An event that is set while nobody owns something, such as a mutex of win32.h. Checked builds note the owner as they
// note that of a lock (note_taken() and note_freed() in bit_lock.hpp), with this number in place of a bit.
#pragma once

namespace tocsin::detail {

inline constexpr unsigned event_as_lock = 64;

}  // namespace tocsin::detail

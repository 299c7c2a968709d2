// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tocsin::win32 {

// For a thread that ends: calls the callbacks of FlsAlloc() for its values, and frees what it has stored.
void end_local_storage() noexcept;

}  // namespace tocsin::win32

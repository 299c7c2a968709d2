// SPDX-License-Identifier: Apache-2.0
// Keeps the optimiser from removing what a loop measures, and from moving work across it.
#pragma once

namespace lab {

// Tells the optimiser that the value is needed here, and that memory may be read and written.
template <class T>
inline void keep(const T& value) noexcept {
    asm volatile("" : : "r,m"(value) : "memory");
}

// Tells the optimiser that memory may be read and written here.
inline void clobber() noexcept { asm volatile("" : : : "memory"); }

// In a rare branch: keeps the optimiser from turning the branch into arithmetic. A program that polls branches on what
// it finds, so that is what a polling loop must measure.
inline void stay_a_branch() noexcept { asm volatile(""); }

}  // namespace lab

// Keeps the optimiser from removing, or moving work across, what a loop measures.
#pragma once

namespace lab {

// The value is needed here, and memory may be read and written.
template <class T>
inline void keep(const T& value) noexcept {
    asm volatile("" : : "r,m"(value) : "memory");
}

// Memory may be read and written here.
inline void clobber() noexcept { asm volatile("" : : : "memory"); }

// A rare branch stays a branch: the optimiser may not turn it into arithmetic. A program that polls
// branches on what it finds, so that is what a polling loop must measure.
inline void stay_a_branch() noexcept { asm volatile(""); }

}  // namespace lab

// SPDX-License-Identifier: Apache-2.0
// Probes: places where a tracer (bpftrace, perf, SystemTap, gdb) may look into a running program that nobody has
// rebuilt or restarted. Each probe is one `nop`, and a note in the ELF section .note.stapsdt. The note says where the
// `nop` is, and in which registers or memory the arguments are at that place. A tracer that attaches puts a breakpoint
// on the `nop`. The arguments are values that the code has in any case, or that cost an instruction or two.
//
//     TOCSIN_PROBE(park, waiter, address, kind, thread);
//
// docs/diagnosis.md lists the probes with their arguments; tests/diagnosis/probes_test.py compares that list with the
// notes in the built library. The format of a note is that of <sys/sdt.h>, which Debian has in systemtap-sdt-dev. This
// file makes the notes without that header, so every build with GCC or Clang for Linux on 64-bit x86 or ARM has them.
// Elsewhere, and in the models, a probe is nothing.
#pragma once

#include <type_traits>

#if defined(__linux__) && defined(__ELF__) && defined(__GNUC__) && defined(__LP64__) && \
    !defined(TOCSIN_MODEL) && (defined(__x86_64__) || defined(__aarch64__))
#define TOCSIN_HAS_PROBES 1
#else
#define TOCSIN_HAS_PROBES 0
#endif

#if TOCSIN_HAS_PROBES

// The operand is where the value is: an immediate, a register or, with GCC on x86, memory. (If Clang were allowed
// memory, it would copy each value to the stack.)
#if defined(__x86_64__) && !defined(__clang__)
#define TOCSIN_PROBE_OPERAND "nor"
#else
#define TOCSIN_PROBE_OPERAND "nr"
#endif

namespace tocsin::core {

// The size as it is written in a note: negative if the argument is signed.
template <class Argument>
inline constexpr int probe_size =
    std::is_signed_v<Argument> ? -static_cast<int>(sizeof(Argument)) : static_cast<int>(sizeof(Argument));

// Puts a constant argument into a register. Used where other places have a probe of the same name: perf reads no
// constants, and refuses a probe that does not have the same arguments at each place (perf 6.1).
inline unsigned char in_register(unsigned char value) noexcept {
    asm("" : "+r"(value));
    return value;
}

}  // namespace tocsin::core

#define TOCSIN_PROBE_SIZE(value) (::tocsin::core::probe_size<std::decay_t<decltype(value)>>)
#define TOCSIN_PROBE_ARGUMENT(n, value) \
    [s##n] "n"(TOCSIN_PROBE_SIZE(value)), [a##n] TOCSIN_PROBE_OPERAND(value)

// `base` is a symbol by which a tracer finds out whether the file was moved after it was linked (by prelink).
#define TOCSIN_PROBE_NOTE(name, arguments)                                  \
    "990: nop\n"                                                            \
    ".pushsection .note.stapsdt,\"?\",\"note\"\n"                           \
    ".balign 4\n"                                                           \
    ".4byte 992f-991f, 994f-993f, 3\n"                                      \
    "991: .asciz \"stapsdt\"\n"                                             \
    "992: .balign 4\n"                                                      \
    "993: .8byte 990b\n"                                                    \
    ".8byte _.stapsdt.base\n"                                               \
    ".8byte 0\n"                                                            \
    ".asciz \"tocsin\"\n"                                                   \
    ".asciz \"" #name                                                       \
    "\"\n"                                                                  \
    ".asciz \"" arguments                                                   \
    "\"\n"                                                                  \
    "994: .balign 4\n"                                                      \
    ".popsection\n"                                                         \
    ".ifndef _.stapsdt.base\n"                                              \
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
    ".weak _.stapsdt.base\n"                                                \
    ".hidden _.stapsdt.base\n"                                              \
    "_.stapsdt.base: .space 1\n"                                            \
    ".size _.stapsdt.base, 1\n"                                             \
    ".popsection\n"                                                         \
    ".endif\n"

#define TOCSIN_PROBE_1(name, a) \
    asm volatile(TOCSIN_PROBE_NOTE(name, "%c[s1]@%[a1]") : : TOCSIN_PROBE_ARGUMENT(1, a))
#define TOCSIN_PROBE_2(name, a, b)                                    \
    asm volatile(TOCSIN_PROBE_NOTE(name, "%c[s1]@%[a1] %c[s2]@%[a2]") \
                 :                                                    \
                 : TOCSIN_PROBE_ARGUMENT(1, a), TOCSIN_PROBE_ARGUMENT(2, b))
#define TOCSIN_PROBE_3(name, a, b, c)                                              \
    asm volatile(TOCSIN_PROBE_NOTE(name, "%c[s1]@%[a1] %c[s2]@%[a2] %c[s3]@%[a3]") \
                 :                                                                 \
                 : TOCSIN_PROBE_ARGUMENT(1, a), TOCSIN_PROBE_ARGUMENT(2, b), TOCSIN_PROBE_ARGUMENT(3, c))
#define TOCSIN_PROBE_4(name, a, b, c, d)                                                                  \
    asm volatile(TOCSIN_PROBE_NOTE(name, "%c[s1]@%[a1] %c[s2]@%[a2] %c[s3]@%[a3] %c[s4]@%[a4]")           \
                 :                                                                                        \
                 : TOCSIN_PROBE_ARGUMENT(1, a), TOCSIN_PROBE_ARGUMENT(2, b), TOCSIN_PROBE_ARGUMENT(3, c), \
                   TOCSIN_PROBE_ARGUMENT(4, d))
#define TOCSIN_PROBE_5(name, a, b, c, d, e)                                                                  \
    asm volatile(TOCSIN_PROBE_NOTE(name, "%c[s1]@%[a1] %c[s2]@%[a2] %c[s3]@%[a3] %c[s4]@%[a4] %c[s5]@%[a5]") \
                 :                                                                                           \
                 : TOCSIN_PROBE_ARGUMENT(1, a), TOCSIN_PROBE_ARGUMENT(2, b), TOCSIN_PROBE_ARGUMENT(3, c),    \
                   TOCSIN_PROBE_ARGUMENT(4, d), TOCSIN_PROBE_ARGUMENT(5, e))

#define TOCSIN_PROBE_COUNTED(_1, _2, _3, _4, _5, counted, ...) counted
// TOCSIN_PROBE(name, argument...): one to five numbers or pointers.
#define TOCSIN_PROBE(name, ...)                                                                       \
    TOCSIN_PROBE_COUNTED(__VA_ARGS__, TOCSIN_PROBE_5, TOCSIN_PROBE_4, TOCSIN_PROBE_3, TOCSIN_PROBE_2, \
                         TOCSIN_PROBE_1)                                                              \
    (name, __VA_ARGS__)

#else

#define TOCSIN_PROBE(name, ...) static_cast<void>(0)

#endif

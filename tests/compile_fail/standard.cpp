// SPDX-License-Identifier: Apache-2.0
// expect only: tocsin needs C\+\+20: compile with -std=c\+\+20
// misuse: -std=c++17
#ifdef MISUSE_older_standard
#endif
#include <tocsin/tocsin.hpp>

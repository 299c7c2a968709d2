// expect only: tocsin needs C\+\+20: compile with -std=c\+\+20
// misuse: -std=c++17
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/tocsin.hpp>

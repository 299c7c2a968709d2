// expect only: limits come first: submit\({.until = 50ms}, submission\)
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/group_commit.hpp>

tocsin::group_commit<int> commit([](tocsin::commit_group<int>) {});

void fine(int& mine) { (void)commit.submit({.until = std::chrono::seconds(5)}, mine); }

#if defined(MISUSE)
void wait(int& mine) { commit.submit(mine, {.until = std::chrono::seconds(5)}); }
#endif

// expect: unused-result
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/word_lock.hpp>

bool tried(tocsin::word_lock<>& mutex) { return mutex.try_lock(); }

#if defined(MISUSE)
void ignored(tocsin::word_lock<>& mutex) { mutex.try_lock(); }
#endif

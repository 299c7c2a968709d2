// expect: use of deleted function|deleted constructor
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/word_lock.hpp>

tocsin::word_lock<> mutex;

#if defined(MISUSE)
tocsin::word_lock<> copy(mutex);
#endif

// SPDX-License-Identifier: Apache-2.0
// Does not compile: the compiler says what to use instead of a call that this layer refuses (tocsin/win32/refused.h).
#include <tocsin/win32.h>

int main() { return CreateIoCompletionPort(nullptr, nullptr, 0, 0) != nullptr; }

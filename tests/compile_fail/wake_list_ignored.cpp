// expect: unused-result
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/source.hpp>

int main() {
    tocsin::waiting_list list;
    tocsin::wake_list freed = list.notify_one();
#if defined(MISUSE)
    list.notify_one();
#endif
    freed.wake();
}

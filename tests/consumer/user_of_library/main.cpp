// SPDX-License-Identifier: Apache-2.0
#include <answers.hpp>
#include <thread>

int main() {
    tocsin::manual_reset_event ready;
    std::thread setter([&] { ready.set(); });
    const int answer = answer_after(ready);
    setter.join();
    return answer == 42 ? 0 : 1;
}

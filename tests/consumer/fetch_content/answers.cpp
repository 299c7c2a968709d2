// SPDX-License-Identifier: Apache-2.0
#include "answers.hpp"

int answer_after(tocsin::manual_reset_event& ready) {
    ready.wait();
    return 42;
}

#include "answers.hpp"

int answer_after(tocsin::manual_reset_event& ready) {
    ready.wait();
    return 42;
}

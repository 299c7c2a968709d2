// SPDX-License-Identifier: Apache-2.0
#include <tocsin/event.hpp>
#include <tocsin/group_commit.hpp>
#include <tocsin/limits.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_set.hpp>

#include <stop_token>

tocsin::auto_reset_event a;
tocsin::auto_reset_event b;

void fine() { (void)tocsin::wait_any({.until = std::chrono::seconds(5)}, a, b); }

// expect only: limits come first: wait_all\({.until = 50ms}, a, b\)
#ifdef MISUSE_limits_between
void wait() { (void)tocsin::wait_all(a, {.until = std::chrono::seconds(5)}, b); }
#endif

// expect only: limits come first: wait_any\({.until = 50ms}, a, b\)
#ifdef MISUSE_limits_last
void wait() { tocsin::wait_any(a, b, {.until = std::chrono::seconds(5)}); }
#endif

// expect only: limits come once: wait_any\({.until = 50ms, .stop = token}
#ifdef MISUSE_limits_twice
void wait(const tocsin::stop_token& token) {
    tocsin::wait_any({.until = std::chrono::seconds(5)}, {.stop = token}, a);
}
#endif

// expect only: limits come first, once: wait_any\({.until = 50ms
#ifdef MISUSE_limits_with_a_name_last
void wait(const tocsin::limits& how) { tocsin::wait_any(a, b, b, how); }
#endif

tocsin::wait_set set;
tocsin::ready_item found[2];

void wait_for_items() { (void)set.wait({.until = std::chrono::seconds(5)}, found); }

// expect only: limits come first: wait\({.until = 50ms}, items\)
#ifdef MISUSE_limits_after_the_items
void wait() { set.wait(found, {.until = std::chrono::seconds(5)}); }
#endif

tocsin::group_commit<int> commit([](tocsin::commit_group<int>) {});

void submit(int& mine) { (void)commit.submit({.until = std::chrono::seconds(5)}, mine); }

// expect only: limits come first: submit\({.until = 50ms}, submission\)
#ifdef MISUSE_limits_after_the_submission
void wait(int& mine) { commit.submit(mine, {.until = std::chrono::seconds(5)}); }
#endif

void keeps(std::stop_source& source) {
    const std::stop_token token = source.get_token();
    tocsin::limits how;
    how.stop = token;
}

// expect: use of deleted function|selected deleted operator
#ifdef MISUSE_limits_keep_a_temporary_token
void dangles(std::stop_source& source) {
    tocsin::limits how;
    how.stop = source.get_token();
}
#endif

tocsin::wait_status passes(tocsin::auto_reset_event& event, std::stop_source& source) {
    return tocsin::wait_any({.stop = source.get_token()}, event).status;
}

// expect of clang: temporary whose address is used
#ifdef MISUSE_limits_with_a_name_and_a_temporary_token
tocsin::wait_status dangles(tocsin::auto_reset_event& event, std::stop_source& source) {
    const tocsin::limits how{.stop = source.get_token()};
    return tocsin::wait_any(how, event).status;
}
#endif

// SPDX-License-Identifier: Apache-2.0
// The end of a process as a source, on Windows.
#include "facts.hpp"
#include "threads.hpp"

#include <tocsin/event.hpp>
#include <tocsin/process.hpp>
#include <tocsin/wait.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <system_error>

#include <windows.h>

namespace {

using namespace std::chrono_literals;
using tocsin::auto_reset_event;
using tocsin::process_end;
using tocsin::process_exit;
using tocsin::wait_any;
using tocsin::wait_status;

// A process that has not begun to run.
class suspended_process {
public:
    suspended_process() {
        char program[MAX_PATH];
        GetModuleFileNameA(nullptr, program, MAX_PATH);
        STARTUPINFOA how{};
        how.cb = sizeof how;
        started_ = CreateProcessA(program, nullptr, nullptr, nullptr, FALSE, CREATE_SUSPENDED, nullptr,
                                  nullptr, &how, &made_) != 0;
    }
    ~suspended_process() {
        TerminateProcess(made_.hProcess, 1);
        CloseHandle(made_.hThread);
        CloseHandle(made_.hProcess);
    }
    suspended_process(const suspended_process&) = delete;
    suspended_process& operator=(const suspended_process&) = delete;

    bool started() const { return started_; }
    unsigned long id() const { return made_.dwProcessId; }
    void* handle() const { return made_.hProcess; }
    void end(unsigned code) const { TerminateProcess(made_.hProcess, code); }

private:
    PROCESS_INFORMATION made_{};
    bool started_ = false;
};

void expect_it_ends(const suspended_process& process, const process_end& ended) {
    auto_reset_event event;
    EXPECT_FALSE(ended.try_wait());
    EXPECT_EQ(ended.exit_status(), std::nullopt);
    EXPECT_EQ(wait_any({.until = 1ms}, event, ended).status, wait_status::timed_out);
    support::thread_group threads;
    threads.start("waiter", [&] { EXPECT_EQ(wait_any(event, ended).index, 1u); });
    support::until_parked(&event, 1);
    process.end(42);
    threads.join();
    EXPECT_TRUE(ended.try_wait());
    EXPECT_EQ(wait_any(ended, event).index, 0u);
    EXPECT_EQ(ended.exit_status(), (process_exit{42, false}));
}

TEST(WindowsProcessEnd, IsFoundByTheProcessNumber) {
    const suspended_process process;
    ASSERT_TRUE(process.started());
    const process_end ended(process.id());
    expect_it_ends(process, ended);
}

TEST(WindowsProcessEnd, IsFoundByAHandle) {
    const suspended_process process;
    ASSERT_TRUE(process.started());
    const process_end ended(process.handle());
    expect_it_ends(process, ended);
}

TEST(WindowsProcessEnd, RefusesWhatIsNoProcess) {
    EXPECT_THROW(process_end(0ul), std::invalid_argument);
    try {
        const process_end none(0x7FFF'FFF0ul);
        ADD_FAILURE() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code().value(), ESRCH);
    }
    EXPECT_THROW(process_end(reinterpret_cast<void*>(0x7FFF'FF00)), std::system_error);
}

}  // namespace

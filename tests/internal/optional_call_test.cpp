// SPDX-License-Identifier: Apache-2.0
// System calls without which the library can do (platform/system/optional_call_linux.hpp).
#include "platform/system/optional_call_linux.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace {

using tocsin::platform::optional_call;

// What the system answers: an error, or 0.
struct answers {
    int wanted = 0;
    int other = 0;
    int calls = 0;  // of the wanted one

    long ask(optional_call& call) {
        const auto answer = [](int error) -> long {
            if (error == 0) return 7;
            errno = error;
            return -1;
        };
        return call([&] { return ++calls, answer(wanted); }, [&] { return answer(other); });
    }
};

TEST(OptionalCall, ThatIsRefusedIsNotMadeAgain) {
    for (const int refusal : {ENOSYS, EPERM, EACCES}) {
        optional_call call;
        answers system{.wanted = refusal};
        for (int i = 0; i != 3; ++i) EXPECT_EQ(system.ask(call), 7);
        EXPECT_EQ(system.calls, 1) << refusal;
    }
}

TEST(OptionalCall, ThatFailsOnceIsMadeAgain) {
    for (const int transient : {ENOMEM, ENOBUFS, EMFILE, EINVAL}) {
        optional_call call;
        answers system{.wanted = transient};
        EXPECT_EQ(system.ask(call), 7) << "the other call's result";
        system.wanted = 0;
        for (int i = 0; i != 2; ++i) EXPECT_EQ(system.ask(call), 7);
        EXPECT_EQ(system.calls, 3) << transient;
    }
}

TEST(OptionalCall, ThatFailsLikeTheOtherIsMadeAgain) {
    optional_call call;
    answers system{.wanted = EPERM, .other = EPERM};
    EXPECT_EQ(system.ask(call), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(system.ask(call), -1);
    EXPECT_EQ(system.calls, 2);
}

}  // namespace

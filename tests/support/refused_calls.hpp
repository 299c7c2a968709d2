// SPDX-License-Identifier: Apache-2.0
// Imitates a kernel that lacks a system call, or a sandbox that forbids it. It does so by a filter for this thread and
// those that it starts. The filter can't be removed, so use it in child processes only.
#pragma once

#if defined(__linux__)
#include <cerrno>
#include <cstddef>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

namespace support {

// What a kernel that lacks a call says, and what filters say, whose authors choose freely.
inline constexpr int refusals[] = {ENOSYS, EPERM, EACCES, EINVAL};

// Makes the system call fail with this error from now on. Returns false where the system has no such filters.
inline bool refuse_call(long number, int error) {
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{sizeof steps / sizeof steps[0], steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace support
#endif

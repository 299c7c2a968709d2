# SPDX-License-Identifier: Apache-2.0
"""What only functions of Windows tell about the machine. Imported on Windows alone."""

from __future__ import annotations

import ctypes
import platform
import winreg
from ctypes import wintypes

HUNDRED_NANOSECONDS = 1e-7
kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
kernel32.GetCurrentProcess.restype = wintypes.HANDLE


class MemoryStatus(ctypes.Structure):
    _fields_ = [
        ("length", wintypes.DWORD),
        ("load", wintypes.DWORD),
        ("total", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 6),
    ]


def usable_cores() -> tuple[int, ...]:
    ours, every = ctypes.c_size_t(), ctypes.c_size_t()
    kernel32.GetProcessAffinityMask(
        wintypes.HANDLE(kernel32.GetCurrentProcess()), ctypes.byref(ours), ctypes.byref(every)
    )
    return tuple(core for core in range(64) if ours.value >> core & 1)


def memory_mb() -> int:
    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return status.total >> 20


def processor() -> str:
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0") as key:
            return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
    except OSError:
        return platform.processor()


def describe() -> dict[str, object]:
    return {
        "processor": processor(),
        "usable_cores": usable_cores(),
        "hypervisor": None,
        "memory_mb": memory_mb(),
        "root": bool(ctypes.windll.shell32.IsUserAnAdmin()),
    }


def busy_seconds() -> float:
    """Seconds that all cores were busy since the machine started."""
    idle, kernel, user = (wintypes.FILETIME() for _ in range(3))
    kernel32.GetSystemTimes(ctypes.byref(idle), ctypes.byref(kernel), ctypes.byref(user))
    idle_s, kernel_s, user_s = (
        ((time.dwHighDateTime << 32) + time.dwLowDateTime) * HUNDRED_NANOSECONDS for time in (idle, kernel, user)
    )
    return kernel_s + user_s - idle_s  # kernel time includes idle time
